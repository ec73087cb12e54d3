"""The servers that say which node holds a state: Sentinels, or the nodes of a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from math import inf
from typing import Any, ClassVar

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

Address = tuple[str, int]
#: Seconds to wait for an answer about the node.
_SECONDS = 1.5


class Unlocated(redis.ConnectionError):
    """Nobody says where the node is. The message goes on after the location of the state."""


class Locator(ABC):
    """Asks servers, one after the other, for the node that holds a state."""

    #: Seconds after which the node is asked for again: a former one may not know that another one has replaced it.
    lasts: ClassVar[float]
    _cure: ClassVar[str]

    def __init__(self, servers: list[Address], name: str, arguments: dict[str, Any]) -> None:
        """``name``: of the service, or a key of the state; ``arguments``: how to connect to the servers."""
        self._servers = deque(servers)
        self._name = name
        self._arguments: dict[str, Any] = {
            **arguments,
            "protocol": 2,
            "decode_responses": True,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": _SECONDS,
            "socket_connect_timeout": _SECONDS,
        }

    def doubt(self) -> None:
        """Ask the next server first from now on: this one may be cut off."""
        self._servers.rotate(-1)

    def locate(self) -> Address:
        """Return the address of the node. Raises Unlocated."""
        reasons = dict[str, None]()
        for host, port in tuple(self._servers):
            client: Any = redis.Redis(host=host, port=port, **self._arguments)
            try:
                return self._ask(client, host)
            except redis.RedisError as error:
                reasons[str(error)[:100]] = None
                self.doubt()
            finally:
                client.close()
        raise Unlocated("cannot be found: " + self._cure.format(name=self._name, reasons="; ".join(reasons)))

    @abstractmethod
    def _ask(self, client: Any, host: str) -> Address: ...


class Sentinels(Locator):
    """Asks Sentinels for the master of a service.

    A former master may learn seconds late that it was replaced. Writes to it until then are lost.
    """

    lasts = 1.0
    _cure = (
        "no Sentinel names a master {name!r} ({reasons}). Check that the Sentinels run, that the URL has their ports "
        "(usually 26379) and their ?sentinel_password=…, if they need one, and that 'sentinel monitor' in their "
        "configuration has this name."
    )

    def _ask(self, client: Any, host: str) -> Address:
        # Not by Sentinel.discover_master: it names a new master only when the failover is complete.
        if (found := client.sentinel_get_master_addr_by_name(self._name)) is None:
            raise redis.RedisError("it is unknown")
        return found[0], int(found[1])


class Slot(Locator):
    """Asks nodes of a cluster for the master that has the slot of a key."""

    lasts = inf
    _cure = (
        "no node of the cluster names it ({reasons}). Check the cluster with redis-cli --cluster check, and user and "
        "password in the URL. This user must be allowed to run CLUSTER SLOTS. For a single server write redis:// "
        "instead of redis+cluster://."
    )

    def _ask(self, client: Any, host: str) -> Address:
        slot, found = key_slot(self._name.encode()), None
        for low, high, *nodes in client.execute_command("CLUSTER SLOTS"):
            known = [(node[0] or host, int(node[1])) for node in nodes]
            # Ask these too later: the nodes that the URL names may fail.
            self._servers.extend(one for one in known if one not in self._servers)
            if low <= slot <= high:
                found = known[0]
        if found is None:
            raise redis.RedisError("no node has its slot")
        return found
