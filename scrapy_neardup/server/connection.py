"""The connection to a Redis server, a Sentinel group or a cluster. Its methods block."""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.location import ServerLocation, read_url
from scrapy_neardup.server.program import DIGEST, SCRIPT, Program

T = TypeVar("T")
Address = tuple[str, int]
#: Seconds to wait for an answer, and how often to try again: usually, and with patience.
_SECONDS, _TIMES, _MORE_TIMES = 5.0, 3, 40
#: Seconds before the first further try; each next one waits twice as long, at most a second.
_PAUSE = 0.1
#: Seconds to wait for an answer about the node; and seconds after which Sentinels are asked again.
_LOCATING, _OLD = 1.5, 1.0
_OF_CLUSTER = re.compile(r"(?:^|[ -])(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN) ")
#: What Kvrocks says of a password; redis-py takes it for any refusal.
_KVROCKS_REFUSAL = "invalid password"
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)


class Unlocated(redis.ConnectionError):
    """Nobody says where the node is. The message goes on after the location of the state."""


class Relocated(redis.ConnectionError):
    """The server does not hold the state any more, or cannot serve it now."""


class Locator(ABC):
    """Finds the node that holds a state, by redis-py."""

    #: Whether a former node may go on without knowing that another one has replaced it.
    is_refreshed: ClassVar[bool]

    def __init__(self, servers: list[Address], arguments: dict[str, Any]) -> None:
        """``servers``: they may know the node; ``arguments``: how to connect to them."""
        self._servers = deque(servers)
        self._arguments = {
            **arguments,
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": _LOCATING,
            "socket_connect_timeout": _LOCATING,
        }

    def doubt(self) -> None:
        """Ask the next server first from now on: this one may be cut off."""
        self._servers.rotate(-1)

    @abstractmethod
    def locate(self) -> Address:
        """Ask for the address of the node. Raises Unlocated."""


class Sentinels(Locator):
    """Asks Sentinels for the master.

    A former master may learn seconds late that it was replaced, and loses what is written to it until then.
    """

    is_refreshed = True

    def __init__(self, servers: list[Address], service: str, arguments: dict[str, Any]) -> None:
        super().__init__(servers, {**arguments, "decode_responses": True})
        self._service = service

    def locate(self) -> Address:
        # Not by Sentinel.discover_master: it names a new master only when the failover is complete.
        reasons = dict[str, None]()
        for host, port in self._servers:
            client: Any = redis.Redis(host=host, port=port, **self._arguments)
            try:
                if found := client.sentinel_get_master_addr_by_name(self._service):
                    return found[0], int(found[1])
                reasons["it is unknown"] = None
            except redis.RedisError as error:
                reasons[str(error)[:100]] = None
            finally:
                client.close()
        raise Unlocated(
            f"cannot be found: no Sentinel names a master {self._service!r} ({'; '.join(reasons)}). Check that the "
            "Sentinels run, that the URL has their ports (usually 26379) and their ?sentinel_password=…, if they "
            "need one, and that 'sentinel monitor' in their configuration has this name."
        )


class Slot(Locator):
    """Asks nodes of a cluster for the master that has the slot of a key."""

    is_refreshed = False

    def __init__(self, servers: list[Address], key: bytes, arguments: dict[str, Any]) -> None:
        super().__init__(servers, arguments)
        self._key = key

    def locate(self) -> Address:
        try:
            nodes: list[Any] = [ClusterNode(*one) for one in self._servers]  # type: ignore[no-untyped-call]  # redis-py
            cluster: Any = RedisCluster(startup_nodes=nodes, **self._arguments)
            try:
                node = cluster.get_node_from_key(self._key)
                # Ask these too later: the nodes that the URL names may fail.
                known = [(one.host, one.port) for one in cluster.get_nodes()]
            finally:
                cluster.close()
        except (redis.RedisError, exceptions.RedisClusterException, IndexError) as error:  # 5.0: no node has slots
            raise Unlocated(
                f"cannot be found: no node of the cluster names it ({str(error)[:200]}). Check the cluster with "
                "redis-cli --cluster check, and user and password in the URL. This user must be allowed to run CLUSTER "
                "SLOTS and COMMAND. For a single server write redis:// instead of redis+cluster://."
            ) from error
        self._servers.extend(one for one in known if one not in self._servers)
        return node.host, node.port


class Link:
    """A connection to the state at a location. Several threads may use it."""

    #: The levels of the state in use, as far as this process knows.
    levels = 1

    def __init__(self, location: str, *, pings: bool = True) -> None:
        """A plain string as location has no password. Raises StoreError if the server ``pings`` not back."""
        known = location if isinstance(location, ServerLocation) else read_url(urlsplit(location))
        options = dict(known.options)
        #: Stands before the name of each key.
        self.prefix: bytes = b"{neardup:" + options.pop("state").encode() + b"}"
        #: Knows the node with the state; None if the URL names the server itself.
        self.locator = _make_locator(options, self.prefix)
        self._location = location
        self._arguments: dict[str, Any] = {
            **options,
            "protocol": 2,
            "socket_timeout": _SECONDS,
            "socket_connect_timeout": _SECONDS,
            "health_check_interval": 30,
        }
        self._times = _TIMES
        self._lock = threading.Lock()
        self._is_closed = False
        #: The last known address of the node, and how often it has changed.
        self.address: Address | None = None
        self.moves = 0
        self._located = float("-inf")
        self._client: Any = None if self.locator else self._make_client()
        if pings:
            self.call(lambda client: client.ping())

    def call(self, work: Callable[[Any], T]) -> T:
        """Call ``work`` with a client of redis-py, again if no answer comes. Raises StoreError."""
        with translate_errors(self._location):
            for failures in range(self._times):
                try:
                    return self.call_once(work)
                except Exception as error:
                    if not is_no_answer(error):
                        raise
                time.sleep(min(1.0, _PAUSE * 2**failures))
            return self.call_once(work)

    def call_once(self, work: Callable[[Any], T], *, refresh: bool = True) -> T:
        """Call ``work`` with a client for the node that holds the state now. Raises errors of redis-py.

        ``refresh``: ask again from time to time which node that is, though the one in use answers.
        """
        client = self._current_client(refresh=refresh)
        try:
            return work(client)
        except Exception as error:
            if self.locator is None or is_refusal(error):
                raise
            if is_elsewhere(error):
                raise self._relocated(self.locator, error) from error
            if is_no_answer(error):
                self._relocated(self.locator, error)
            raise

    def _relocated(self, locator: Locator, error: Exception) -> Relocated:
        """Doubt the node in use; return the error that says so."""
        with self._lock:
            locator.doubt()
            self._located = float("-inf")
        return Relocated(f"{type(error).__name__}: {str(error)[:100]}")

    def _current_client(self, *, refresh: bool) -> Any:
        """Return a client for the node that holds the state now. The one for a former node is closed."""
        with self._lock:
            if self._is_closed:
                raise StoreError(f"The state at {self._location} is closed.")
            if self.locator is not None:
                self._locate(self.locator, refresh=refresh and self.locator.is_refreshed)
            return self._client

    def _locate(self, locator: Locator, *, refresh: bool) -> None:
        """Ask for the node if it is unknown or in doubt, or to refresh an old answer: then it may stay unanswered."""
        is_doubted = self._located == float("-inf")
        if not is_doubted and not (refresh and time.monotonic() - self._located > _OLD):
            return
        address = self.address
        try:
            address = locator.locate()
        except Unlocated:
            if is_doubted:
                raise
        self._located = time.monotonic()
        if address != self.address:
            self.moves += self.address is not None
            self._close_client()
            self.address = address
            self._client = self._make_client()

    def _make_client(self) -> Any:
        """Make a client of redis-py. It sends nothing again on its own: the caller decides that."""
        where: dict[str, Any] = {} if self.address is None else {"host": self.address[0], "port": self.address[1]}
        return redis.Redis(**self._arguments, **where, retry=Retry(NoBackoff(), 0))

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

    # Programs.

    def program(self) -> Program:
        """Return an empty program for this state."""
        return Program(self.levels)

    def run(self, program: Program) -> list[Any]:
        """Return 1 and the answers of a program; or 0 and the name of the condition that did not hold."""
        while (found := self.call(lambda client: self._run_together(client, [program])[0]))[0] == 2:
            self.levels = program.levels = found[1]
        return list(found)

    def ask(self, read: Callable[..., None], *arguments: Any) -> Any:
        """Return the answer to one read of ``Program``."""
        program = self.program()
        read(program, *arguments)
        return self.run(program)[1]

    def run_together(self, programs: list[Program]) -> list[Any]:
        """Run programs once, in one pipeline; return an answer or an error of redis-py for each."""
        return self.call_once(lambda client: self._run_together(client, programs, raises=False), refresh=False)

    def _run_together(self, client: Any, programs: list[Program], *, raises: bool = True) -> list[Any]:
        parts = [program.parts(self.prefix) for program in programs]
        answers = _evaluate(client, "EVALSHA", DIGEST, parts)
        missing = [n for n, answer in enumerate(answers) if isinstance(answer, exceptions.NoScriptError)]
        if missing:  # the first programs, also after a restart
            again = _evaluate(client, "EVAL", SCRIPT, [parts[n] for n in missing])
            for n, answer in zip(missing, again, strict=True):
                answers[n] = answer
        for n, answer in enumerate(answers):
            if isinstance(answer, Exception):
                if raises:
                    raise answer
                if self.locator is not None and is_elsewhere(answer):
                    answers[n] = self._relocated(self.locator, answer)
        return answers

    # The server.

    def scan(self, pattern: bytes) -> list[bytes]:
        """Return the names of keys. Raises StoreError if the state moves meanwhile: some would be missing."""
        began = self._place()
        found = self.call(lambda client: list(client.scan_iter(match=pattern, count=10_000)))
        if self._place() != began:
            raise StoreError(f"The state at {self._location} moved to another server during a read. Try again later.")
        return found

    def _place(self) -> Address | None:
        if self.locator is None:
            return None
        self.call(lambda client: client.exists(self.prefix + b"~"))  # no such key: a node that gives away keys says so
        return self.address

    def refuse_eviction(self) -> None:
        """Raise StoreError if the server drops keys when its memory is full."""
        policy = self.call(lambda client: client.info("memory")).get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"The server of the state at {self._location} drops keys when its memory is full (maxmemory-policy "
                f"{policy}), so pages would be delivered twice. Set it to noeviction in its configuration and with: "
                "CONFIG SET maxmemory-policy noeviction. Or give the state its own server."
            )

    def wait_longer(self) -> None:
        """From now on, wait half a minute for a server that does not answer."""
        self._times = _MORE_TIMES

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._close_client()


def _make_locator(options: dict[str, Any], prefix: bytes) -> Locator | None:
    """Take from the options what finds the node; leave the arguments of redis-py."""
    sentinels, nodes = options.pop("sentinels", None), options.pop("nodes", None)
    password, service = options.pop("sentinel_password", None), options.pop("service", "")
    secured = {name: value for name, value in options.items() if name.startswith("ssl")} | {"protocol": 2}
    if sentinels:
        return Sentinels(sentinels, service, {**secured, "password": password})
    if nodes:
        user = {name: options.get(name) for name in ("username", "password")}
        return Slot(nodes, prefix, {**secured, **user})
    return None


def _evaluate(client: Any, command: str, script: str, parts: list[tuple[list[bytes], list[bytes | int]]]) -> list[Any]:
    pipeline = client.pipeline(transaction=False)
    for keys, arguments in parts:
        pipeline.execute_command(command, script, len(keys), *keys, *arguments)
    return list(pipeline.execute(raise_on_error=False))


# Errors of redis-py: what they mean for a state, and the sentences that users see.


def is_of_cluster(error: BaseException) -> bool:
    """Whether a node of a cluster says that it does not serve a key now."""
    kinds = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
    return isinstance(error, kinds) or bool(_OF_CLUSTER.search(str(error)))


def lacks_replicas(error: BaseException | None) -> bool:
    """Whether a server does not write because it has fewer replicas than its min-replicas-to-write."""
    return "NOREPLICAS " in str(error)


def is_elsewhere(error: Exception) -> bool:
    """Whether an error means that another node may hold the state. The script has done nothing then."""
    is_replica = isinstance(error, exceptions.ReadOnlyError) or "-READONLY " in str(error)
    return is_replica or is_of_cluster(error) or lacks_replicas(error)


def is_refusal(error: BaseException) -> bool:
    """Whether a server refuses the user or password; redis-py may have wrapped that error."""
    return isinstance(error, _REFUSED) or isinstance(error.__cause__, _REFUSED)


def is_no_answer(error: Exception) -> bool:
    """Whether nobody knows if the server did something; so it may be sent again."""
    return isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)) and not is_refusal(error)


@contextmanager
def translate_errors(location: str) -> Iterator[None]:
    """Raise errors of redis-py as StoreError: a sentence with a cure."""
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise StoreError(_describe(error, location)) from error


def _describe(error: Exception, location: str) -> str:
    begin, reason = f"The server of the state at {location}", str(error).partition("\n")[0][:200]
    if is_refusal(error) or reason.lower() == _KVROCKS_REFUSAL:
        return (
            f"{begin} refuses this user or password. Check both in the URL (redis://user:password@host/0; write %40 "
            "for @ in a password), and let the user run EVALSHA and EVAL on the keys of the state."
        )
    if isinstance(error, exceptions.OutOfMemoryError):
        return (
            f"{begin} has reached its maxmemory and takes no more pages. Nothing in it is lost. Give it more memory, "
            "or limit the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
        )
    if isinstance(error, exceptions.ReadOnlyError):
        return (
            f"{begin} is a replica, which only reads. Name the master in the URL; after a failover that is another "
            "server. To have it found, write redis+sentinel:// with Sentinels, or redis+cluster:// in a cluster."
        )
    if isinstance(error, Unlocated):
        return f"{begin} {error}"
    if lacks_replicas(error):
        return (
            f"{begin} takes no pages, because it has fewer replicas than its min-replicas-to-write. Check the "
            "replicas. Nothing in the state is lost."
        )
    if isinstance(error, Relocated):
        return (
            f"The state at {location} cannot be used now ({reason}): it moves to another node, a node is being "
            "replaced, or part of the cluster is down. Try again later."
        )
    if is_no_answer(error):
        return (
            f"{begin} does not answer ({type(error).__name__}: {reason}). Check that it runs and that this machine "
            "can reach it."
        )
    if is_of_cluster(error):
        return f"{begin} is a node of a cluster ({reason}). Write redis+cluster:// with the same host."
    return f"{begin} refuses a command ({type(error).__name__}: {reason})."
