"""The way to a Redis server: how it is opened, what its errors mean, and which servers are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores.redis_place import ServerLocation, read_server, read_socket
from scrapy_neardup.stores.redis_script import SCRIPT, Program

#: Seconds for an answer, and times that a program is sent again where none came: as it is, and with patience.
_SECONDS, _TIMES, _MORE_TIMES = 5.0, 3, 40


def options_of(location: str) -> dict[str, Any]:
    """What opens a location; one that is a plain string is read anew, and knows no password."""
    if isinstance(location, ServerLocation):
        return dict(location.options)
    parts = urlsplit(location)
    read = read_socket(parts) if parts.scheme == "unix" else read_server(parts, tls=parts.scheme == "rediss")
    return dict(read.options)


def connection_arguments(location: str) -> tuple[str, dict[str, Any]]:
    """The name of the state, and what redis-py is to be told, but for what is of a loop or of none."""
    options = options_of(location)
    state = options.pop("state")
    if "path" in options:
        options["unix_socket_path"] = options.pop("path")
    if not options.get("ssl"):
        options.pop("ssl", None)
    common = {"socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS, "health_check_interval": 30}
    return state, {**options, **common, "protocol": 2}


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


@cache
def script_digest() -> str:
    """By which the server knows the script."""
    from hashlib import sha1

    return sha1(SCRIPT.encode(), usedforsecurity=False).hexdigest()


@contextmanager
def told(location: str) -> Iterator[None]:
    """What redis-py raises, in our words. What it says may hold what was sent, so of that the kind alone is told."""
    import redis
    from redis.exceptions import AuthenticationError, NoPermissionError, OutOfMemoryError, ReadOnlyError

    try:
        yield
    except (AuthenticationError, NoPermissionError) as error:
        raise StoreError(
            f"The server of the state at {location} refuses this user or password. See to both in the URL "
            "(redis://user:password@host/0; in a password, @ is written %40), and that the user may run EVALSHA and "
            "SCRIPT LOAD on the keys of the state."
        ) from error
    except OutOfMemoryError as error:
        raise StoreError(
            f"The server of the state at {location} has no memory left, by its maxmemory, and takes no more pages. "
            "Nothing that it holds is lost. Give it more, or bound the state with NEARDUP_TTL or NEARDUP_MAX_PAGES."
        ) from error
    except ReadOnlyError as error:
        raise StoreError(
            f"The server of the state at {location} is a replica, which cannot be written to. Name the master in the "
            "URL; after a failover that is another server."
        ) from error
    except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
        raise StoreError(
            f"The server of the state at {location} does not answer ({type(error).__name__}: {_plain(error)}). See "
            "that it runs, and that this machine may reach it."
        ) from error
    except redis.RedisError as error:
        raise StoreError(
            f"The server of the state at {location} refuses what was asked ({type(error).__name__}: {_plain(error)})."
        ) from error


def _plain(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


class Link:
    """A connection that waits for its answers."""

    def __init__(self, location: str, named_by: str) -> None:
        """Raises StoreError where the server cannot be reached, or would forget on its own."""
        redis = need_redis(named_by)
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry

        self._location = location
        self._no_script: type[Exception] = redis.exceptions.NoScriptError
        state, arguments = connection_arguments(location)
        self.prefix = b"{neardup:" + state.encode() + b"}"
        # A program may be sent twice, so all of them may be sent again.
        retry = Retry(ExponentialBackoff(cap=1.0, base=0.05), _TIMES)
        again = [redis.ConnectionError, redis.TimeoutError, redis.exceptions.BusyLoadingError]
        self._client = redis.Redis(**arguments, retry=retry, retry_on_error=again)
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
        return Program(self.prefix)

    def run(self, program: Program) -> list[Any]:
        """The answers of a program, behind a 1; or a 0, and where the condition stands that did not hold."""
        client, keys = self.client, program.keys
        with told(self._location):
            try:
                found = client.evalsha(script_digest(), len(keys), *keys, *program.arguments)
            except self._no_script:  # the first one, and the first after a restart
                found = client.eval(SCRIPT, len(keys), *keys, *program.arguments)
        return list(found)

    def refuse_what_forgets(self) -> None:
        """Raise StoreError for a server that removes keys when its memory is full."""
        with told(self._location):
            policy = self.client.info("memory").get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            raise StoreError(
                f"The server of the state at {self._location} forgets keys when its memory is full (maxmemory-policy "
                f"{policy}), and pages would be delivered twice without a word. Set it to noeviction, with: CONFIG SET "
                "maxmemory-policy noeviction, and in its configuration; or give the state a server of its own."
            )

    def wait_longer(self) -> None:
        """Send a program again for half a minute, if no answer comes: for who need not hurry."""
        from redis.backoff import ExponentialBackoff
        from redis.retry import Retry

        self.client.set_retry(Retry(ExponentialBackoff(cap=1.0, base=0.05), _MORE_TIMES))

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
