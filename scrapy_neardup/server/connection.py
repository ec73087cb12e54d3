"""The connection to a Redis server, a Sentinel group or a cluster. Its methods block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.errors import Relocated, is_elsewhere, is_no_answer, is_refusal, translate_errors
from scrapy_neardup.server.location import ServerLocation, read_url
from scrapy_neardup.server.nodes import Address, Locator, Sentinels, Slot
from scrapy_neardup.server.program import DIGEST, SCRIPT, Program

T = TypeVar("T")
#: Seconds to wait for an answer, and how often to try again: usually, and with patience.
_SECONDS, _TIMES, _MORE_TIMES = 5.0, 3, 40
#: Seconds before the first further try; each next one waits twice as long, at most a second.
_PAUSE = 0.1


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
        self._must_locate = True
        self._address: Address | None = None
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
        locator.doubt()
        self._must_locate = True
        return Relocated(f"{type(error).__name__}: {str(error)[:100]}")

    def _current_client(self, *, refresh: bool) -> Any:
        """Return a client for the node that holds the state now. The one for a former node is closed."""
        with self._lock:
            if self._is_closed:
                raise StoreError(f"The state at {self._location} is closed.")
            if self.locator is None:
                return self._client
            if self._must_locate:
                self.locator.locate()
                self._must_locate = False
            elif refresh:
                self.locator.refresh()
            if self._address != self.locator.address:
                self._close_client()
                self._address = self.locator.address
                self._client = self._make_client()
            return self._client

    def _make_client(self) -> Any:
        """Make a client of redis-py. It sends nothing again on its own: the caller decides that."""
        where: dict[str, Any] = {} if self._address is None else {"host": self._address[0], "port": self._address[1]}
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
