"""A network between crawlers and a server that is slow, breaks off, or falls silent, as a test says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.server.redis_server import Server


class Network:
    """Hands on what comes to a socket of its own, by a loop in a thread of its own.

    ``delay``: seconds for each way. ``silent``: what comes is held back until it is no more.
    """

    def __init__(self, server: Server) -> None:
        self.server = server
        self.socket: Path = server.folder / "n"
        self.delay = 0.0
        self.silent = False
        #: Pieces that came from crawlers, and connections that were broken off.
        self.asked = self.broken = 0
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()

    def url(self, state: str) -> str:
        return f"unix://{self.socket}?db=0&state={state}"

    def break_off(self) -> None:
        """End all connections, whatever is on its way: what the server was told may be done, and its answer lost."""

        def end() -> None:
            for writer in self._open:
                writer.transport.abort()
                self.broken += 1
            self._open.clear()

        self._loop.call_soon_threadsafe(end)

    async def _serve(self) -> None:
        async with await asyncio.start_unix_server(self._connected, self.socket):
            await self._over.wait()
            for writer in self._open:
                writer.transport.abort()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            behind, before = await asyncio.open_unix_connection(self.server.socket)
            ours = {writer, before}
            self._open |= ours
            await asyncio.gather(self._hand_on(reader, before, counted=True), self._hand_on(behind, writer))
            self._open -= ours

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counted: bool = False) -> None:
        with suppress(OSError):
            while said := await reader.read(1 << 20):
                self.asked += counted
                await asyncio.sleep(self.delay)
                while self.silent:
                    await asyncio.sleep(0.02)
                writer.write(said)
                await writer.drain()
        writer.close()

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)


@contextmanager
def network(server: Server) -> Iterator[Network]:
    """One to this server, that ends with the block."""
    found = Network(server)
    thread = threading.Thread(target=found.run, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.stop()
        thread.join()
