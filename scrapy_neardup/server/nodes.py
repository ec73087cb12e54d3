"""Which node of a cluster or behind Sentinels answers for a state."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import Any, ClassVar

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from scrapy_neardup.server.errors import Unlocated

Address = tuple[str, int]
#: Seconds to wait for an answer about the node; and seconds after which ``refresh`` asks again.
_SECONDS, _OLD = 1.5, 1.0


class Locator(ABC):
    """Asks which node holds a state. Its methods block; several threads may call them."""

    #: Messages of Unlocated: a server refuses the user or password, does not know the command, or nobody answers.
    REFUSED: ClassVar[str]
    WRONG_SERVER: ClassVar[str]
    NO_ANSWER: ClassVar[str]

    def __init__(self, servers: list[Address], arguments: dict[str, Any]) -> None:
        """``servers``: they may know the node; ``arguments``: how to connect to them."""
        self._servers = deque(servers)
        self._arguments = {**arguments, "socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
        self._lock = threading.Lock()
        self._began = self._ended = float("-inf")
        self._answer: Address | Unlocated = servers[0]
        self._is_doubted = False
        #: The last known address of the node, and how often it has changed.
        self.address: Address | None = None
        self.moves = 0

    def locate(self) -> Address:
        """Ask for the address of the node. Threads that ask at once share an answer. Raises Unlocated."""
        called = time.monotonic()
        with self._lock:
            if self._began < called:
                self._began = time.monotonic()
                self._answer = self._ask()
                self._ended = time.monotonic()
            if isinstance(self._answer, Unlocated):
                raise Unlocated(str(self._answer))
            if self.address not in (None, self._answer):
                self.moves += 1
            self.address = self._answer
            return self.address

    def refresh(self) -> None:
        """Ask again if the last answer is older than a second; without an answer the address stays.

        A former master may learn seconds late that it was replaced, and loses what is written to it until then.
        """
        if time.monotonic() - self._ended > _OLD:
            with suppress(Unlocated):
                self.locate()

    def doubt(self) -> None:
        """Note that the address did not work. The next server is asked first: this one may be cut off."""
        self._is_doubted = True

    def _ask(self) -> Address | Unlocated:
        refused: Unlocated | None = None
        if self._is_doubted:
            self._is_doubted = False
            self._servers.rotate(-1)
        for _ in range(len(self._servers)):
            host, port = self._servers[0]
            client = redis.Redis(host=host, port=port, retry=Retry(NoBackoff(), 0), **self._arguments)
            try:
                return self._ask_one(client, host)
            except Unlocated as error:
                refused = refused or error
            except (exceptions.AuthenticationError, exceptions.NoPermissionError):
                refused = refused or Unlocated(self.REFUSED)
            except exceptions.ResponseError as error:
                refused = refused or Unlocated(self.WRONG_SERVER.format(str(error)[:100]))
            except (redis.RedisError, OSError):
                pass
            finally:
                client.close()
            self._servers.rotate(-1)  # the next time, the server that answered is asked first
        return refused or Unlocated(self.NO_ANSWER)

    @abstractmethod
    def _ask_one(self, client: Any, host: str) -> Address:
        """Ask one server; raises Unlocated or an error of redis-py."""


class Sentinels(Locator):
    """Asks Sentinels for the master."""

    REFUSED = (
        "is unknown: the Sentinels refuse this password, or need one. Write ?sentinel_password=… "
        "into the URL; the password before the @ is for the servers."
    )
    WRONG_SERVER = (
        "cannot be found: the URL names a server that is no Sentinel ({}). Write the ports of the "
        "Sentinels into the URL (usually 26379), or write redis:// for a single server."
    )
    NO_ANSWER = (
        "cannot be found: no Sentinel answers. Check that they run and that this machine can reach them. You can "
        "name several, separated by commas."
    )

    def __init__(self, sentinels: list[Address], service: str, arguments: dict[str, Any]) -> None:
        super().__init__(sentinels, arguments)
        self._service = service

    def _ask_one(self, client: Any, host: str) -> Address:
        found = client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", self._service)
        if found is None:
            raise Unlocated(
                f"is unknown: the Sentinels have no master named {self._service!r}. Write the name from "
                "'sentinel monitor' in their configuration into the URL, before the database."
            )
        return _text(found[0]), int(found[1])


class Slot(Locator):
    """Asks nodes of a cluster for the master that has the slot of a key."""

    REFUSED = (
        "is in a cluster that refuses this user or password, or does not show its slots to this user. Check both "
        "in the URL (redis+cluster://user:password@host; write %40 for @ in a password), and let the user run "
        "CLUSTER SLOTS."
    )
    WRONG_SERVER = "is a single server, not in a cluster ({}). Write redis:// instead of redis+cluster://."
    NO_ANSWER = (
        "cannot be found: no node of the cluster answers. Check that it runs and that this machine can reach it. "
        "You can name several nodes, separated by commas."
    )

    def __init__(self, nodes: list[Address], key: bytes, arguments: dict[str, Any]) -> None:
        super().__init__(nodes, arguments)
        self._slot = key_slot(key)

    def _ask_one(self, client: Any, host: str) -> Address:
        slots = client.execute_command("CLUSTER SLOTS")
        for _, _, *nodes in slots:  # ask these too later: the nodes that the URL names may fail
            for address in (_address(node, host) for node in nodes):
                if address not in self._servers:
                    self._servers.append(address)
        for first, last, master, *_ in slots:
            if first <= self._slot <= last:
                return _address(master, host)
        raise Unlocated(
            f"cannot be found: no node of the cluster has its slot {self._slot}. Check the cluster with redis-cli "
            "--cluster check; redis-cli --cluster fix assigns slots."
        )


def _address(node: list[Any], host: str) -> Address:
    """Return the address of a node. One that tells no host of its own has the host that was asked."""
    return _text(node[0]) or host, int(node[1])


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""
