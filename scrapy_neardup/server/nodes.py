"""Which node of a cluster or behind Sentinels answers for a state."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

Address = tuple[str, int]
#: Seconds for the answer of one that is asked where the node is; and after which that is asked anew by who looks.
_SECONDS, _OLD = 1.5, 1.0
#: What a node of a cluster says that is not the one; and as redis-py 5.0 has it, which knows it of clusters alone.
_OF_CLUSTER = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
_SAID = ("MOVED ", "ASK ", "TRYAGAIN ", "CLUSTERDOWN ", "MASTERDOWN ")


class Unlocated(redis.ConnectionError):
    """Nobody says where the node is; the message is a sentence with a cure, to be told after where the state lies."""


class Relocated(redis.ConnectionError):
    """The server is not the one to ask any more, or not now."""


def is_of_cluster(error: BaseException) -> bool:
    """Whether it is what a node of a cluster says that is not, or not now, the one for a key."""
    return isinstance(error, _OF_CLUSTER) or str(error).startswith(_SAID)


def lacks_replicas(error: BaseException | None) -> bool:
    """Whether a server does not write, as it has fewer replicas than its min-replicas-to-write."""
    return "NOREPLICAS " in str(error)


class Locator(ABC):
    """Asks where the node is. It blocks, and may be used by several threads at once."""

    def __init__(self, asked: list[Address], arguments: dict[str, Any]) -> None:
        """``asked``: some that may know; ``arguments``: how they are reached."""
        self._asked = deque(asked)
        self._arguments = {**arguments, "socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
        self._lock = threading.Lock()
        self._begun = self._ended = float("-inf")
        self._answer: Address | Unlocated = asked[0]
        self._is_doubted = False
        #: Where the node was when it was last asked for, and how often it had become another one.
        self.address: Address | None = None
        self.moves = 0

    def located(self) -> Address:
        """Where the node is; of threads that come at once one asks for all. Raises Unlocated."""
        came = time.monotonic()
        with self._lock:
            if self._begun < came:
                self._begun = time.monotonic()
                self._answer = self._ask()
                self._ended = time.monotonic()
            if isinstance(self._answer, Unlocated):
                raise Unlocated(str(self._answer))
            if self.address not in (None, self._answer):
                self.moves += 1
            self.address = self._answer
            return self.address

    def look(self) -> None:
        """See from time to time whether the node has become another one, as the former may not know yet.

        Sentinels tell a master that works only seconds later that it is none any more, and what is written to it until
        then is lost. Where nobody says where the node is, it is taken to be where it was.
        """
        if time.monotonic() - self._ended > _OLD:
            with suppress(Unlocated):
                self.located()

    def doubt(self) -> None:
        """What was said has led to nothing: the next one is asked first, as this one may be cut off from the others."""
        self._is_doubted = True

    def _ask(self) -> Address | Unlocated:
        refused: Unlocated | None = None
        if self._is_doubted:
            self._is_doubted = False
            self._asked.rotate(-1)
        for _ in range(len(self._asked)):
            host, port = self._asked[0]
            client = redis.Redis(host=host, port=port, retry=Retry(NoBackoff(), 0), **self._arguments)
            try:
                return self._says(client, host)
            except Unlocated as error:
                refused = refused or error
            except (exceptions.AuthenticationError, exceptions.NoPermissionError):
                refused = refused or Unlocated(self._refusal())
            except exceptions.ResponseError as error:
                refused = refused or Unlocated(self._misplaced(str(error)))
            except (redis.RedisError, OSError):
                pass
            finally:
                client.close()
            self._asked.rotate(-1)  # who has answered is asked first
        return refused or Unlocated(self._silence())

    @abstractmethod
    def _says(self, client: Any, host: str) -> Address:
        """What one says who was asked; raises Unlocated, or what redis-py raises."""

    @abstractmethod
    def _refusal(self) -> str:
        """What to do about one that refuses user or password."""

    @abstractmethod
    def _misplaced(self, said: str) -> str:
        """What to do about one that does not understand."""

    @abstractmethod
    def _silence(self) -> str:
        """What to do if nobody answers."""


class Sentinels(Locator):
    """They watch over a master with its replicas, and make one of these the master when it fails."""

    def __init__(self, sentinels: list[Address], service: str, arguments: dict[str, Any]) -> None:
        super().__init__(sentinels, arguments)
        self._service = service

    def _says(self, client: Any, host: str) -> Address:
        found = client.execute_command("SENTINEL GET-MASTER-ADDR-BY-NAME", self._service)
        if found is None:
            raise Unlocated(
                f"is unknown: the Sentinels have no master named {self._service!r}. Write the name from "
                "'sentinel monitor' in their configuration into the URL, before the database."
            )
        return _text(found[0]), int(found[1])

    def _refusal(self) -> str:
        return (
            "is unknown: the Sentinels refuse this password, or need one. Write ?sentinel_password=… "
            "into the URL; the password before the @ is for the servers."
        )

    def _misplaced(self, said: str) -> str:
        return (
            f"cannot be found: the URL names a server that is no Sentinel ({said[:100]}). Write the ports of the "
            "Sentinels into the URL (usually 26379), or write redis:// for a single server."
        )

    def _silence(self) -> str:
        return (
            "cannot be found: no Sentinel answers. Check that they run and that this machine can reach them. You can "
            "name several, separated by commas."
        )


class Slot(Locator):
    """The node of a cluster that has the slot of a key."""

    def __init__(self, nodes: list[Address], key: bytes, arguments: dict[str, Any]) -> None:
        super().__init__(nodes, arguments)
        self._slot = key_slot(key)

    def _says(self, client: Any, host: str) -> Address:
        found = client.execute_command("CLUSTER SLOTS")
        self._know(found, host)
        for first, last, master, *_ in found:
            if first <= self._slot <= last:
                return _address(master, host)
        raise Unlocated(
            f"cannot be found: no node of the cluster has its slot {self._slot}. Check the cluster with redis-cli "
            "--cluster check; redis-cli --cluster fix assigns slots."
        )

    def _know(self, found: list[Any], host: str) -> None:
        """Others in the cluster can be asked too, as those that the URL names may be the ones that fail."""
        for _, _, *nodes in found:
            for address in (_address(node, host) for node in nodes):
                if address not in self._asked:
                    self._asked.append(address)

    def _refusal(self) -> str:
        return (
            "is in a cluster that refuses this user or password, or does not show its slots to this user. Check both "
            "in the URL (redis+cluster://user:password@host; write %40 for @ in a password), and let the user run "
            "CLUSTER SLOTS."
        )

    def _misplaced(self, said: str) -> str:
        return f"is a single server, not in a cluster ({said[:100]}). Write redis:// instead of redis+cluster://."

    def _silence(self) -> str:
        return (
            "cannot be found: no node of the cluster answers. Check that it runs and that this machine can reach it. "
            "You can name several nodes, separated by commas."
        )


def _address(node: list[Any], asked: str) -> Address:
    """Of a node that tells no host of its own, it is the one that was asked for it."""
    return _text(node[0]) or asked, int(node[1])


def _text(said: Any) -> str:
    return said.decode() if isinstance(said, bytes) else said or ""
