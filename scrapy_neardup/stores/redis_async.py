"""The way to a Redis server for a loop that must not be held up: several programs are on their way at once."""

from __future__ import annotations

import asyncio
from typing import Any

from scrapy_neardup.stores.redis_link import connection_arguments, need_redis, script_digest, told
from scrapy_neardup.stores.redis_script import SCRIPT, Program

#: Connections at most; with more pages at a time some wait for one.
_CONNECTIONS = 32
#: Seconds before a program is sent again that had no answer: for each time.
_PAUSES = (0.05, 0.2, 0.5)


class AsyncLink:
    """Connections of the loop that is running, to the state at a location."""

    def __init__(self, location: str, named_by: str) -> None:
        redis = need_redis(named_by)
        from redis.asyncio import BlockingConnectionPool, Redis, UnixDomainSocketConnection
        from redis.asyncio.connection import SSLConnection

        self._location = location
        self._no_script: type[Exception] = redis.exceptions.NoScriptError
        self._broken = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
        state, arguments = connection_arguments(location)
        self.prefix = b"{neardup:" + state.encode() + b"}"
        if (path := arguments.pop("unix_socket_path", None)) is not None:
            arguments |= {"connection_class": UnixDomainSocketConnection, "path": path}
        elif arguments.pop("ssl", False):
            arguments["connection_class"] = SSLConnection
        pool = BlockingConnectionPool(max_connections=_CONNECTIONS, timeout=60, **arguments)
        self._client = Redis(connection_pool=pool)
        self._pool = pool

    def program(self) -> Program:
        """An empty one for this state."""
        return Program(self.prefix)

    async def run(self, program: Program) -> list[Any]:
        """As of ``Link``; the program is sent again where no answer came."""
        for pause in _PAUSES:
            if (found := await self._answered(program)) is not None:
                return found
            await asyncio.sleep(pause)
        return await self.run_once(program)

    async def run_once(self, program: Program) -> list[Any]:
        """The same for a program of which it matters when it was done."""
        with told(self._location):
            return await self._sent(program)

    async def _answered(self, program: Program) -> list[Any] | None:
        with told(self._location):
            try:
                return await self._sent(program)
            except self._refused:
                raise
            except self._broken:
                return None

    async def _sent(self, program: Program) -> list[Any]:
        keys = program.keys
        try:
            found = await self._client.evalsha(script_digest(), len(keys), *keys, *program.arguments)
        except self._no_script:
            found = await self._client.eval(SCRIPT, len(keys), *keys, *program.arguments)
        return list(found)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.aclose()
        await self._pool.aclose()
