"""The way to a Redis server: how it is opened, and which servers are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.redis_place import ServerLocation, read_url
from scrapy_neardup.stores.redis_program import COMMON, Program
from scrapy_neardup.stores.redis_script import SCRIPT, script_digest
from scrapy_neardup.stores.redis_told import told

if TYPE_CHECKING:
    from scrapy_neardup.stores.redis_nodes import Locator

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
    from scrapy_neardup.stores.redis_nodes import Sentinels, Slot

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
        with told(location):
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
        with told(self._location):
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
        with told(self._location):
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
        with told(self._location):
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
        from scrapy_neardup.stores.redis_located import LocatedConnection, LocatedSSLConnection

        return LocatedSSLConnection if way.is_tls else LocatedConnection
    if "path" in way.arguments:
        return redis.UnixDomainSocketConnection
    return redis.SSLConnection if way.is_tls else redis.Connection
