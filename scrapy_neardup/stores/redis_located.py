"""Connections to a node that may be another one tomorrow; where it is just now, a ``Locator`` says (``redis_nodes``).

A server that says it is not the one, or not now (a replica, a slot that moves or has moved, a cluster that is down), is
as good as gone: the connection is closed, and the next one asks again. A program that was refused so was not done, not
even in part, as it is one script. Once the node is another one, nothing is sent any more to the one before: what it
still answers may be old.
"""

from __future__ import annotations

import asyncio
from typing import Any

import redis
import redis.asyncio.connection as for_loops
from redis import exceptions

from scrapy_neardup.stores.redis_nodes import Locator, Relocated, is_of_cluster, lacks_replicas


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
