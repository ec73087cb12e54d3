"""Connections to a Redis server, a Sentinel group or a cluster, and what their errors mean."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import redis
import redis.asyncio.connection as for_loops
from redis import exceptions

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.location import ServerLocation, read_url
from scrapy_neardup.server.nodes import Locator, Relocated, is_of_cluster, lacks_replicas
from scrapy_neardup.server.program import COMMON, SCRIPT, Program, script_digest

if TYPE_CHECKING:
    from scrapy_neardup.server.nodes import Locator


# ----------------------------------------------------------------------------------------------------------------------
# Connections to a node that may be another one tomorrow; where it is just now, a ``Locator`` says (``redis_nodes``).
#
# A server that says it is not the one, or not now (a replica, a slot that moves or has moved, a cluster that is down),
# is as good as gone: the connection is closed, and the next one asks again. A program that was refused so was not done,
# not even in part, as it is one script. Once the node is another one, nothing is sent any more to the one before: what
# it still answers may be old.


def _is_elsewhere(error: Exception) -> bool:
    """Whether a server says that it is not the one; of a script Redis before 7 says it in the middle.

    One that lacks replicas may lack them as they have a master now.
    """
    is_replica = isinstance(error, exceptions.ReadOnlyError) or "-READONLY " in str(error)
    return is_replica or is_of_cluster(error) or lacks_replicas(error)


class _Located:
    """What both kinds of connection have."""

    def __init__(self, *, locator: Locator, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._locator = locator

    def _is_old(self) -> bool:
        return self._locator.address not in (None, (self.host, self.port))  # type: ignore[attr-defined]


class _LocatedWaiting(_Located):
    """A connection that waits, to wherever the node is when it is made."""

    def _connect(self) -> Any:
        self.host, self.port = self._locator.located()
        try:
            return super()._connect()  # type: ignore[misc]
        except OSError:
            self._locator.doubt()
            raise

    def send_packed_command(self, *args: Any, **kwargs: Any) -> Any:
        if self._sock:  # type: ignore[attr-defined]  # else it is about to ask
            self._locator.look()
        if self._is_old():
            self.disconnect()  # type: ignore[attr-defined]
        return super().send_packed_command(*args, **kwargs)  # type: ignore[misc]

    def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().read_response(*args, **kwargs)  # type: ignore[misc]
        except exceptions.ResponseError as error:
            if not _is_elsewhere(error):
                raise
            self._locator.doubt()
            self.disconnect()  # type: ignore[attr-defined]
            raise Relocated(_said(error)) from error


class LocatedConnection(_LocatedWaiting, redis.Connection):
    """Over TCP."""


class LocatedSSLConnection(_LocatedWaiting, redis.SSLConnection):
    """Over TLS."""


class _LocatedAsync(_Located):
    """One of a loop; where the node is, a thread asks."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether the node is another one than where this leads."""
        return self._is_old()

    async def _connect(self) -> None:
        self.host, self.port = await asyncio.to_thread(self._locator.located)
        try:
            await super()._connect()  # type: ignore[misc]
        except (OSError, asyncio.TimeoutError):
            self._locator.doubt()
            raise

    async def send_packed_command(self, *args: Any, **kwargs: Any) -> None:
        if self._is_old():
            await self.disconnect(nowait=True)  # type: ignore[attr-defined]
        await super().send_packed_command(*args, **kwargs)  # type: ignore[misc]

    async def read_response(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return await super().read_response(*args, **kwargs)  # type: ignore[misc]
        except exceptions.ResponseError as error:
            if not _is_elsewhere(error):
                raise
            self._locator.doubt()
            await self.disconnect(nowait=True)  # type: ignore[attr-defined]
            raise Relocated(_said(error)) from error


class AsyncLocatedConnection(_LocatedAsync, for_loops.Connection):
    """Over TCP."""


class AsyncLocatedSSLConnection(_LocatedAsync, for_loops.SSLConnection):
    """Over TLS."""


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:100]}"


# ----------------------------------------------------------------------------------------------------------------------
# What goes wrong with a Redis server, as sentences with a cure.


#: What Kvrocks says of a password, and redis-py takes for any refusal.
_KVROCKS_TURNS_AWAY = "invalid password"


@contextmanager
def translate_errors(location: str) -> Iterator[None]:
    """What redis-py raises, in our words. What it says may hold what was sent, so of that the kind alone is told."""
    import redis
    from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, ReadOnlyError

    try:
        yield
    except (AuthenticationError, NoPermissionError) as error:
        raise _turned_away(location) from error
    except OutOfMemoryError as error:
        raise StoreError(
            f"The server of the state at {location} has reached its maxmemory and takes no more pages. Nothing in it "
            "is lost. Give it more memory, or limit the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
        ) from error
    except ReadOnlyError as error:
        raise StoreError(
            f"The server of the state at {location} is a replica, which only reads. Name the master in the URL; after "
            "a failover that is another server. To have it found, write redis+sentinel:// with Sentinels, or "
            "redis+cluster:// in a cluster."
        ) from error
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        raise _not_answered(error, location) from error
    except redis.RedisError as error:
        raise _refused(error, location) from error


def _not_answered(error: Exception, location: str) -> StoreError:
    from scrapy_neardup.server.nodes import Relocated, Unlocated, lacks_replicas

    for one in (error, error.__cause__):  # redis-py has wrapped it, or not
        if isinstance(one, Unlocated):
            return StoreError(f"The server of the state at {location} {one}")
        if lacks_replicas(one):
            return _without_replicas(location)
    if isinstance(error, Relocated):
        return StoreError(
            f"The state at {location} cannot be used now ({_plain(error)}): it moves to another node, a node is being "
            "replaced, or part of the cluster is down. Try again later."
        )
    return StoreError(
        f"The server of the state at {location} does not answer ({type(error).__name__}: {_plain(error)}). Check that "
        "it runs and that this machine can reach it."
    )


def _refused(error: Exception, location: str) -> StoreError:
    from scrapy_neardup.server.nodes import is_of_cluster, lacks_replicas

    if _plain(error).lower() == _KVROCKS_TURNS_AWAY:
        return _turned_away(location)
    if lacks_replicas(error):
        return _without_replicas(location)
    if is_of_cluster(error):
        return StoreError(
            f"The server of the state at {location} is a node of a cluster ({_plain(error)}). Write redis+cluster:// "
            "with the same host."
        )
    return StoreError(
        f"The server of the state at {location} refuses a command ({type(error).__name__}: {_plain(error)})."
    )


def _turned_away(location: str) -> StoreError:
    return StoreError(
        f"The server of the state at {location} refuses this user or password. Check both in the URL "
        "(redis://user:password@host/0; write %40 for @ in a password), and let the user run EVALSHA and SCRIPT "
        "LOAD on the keys of the state."
    )


def _without_replicas(location: str) -> StoreError:
    return StoreError(
        f"The server of the state at {location} takes no pages, because it has fewer replicas than its "
        "min-replicas-to-write. Check the replicas. Nothing in the state is lost."
    )


def _plain(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


# ----------------------------------------------------------------------------------------------------------------------
# The way to a Redis server: how it is opened, and which servers are refused.


#: Seconds for an answer, and times that a program is sent again where none came: as it is, and with patience.
_SECONDS, _TIMES, _MORE_TIMES = 5.0, 3, 40


def options_of(location: str) -> dict[str, Any]:
    """What opens a location; one that is a plain string is read anew, and knows no password."""
    return dict((location if isinstance(location, ServerLocation) else read_url(urlsplit(location))).options)


@dataclass(frozen=True)
class Access:
    """How a location is reached: before all names of keys stands the ``prefix``."""

    prefix: bytes
    #: For redis-py, but for what is of a loop or of none.
    arguments: dict[str, Any]
    is_tls: bool
    #: Who says where the server is; None where the URL does.
    locator: Locator | None


def way_to(location: str) -> Access:
    """The way to a location; redis-py is there."""
    options = options_of(location)
    prefix = b"{neardup:" + options.pop("state").encode() + b"}"
    is_tls = options.pop("ssl", False)
    common = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS, "health_check_interval": 30}
    sentinels, nodes = options.pop("sentinels", None), options.pop("nodes", None)
    if not (sentinels or nodes):
        return Access(prefix, {**options, **common, "protocol": 2}, is_tls, None)
    from scrapy_neardup.server.nodes import Sentinels, Slot

    password, service = options.pop("sentinel_password", None), options.pop("service", "")
    secured = {name: value for name, value in options.items() if name.startswith("ssl_")} | {"ssl": is_tls}
    locator: Locator
    if sentinels:
        locator = Sentinels(sentinels, service, {**secured, "password": password, "protocol": 2})
    else:
        user = {name: options.get(name) for name in ("username", "password")}
        locator = Slot(nodes, prefix, {**secured, **user, "protocol": 2})
    return Access(prefix, {**options, **common, "protocol": 2, "locator": locator}, is_tls, locator)


def need_redis(named_by: str) -> Any:
    """The module of redis-py; raises StoreError that names the extra."""
    try:
        import redis
    except ImportError as error:
        raise StoreError(
            "A state on a Redis server needs redis-py. Run: pip install 'scrapy-neardup[redis]', or set "
            f"{named_by} to leveldb:///path or sqlite:///path."
        ) from error
    return redis


class Link:
    """A connection that waits for its answers."""

    #: Levels of the state that are in use, as far as is known here.
    levels = 1

    def __init__(self, location: str, named_by: str) -> None:
        """Raises StoreError where the server cannot be reached, or would forget on its own."""
        redis = need_redis(named_by)
        self._location = location
        self._no_script: type[Exception] = redis.exceptions.NoScriptError
        way = way_to(location)
        self.prefix = way.prefix
        # A program may be sent twice, so all of them may be sent again.
        again = [redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError]
        self._pool = redis.ConnectionPool(
            connection_class=_connection_class(way), **way.arguments, retry=_retry(_TIMES), retry_on_error=again
        )
        self._client = redis.Redis(connection_pool=self._pool)
        self._locator = way.locator
        with translate_errors(location):
            self._client.ping()

    @property
    def client(self) -> Any:
        """That of redis-py, for what is no program; raises StoreError once it is closed."""
        if self._client is None:
            raise StoreError(f"The state at {self._location} is closed.")
        return self._client

    @contextmanager
    def used(self) -> Iterator[Any]:
        """The same, with its errors in our words."""
        with translate_errors(self._location):
            yield self.client

    def program(self) -> Program:
        """An empty one for this state."""
        return Program(self.levels)

    def run(self, program: Program) -> list[Any]:
        """The answers of a program, behind a 1; or a 0, and the letter of the condition that did not hold."""
        found = self._ran(program)
        while found[0] == 2:
            self.levels = program.levels = found[1]
            found = self._ran(program)
        return found

    def _ran(self, program: Program) -> list[Any]:
        client, (names, arguments) = self.client, program.parts()
        keys = [self.prefix + name for name in (*COMMON, *names)]
        with translate_errors(self._location):
            try:
                (found,) = client.evalsha(script_digest(), len(keys), *keys, *arguments)
            except self._no_script:  # the first one, and the first after a restart
                (found,) = client.eval(SCRIPT, len(keys), *keys, *arguments)
            if isinstance(found, Exception):
                raise found
        return list(found)

    def scan(self, pattern: bytes) -> Iterator[bytes]:
        """Names of keys, in no order; raises StoreError where the state has moved meanwhile, and some may be missed."""
        began = self._place()
        with self.used() as client:
            yield from client.scan_iter(match=pattern, count=10_000)
        if self._place() != began:
            raise StoreError(f"The state at {self._location} moved to another server during a read. Try again later.")

    def _place(self) -> object:
        if self._locator is None:
            return None
        with self.used() as client:
            client.exists(self.prefix + b"~")  # no such key: a node that is giving its keys away says where it may be
        return self._locator.address

    def refuse_what_forgets(self) -> None:
        """Raise StoreError for a server that removes keys when its memory is full."""
        with translate_errors(self._location):
            policy = self.client.info("memory").get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"The server of the state at {self._location} drops keys when its memory is full (maxmemory-policy "
                f"{policy}), so pages would be delivered twice. Set it to noeviction in its configuration and with: "
                "CONFIG SET maxmemory-policy noeviction. Or give the state its own server."
            )

    def wait_longer(self) -> None:
        """Send a program again for half a minute, if no answer comes: for who need not hurry."""
        self.client.set_retry(_retry(_MORE_TIMES))

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
            self._pool.disconnect()


def _retry(times: int) -> Any:
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry

    return Retry(ExponentialBackoff(cap=1.0, base=0.05), times)


def _connection_class(way: Access) -> Any:
    import redis

    if way.locator is not None:
        return LocatedSSLConnection if way.is_tls else LocatedConnection
    if "path" in way.arguments:
        return redis.UnixDomainSocketConnection
    return redis.SSLConnection if way.is_tls else redis.Connection
