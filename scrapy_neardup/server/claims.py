"""Leases on a server: of crawls, and of the numbers that make ids different."""

from __future__ import annotations

import struct
import threading
from contextlib import suppress
from secrets import randbelow, token_bytes
from typing import TYPE_CHECKING

from scrapy_neardup.errors import StoreError
from scrapy_neardup.server.layout import lease_name, number_name
from scrapy_neardup.server.program import PendingPage, Program
from scrapy_neardup.state.record import Record
from scrapy_neardup.untrusted import line_logger

if TYPE_CHECKING:
    from scrapy_neardup.server.connection import Link

logger = line_logger(__name__)

#: Seconds after which a silent crawl may lose its unsealed pages.
LEASE = 60.0
#: The low bits of an id are the number of the crawler: two crawlers never give the same id.
NUMBER_BITS = 12


class PageLost(StoreError):
    """A page is no longer in flight: others rolled it back, or the server lost it."""


class Leases:
    """The leases of one store. A thread renews them: a busy loop would lose them."""

    def __init__(self, link: Link, location: str, seconds: float = LEASE) -> None:
        #: The crawls whose lease is ours.
        self.crawls: set[int] = set()
        self.seconds = seconds
        self.token = token_bytes(8)
        self._link = link
        self._location = location
        self._milliseconds = round(seconds * 1000)
        self._number: int | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def number(self) -> int:
        """The number in our ids; drawn at first use."""
        if self._number is None:
            self._number = self._draw_number()
            self._start_thread()
        return self._number

    def take_new(self, crawl: int, program: Program) -> None:
        """Take the lease of a crawl that begins with this program."""
        self.take(lease_name(pack(crawl)), program)
        self.crawls.add(crawl)
        self._start_thread()

    def take(self, name: bytes, program: Program) -> None:
        """Take or renew any lease; require that nobody else holds it."""
        program.take_lease(name, self.token, self._milliseconds)

    def expect(self, crawl: int, program: Program) -> None:
        """Require that nobody else has taken the crawl."""
        program.expect_lease(pack(crawl), self.token, self._milliseconds)

    def end(self, crawl: int, program: Program) -> None:
        program.end_lease(lease_name(pack(crawl)), self.token)
        self.crawls.discard(crawl)

    def take_over(self, crawl: int) -> bool:
        """Take the lease of a crawl, to roll it back; False if somebody holds it."""
        if crawl in self.crawls:
            return False
        program = self._link.program()
        self.take_new(crawl, program)
        program.give_up(pack(crawl))
        if self._link.run(program)[0] == 1:
            return True
        self.crawls.discard(crawl)
        return False

    def is_held_by_others(self, crawl: int) -> bool:
        """Whether somebody else holds the lease of a crawl."""
        program = self._link.program()
        program.pending(bytes(8) + pack(crawl))
        return crawl not in self.crawls and self._link.run(program)[2] >= 0

    def loss(self, kind: type[StoreError] = StoreError) -> StoreError:
        """Return the error that says why the server no longer knows a lease or a page of ours."""
        return kind(
            f"The state at {self._location} has lost this crawl. Either it was silent for more than {self.seconds:.0f} "
            "seconds, so that others rolled back its unsealed pages: check whether its machine slept or lost the "
            "server. Or the server was emptied (FLUSHALL) or restarted without its data. Then start the crawl again. "
            "The lost pages come again."
        )

    def stop_renewing(self) -> None:
        """Let the leases run out."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def close(self) -> None:
        """Give back all leases. Then nobody waits for their end."""
        self.stop_renewing()
        program = self._link.program()
        for crawl in self.crawls.copy():
            self.end(crawl, program)
        if self._number is not None:
            program.end_lease(number_name(self._number), self.token)
            self._number = None
        if not program.is_empty:
            with suppress(StoreError):  # without the server they end by themselves
                self._link.run(program)

    def _draw_number(self) -> int:
        for _ in range(4 << NUMBER_BITS):
            number = randbelow(1 << NUMBER_BITS)
            if self._has_taken(number):
                return number
        raise StoreError(f"More than {(1 << NUMBER_BITS) - 1:,} crawls use the state at {self._location}. Run fewer.")

    def _has_taken(self, number: int) -> bool:
        program = self._link.program()
        self.take(number_name(number), program)
        return bool(self._link.run(program)[0] == 1)

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep_renewing, name="neardup-lease", daemon=True)
            self._thread.start()

    def _keep_renewing(self) -> None:
        while not self._stop.wait(self.seconds / 4):
            try:
                self._renew()
            except StoreError:  # noqa: PERF203  # each try takes a way to the server
                pass  # who uses the state meets it too
            except Exception:  # without the thread, others would roll the crawl back
                logger.exception("A lease on the state at %s could not be renewed. It is tried again.", self._location)

    def _renew(self) -> None:
        for crawl in self.crawls.copy():
            program = self._link.program()
            self.expect(crawl, program)
            self.take(lease_name(pack(crawl)), program)
            self._link.run(program)  # if the lease is lost, the next write of this crawl meets the error
        if self._number is not None and not self._has_taken(self._number):
            self._number = self._draw_number()


def pack(id: int) -> bytes:
    """Return the 8 bytes of an id or a key."""
    return id.to_bytes(8, "big")


def pending_page(record: Record, crawl: int, url_row: bytes) -> PendingPage:
    """Return the page of a crawl that has this record. ``url_row``: the key of the row of its URL."""
    heads = url_row[1:] + struct.pack(f">{len(record.keys)}Q", *record.keys)
    return PendingPage(pack(record.id) + pack(crawl), heads, record.pack())
