"""The connection to a Redis server, a Sentinel group or a cluster. Its methods block."""

from __future__ import annotations

import re
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from math import inf
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import redis
import redis.asyncio
from redis import exceptions
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.location import ServerLocation, read_url
from scrapy_neardup.server.program import Program

T = TypeVar("T")
Address = tuple[str, int]
#: The answer to a program: see ``_SCRIPT`` in ``program``.
Answer = list[Any]
#: Seconds to wait for an answer.
SECONDS = 5.0
#: Seconds to wait for an answer about the node that has the state.
_LOCATOR_SECONDS = 1.5
#: Further tries of a request without an answer. Seconds before the first of them; each next one waits twice as long, at
#: most a second.
TRIES, _PAUSE = 3, 0.1
_OF_CLUSTER = re.compile(r"(?:^|[ -])(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|MASTERDOWN) ")
#: The server does not write now: it has fewer replicas than its min-replicas-to-write, or cannot save its data.
_LACKS_REPLICAS = "NOREPLICAS "
_MENDS = re.compile(f"{_LACKS_REPLICAS}|MISCONF ")
#: The error of Kvrocks for a wrong password; redis-py does not know it.
_KVROCKS_REFUSAL = "invalid password"
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)


class Link:
    """A connection to the state at a location. Several threads may use it."""

    #: The levels of the state in use, as far as this process knows.
    levels = 1
    #: Further tries.
    tries = TRIES
    #: The thread of a crawl that waits for its server as long as it takes, else None. Blocking requests of that thread
    #: do not wait: they would hold up the whole crawl.
    patient_thread: int | None = None
    #: Grows whenever another server may have answered, or this one may have lost confirmed writes.
    breaks = 0

    def __init__(self, location: str) -> None:
        """A plain string as location has no password. Raises StoreError if the server does not answer."""
        known = location if isinstance(location, ServerLocation) else read_url(urlsplit(location))
        options = dict(known.options)
        #: Stands before the name of each key.
        self.prefix: bytes = b"{neardup:" + options.pop("state").encode() + b"}"
        #: Called with the kind of the error when the server does not answer for long, and with "" when it does again.
        self.on_outage: Callable[[str], object] = lambda why: None
        #: Knows the node with the state; None if the URL names the server itself.
        self.locator = _make_locator(options, self.prefix.decode())
        self._location = location
        self._arguments: dict[str, Any] = {
            **options,
            "protocol": 2,
            "socket_timeout": SECONDS,
            "socket_connect_timeout": SECONDS,
            "health_check_interval": 30,
        }
        self._lock = threading.Lock()
        self._is_closed = self._is_gone = False
        #: The last known address of the node.
        self.address: Address | None = None
        self._located = -inf
        self._client: Any = None if self.locator else redis.Redis(**self._node, retry=Retry(NoBackoff(), 0))
        self.call(lambda client: client.ping())

    # Requests.

    def call(self, work: Callable[[Any], T]) -> T:
        """Call ``work`` with a client of redis-py, again if no answer comes. Raises StoreError."""
        for failures in count():
            try:
                self.locate()
                found = work(self._client)
            except (redis.RedisError, OSError) as error:  # noqa: PERF203  # each try takes a way to the server
                waits = self.patient_thread not in (None, threading.get_ident())
                time.sleep(self.pause_after(error, failures, waits=waits))
            else:
                self.note_outage("")
                return found
        raise AssertionError

    def pause_after(self, error: Exception, failures: int, *, waits: bool) -> float:
        """Return the seconds to wait before the next try. After the last one raise StoreError, unless one ``waits``.

        Raises it at once for an error that no further try mends.
        """
        if not self.may_repeat(error):
            raise self.translate(error) from error
        self.breaks += 1
        if self.locator is not None:
            with self._lock:
                self.locator.doubt()
                self._located = -inf
        if failures >= self.tries and not waits:
            raise self.translate(error) from error
        if failures >= TRIES:
            self.note_outage(type(error).__name__)
        return float(min(1.0, _PAUSE * 2 ** min(failures, 9)))

    def may_repeat(self, error: Exception) -> bool:
        """Whether nobody knows if the server did something, or it can do nothing now: it may be asked again."""
        if is_refusal(error):
            return False
        if isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)) or self._is_elsewhere(error):
            return True
        if str(error).startswith("BUSY "):  # a script of somebody else takes long
            return True
        # Somebody may give the server memory, disk space or replicas, or make it the master.
        mends = isinstance(error, (exceptions.OutOfMemoryError, exceptions.ReadOnlyError))
        return (mends or bool(_MENDS.search(str(error)))) and self.patient_thread is not None

    def _is_elsewhere(self, error: Exception) -> bool:
        """Whether another node may hold the state. The script has done nothing then."""
        is_replica = isinstance(error, exceptions.ReadOnlyError) or "-READONLY " in str(error)
        return self.locator is not None and (is_replica or _is_of_cluster(error) or _LACKS_REPLICAS in str(error))

    def translate(self, error: Exception) -> StoreError:
        """Return an error of redis-py as a sentence with a cure."""
        begin, reason = f"The server of the state at {self._location}", str(error).partition("\n")[0][:200]
        if is_refusal(error) or reason.lower() == _KVROCKS_REFUSAL:
            end = (
                "refuses this user or password. Check both in the URL (redis://user:password@host/0; write %40 for @ "
                "in a password), and let the user run EVALSHA and EVAL on the keys of the state."
            )
        elif isinstance(error, exceptions.OutOfMemoryError):
            end = (
                "has reached its maxmemory and takes no more pages. Nothing in it is lost. Give it more memory, or "
                "limit the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
            )
        elif self._is_elsewhere(error):
            end = (
                f"cannot be used now ({type(error).__name__}: {reason[:100]}): the state moves to another node, a node "
                "is being replaced, or part of the cluster is down. Try again later."
            )
        elif isinstance(error, (exceptions.ReadOnlyError, exceptions.MasterDownError)):
            end = (
                "is a replica, which only reads. Name the master in the URL; after a failover that is another server. "
                "To have it found, write redis+sentinel:// with Sentinels, or redis+cluster:// in a cluster."
            )
        elif isinstance(error, Unlocated):
            end = str(error)
        elif _LACKS_REPLICAS in str(error):
            end = (
                "takes no pages, because it has fewer replicas than its min-replicas-to-write. Check the replicas. "
                "Nothing in the state is lost."
            )
        elif _MENDS.search(str(error)):
            end = (
                "takes no pages, because it cannot write to its disk. Free space there, or read its log. Nothing in "
                "the state is lost."
            )
        elif isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)):
            end = (
                f"does not answer ({type(error).__name__}: {reason}). Check that it runs and that this machine can "
                "reach it."
            )
        elif _is_of_cluster(error):
            end = f"is a node of a cluster ({reason}). Write redis+cluster:// with the same host."
        else:
            end = f"refuses a command ({type(error).__name__}: {reason})."
        return StoreError(f"{begin} {end}")

    def note_outage(self, why: str) -> None:
        """Tell ``on_outage``, if that is new."""
        if self._is_gone == bool(why):
            return
        with self._lock:
            is_new, self._is_gone = self._is_gone != bool(why), bool(why)
        if is_new:
            self.on_outage(why)

    def closed_error(self) -> StoreError:
        """Return the error of a request after the end."""
        return StoreError(f"The state at {self._location} is closed.")

    def locate(self) -> Address | None:
        """Return the address of the node; None if the URL names the server itself. Raises StoreError, Unlocated.

        Asks for the node if it is unknown or in doubt, and if the answer is old. Then the old address stays if nobody
        answers.
        """
        with self._lock:
            if self._is_closed:
                raise self.closed_error()
            is_doubted = self._located == -inf
            if self.locator is None or not (is_doubted or time.monotonic() - self._located > self.locator.lasts):
                return self.address
            address = self.address
            try:
                address = self.locator.locate()
            except Unlocated:
                if is_doubted:
                    raise
            self._located = time.monotonic()
            if address != self.address:
                self.breaks += self.address is not None
                if self._client is not None:  # other threads wait for answers of the former node
                    self._client.connection_pool.disconnect(inuse_connections=False)
                self.address = address
                self._client = redis.Redis(**self._node, retry=Retry(NoBackoff(), 0))
            return self.address

    @property
    def _node(self) -> dict[str, Any]:
        """The arguments of redis-py for the node. It sends nothing again on its own: the caller decides that."""
        where: dict[str, Any] = {} if self.address is None else {"host": self.address[0], "port": self.address[1]}
        return {**self._arguments, **where}

    def make_connection(self) -> Any:
        """Return a new connection of redis-py for asyncio, which waits for its answers as long as it takes."""
        arguments = {**self._node, "socket_timeout": None, "health_check_interval": 0}
        client: Any = redis.asyncio.Redis(**arguments, retry=AsyncRetry(NoBackoff(), 0))
        return client.connection_pool.make_connection()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if self._client is not None:
                    self._client.close()

    # Programs.

    def program(self) -> Program:
        return Program(self.levels)

    def run(self, program: Program) -> Answer:
        """Return 1 and the answers of a program; or 0 and the name of the condition that did not hold."""
        answer = self.call(partial(self._send, program))
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def ask(self, read: Callable[..., None], *arguments: Any) -> Any:
        """Return the answer to one read of ``Program``."""
        program = self.program()
        read(program, *arguments)
        return self.run(program)[1]

    def _send(self, program: Program, client: Any) -> Answer | StoreError:
        while True:
            found: Answer | Exception
            try:
                found = client.execute_command(*program.command(self.prefix))
            except redis.ResponseError as error:
                found = error
            if (answer := self.read_answer(program, found)) is not None:
                return answer

    def read_answer(self, program: Program, found: Answer | Exception) -> Answer | StoreError | None:
        """Return the answer to a program or its error; None if it must be sent again. Raises errors of redis-py."""
        if isinstance(found, exceptions.NoScriptError):  # the first programs, also after a restart
            program.has_script = True
        elif isinstance(found, Exception):
            if self.may_repeat(found):
                raise found
            return self.translate(found)
        elif found[0] == 2:
            self.levels = program.levels = found[1]
        else:
            return found
        return None

    # The server.

    def scan(self, pattern: bytes) -> list[bytes]:
        """Return the names of keys. Raises StoreError if the state moves meanwhile: some would be missing."""
        began = self._place()
        found = self.call(lambda client: list(client.scan_iter(match=pattern, count=10_000)))
        if self._place() != began:
            raise StoreError(f"The state at {self._location} moved to another server during a read. Try again later.")
        return found

    def _place(self) -> Address | None:
        if self.locator is not None:  # no such key: a node that gives away keys says so
            self.call(lambda client: client.exists(self.prefix + b"~"))
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


# The node that holds a state.


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
            "socket_timeout": _LOCATOR_SECONDS,
            "socket_connect_timeout": _LOCATOR_SECONDS,
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


def _make_locator(options: dict[str, Any], prefix: str) -> Locator | None:
    """Return the locator of the node, if one is needed, and leave in the options the arguments of redis-py."""
    sentinels, nodes = options.pop("sentinels", None), options.pop("nodes", None)
    password, service = options.pop("sentinel_password", None), options.pop("service", "")
    secured = {name: value for name, value in options.items() if name.startswith("ssl")}
    if sentinels:
        return Sentinels(sentinels, service, {**secured, "password": password})
    if nodes:
        return Slot(nodes, prefix, {**secured, **{name: options.get(name) for name in ("username", "password")}})
    return None


# Errors of redis-py.


def _is_of_cluster(error: Exception) -> bool:
    """Whether a node of a cluster says that it does not serve a key now."""
    kinds = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
    return isinstance(error, kinds) or bool(_OF_CLUSTER.search(str(error)))


def is_refusal(error: BaseException) -> bool:
    """Whether a server refuses the user or password; redis-py may have wrapped that error."""
    return isinstance(error, _REFUSED) or isinstance(error.__cause__, _REFUSED)
