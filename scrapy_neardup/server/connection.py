"""The blocking connection to a Redis server, a Sentinel group or a cluster, and its errors as sentences."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.location import ServerLocation, read_url
from scrapy_neardup.server.nodes import (
    Address,
    Locator,
    Relocated,
    Sentinels,
    Slot,
    Unlocated,
    is_elsewhere,
    is_of_cluster,
    lacks_replicas,
)
from scrapy_neardup.server.program import SCRIPT, Program, script_digest

T = TypeVar("T")
#: Seconds to wait for an answer, and how often to try again: usually, and with patience.
_SECONDS, _TIMES, _MORE_TIMES = 5.0, 3, 40
#: Seconds before the first further try; each next one waits twice as long, at most a second.
_PAUSE = 0.1
#: What Kvrocks says of a password; redis-py takes it for any refusal.
_KVROCKS_REFUSAL = "invalid password"
_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError)


@dataclass(frozen=True)
class Access:
    """How to reach a state: the prefix of its keys, the arguments of redis-py, and who knows the node."""

    prefix: bytes
    arguments: dict[str, Any]
    #: None if the URL names the server itself.
    locator: Locator | None

    def client(self, kind: Callable[..., Any], retry: Any, address: Address | None) -> Any:
        """Make a client of redis-py. It sends nothing again on its own: the caller decides that."""
        where = {} if address is None else {"host": address[0], "port": address[1]}
        return kind(**self.arguments, **where, retry=retry)


def read_access(location: str) -> Access:
    """Return how to reach a location. A plain string has no password."""
    known = location if isinstance(location, ServerLocation) else read_url(urlsplit(location))
    options = dict(known.options)
    prefix = b"{neardup:" + options.pop("state").encode() + b"}"
    sentinels, nodes = options.pop("sentinels", None), options.pop("nodes", None)
    password, service = options.pop("sentinel_password", None), options.pop("service", "")
    if "path" in options:
        options["unix_socket_path"] = options.pop("path")
    secured = {name: value for name, value in options.items() if name.startswith("ssl")} | {"protocol": 2}
    locator: Locator | None = None
    if sentinels:
        locator = Sentinels(sentinels, service, {**secured, "password": password})
    elif nodes:
        user = {name: options.get(name) for name in ("username", "password")}
        locator = Slot(nodes, prefix, {**secured, **user})
    timeouts = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS, "health_check_interval": 30}
    return Access(prefix, {**options, **timeouts, "protocol": 2}, locator)


def refusal_in(error: BaseException) -> BaseException | None:
    """Return the error by which a server refuses the user or password; redis-py may have wrapped it."""
    return next((one for one in (error, error.__cause__) if isinstance(one, _REFUSED)), None)


def is_no_answer(error: Exception) -> bool:
    """Whether nobody knows if the server did something; so it may be sent again."""
    return isinstance(error, (redis.ConnectionError, redis.TimeoutError, OSError)) and refusal_in(error) is None


def describe_error(error: Exception) -> str:
    """Return the kind of an error and how its message begins."""
    return f"{type(error).__name__}: {str(error)[:100]}"


class Link:
    """A connection whose methods block. Several threads may use it."""

    #: The levels of the state in use, as far as this process knows.
    levels = 1

    def __init__(self, location: str) -> None:
        """Raises StoreError if the server cannot be reached."""
        self._location = location
        self._access = read_access(location)
        self.prefix = self._access.prefix
        self._times = _TIMES
        self._lock = threading.Lock()
        self._is_closed = False
        self._must_locate = True
        self._address: Address | None = None
        self._client: Any = None if self.locator else self._make_client(None)
        self.call(lambda client: client.ping())

    @property
    def locator(self) -> Locator | None:
        return self._access.locator

    def call(self, work: Callable[[Any], T]) -> T:
        """Call ``work`` with a client of redis-py, again if no answer comes. Raises StoreError."""
        with translate_errors(self._location):
            for failures in range(self._times):
                try:
                    return self._call_once(work)
                except Exception as error:
                    if not is_no_answer(error):
                        raise
                time.sleep(min(1.0, _PAUSE * 2**failures))
            return self._call_once(work)

    def _call_once(self, work: Callable[[Any], T]) -> T:
        client = self._current_client()
        try:
            return work(client)
        except Exception as error:
            if self.locator is None or refusal_in(error):
                raise
            if not (moved := is_elsewhere(error)) and not is_no_answer(error):
                raise
            self.locator.doubt()
            self._must_locate = True
            if moved:
                raise Relocated(describe_error(error)) from error
            raise

    def _current_client(self) -> Any:
        """Return a client for the node that holds the state now. The one for a former node is closed."""
        with self._lock:
            if self._is_closed:
                raise StoreError(f"The state at {self._location} is closed.")
            if self.locator is None:
                return self._client
            if self._must_locate:
                self.locator.locate()
                self._must_locate = False
            else:
                self.locator.refresh()
            if self._address != self.locator.address:
                self._close_client()
                self._address = self.locator.address
                self._client = self._make_client(self._address)
            return self._client

    def _make_client(self, address: Address | None) -> Any:
        return self._access.client(redis.Redis, Retry(NoBackoff(), 0), address)

    def _close_client(self) -> None:
        if self._client is not None:
            self._client.close()

    def program(self) -> Program:
        """Return an empty program for this state."""
        return Program(self.levels)

    def run(self, program: Program) -> list[Any]:
        """Return 1 and the answers of a program; or 0 and the name of the condition that did not hold."""
        found = self._run_once(program)
        while found[0] == 2:
            self.levels = program.levels = found[1]
            found = self._run_once(program)
        return found

    def _run_once(self, program: Program) -> list[Any]:
        keys, arguments = program.parts(self.prefix)

        def evaluate(client: Any) -> list[Any]:
            try:
                return list(client.evalsha(script_digest(), len(keys), *keys, *arguments))
            except exceptions.NoScriptError:  # the first program, also after a restart
                return list(client.eval(SCRIPT, len(keys), *keys, *arguments))

        return self.call(evaluate)

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
        return self.locator.address

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


@contextmanager
def translate_errors(location: str) -> Iterator[None]:
    """Raise errors of redis-py as StoreError: a sentence with a cure."""
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise StoreError(_message(error, location)) from error


def _message(error: Exception, location: str) -> str:
    begin, reason = f"The server of the state at {location}", str(error).partition("\n")[0][:200]
    if refusal_in(error) or reason.lower() == _KVROCKS_REFUSAL:
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
