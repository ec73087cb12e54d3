"""Leases: which crawls are alive, and who works on what."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from secrets import randbelow, token_bytes

from scrapy_neardup.errors import StoreError
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.server.connection import Link
from scrapy_neardup.server.layout import GIVEN_UP, Spot, lease_name, number_name, spot
from scrapy_neardup.server.program import Program
from scrapy_neardup.state import layout

logger = line_logger(__name__)

#: Seconds for which a crawl that is not heard of keeps what it has not sealed, and its place before others.
LEASE = 60.0
#: Low bits of an id that tell who gave it: two crawlers never give the same one.
NUMBER_BITS = 12


class PageLost(StoreError):
    """A page that was on its way is not there any more: it was taken back, or the server has lost it."""


def _clock() -> float:
    """Seconds, of which those count during which the machine slept."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Leases:
    """Those of one store. A thread renews them: a loop that is busy must not cost a crawl its place."""

    def __init__(self, link: Link, location: str, seconds: float = LEASE) -> None:
        self.held: set[int] = set()
        self.seconds = seconds
        self._link = link
        self._location = location
        self._crawls: dict[int, tuple[bytes, Spot]] = {}
        self.token = token_bytes(8)
        self._milliseconds = round(seconds * 1000)
        self._number: int | None = None
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        #: When the server was last known to hold a lease of ours, and whether it forgot one that had not ended.
        self._renewed = _clock()
        self._is_forgotten = False

    @property
    def number(self) -> int:
        """What tells our ids from those of others; drawn when it is first asked for."""
        if self._number is None:
            self._number = self._drawn()
            self._renew_from_now_on()
        return self._number

    def hold(self, crawl: int, program: Program) -> None:
        """Have a program, with which a crawl begins, take its lease."""
        program.take_lease(lease_name(crawl), self.token, self._milliseconds)
        self.held.add(crawl)
        self._renewed = _clock()
        self._renew_from_now_on()

    def expect(self, crawl: int, program: Program) -> None:
        """Have a program done only if the crawl is still ours, or nobody's."""
        where = self._crawls.get(crawl)
        if where is None:  # asked for twice for each page
            where = self._crawls[crawl] = lease_name(crawl), spot(layout.generation_key(crawl))
        program.expect_lease(where[0], self.token, self._milliseconds, where[1])

    def end(self, crawl: int, program: Program) -> None:
        """Have a program give a lease back; of a crawl that is known no more, nothing is left."""
        program.end_lease(lease_name(crawl), self.token)
        self.held.discard(crawl)

    def take(self, crawl: int) -> bool:
        """Whether nobody was at work on a crawl, and now it is ours."""
        if crawl in self.held:
            return False
        program = self._link.program()
        self.hold(crawl, program)
        # From here on whoever had it cannot go on: some of its pages may have gone, and it would not know which.
        program.note(GIVEN_UP, layout.generation_key(crawl), b"")
        if self._link.run(program)[0] == 1:
            return True
        self.held.discard(crawl)
        return False

    def is_others(self, crawl: int) -> bool:
        """Whether somebody else is at work on a crawl."""
        program = self._link.program()
        program.lasts(lease_name(crawl))
        return crawl not in self.held and self._link.run(program)[1] >= 0

    def lost(self, kind: type[StoreError] = StoreError) -> StoreError:
        """The error to raise where our place was given to others, or the server knows nothing of it."""
        seconds = _clock() - self._renewed
        if self._is_forgotten or seconds < self.seconds:
            return kind(
                f"The server of the state at {self._location} has lost this crawl, which it knew {seconds:.0f} seconds "
                "ago. Check whether it was emptied (FLUSHALL) or restarted without its data, then start the crawl "
                "again. The lost pages come again."
            )
        return kind(
            f"This crawl was silent for more than {self.seconds:.0f} seconds, so others rolled back its unsealed pages "
            f"in the state at {self._location}. Check whether its machine slept or lost the server, then start it "
            "again. The lost pages come again."
        )

    def close(self) -> None:
        """Give all of them back, so that nobody waits for them to end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        program = self._link.program()
        for crawl in self.held.copy():
            self.end(crawl, program)
        if self._number is not None:
            program.end_lease(number_name(self._number), self.token)
            self._number = None
        if program.writes:
            with suppress(StoreError):  # the server is gone: they end by themselves
                self._link.run(program)

    def _drawn(self) -> int:
        for _ in range(4 << NUMBER_BITS):
            number = randbelow(1 << NUMBER_BITS)
            if self._link.run(self._numbered(number))[0] == 1:
                return number
        raise StoreError(f"More than {(1 << NUMBER_BITS) - 1:,} crawls use the state at {self._location}. Run fewer.")

    def _numbered(self, number: int) -> Program:
        program = self._link.program()
        program.take_lease(number_name(number), self.token, self._milliseconds)
        return program

    def _renew_from_now_on(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._renew, name="neardup-lease", daemon=True)
            self._thread.start()

    def _renew(self) -> None:
        while not self._stop.wait(self.seconds / 4):
            self._try_to_renew()

    def _try_to_renew(self) -> None:
        """Whatever goes wrong is tried again: if the thread ended, others would take the crawl back."""
        try:
            self._renew_all()
        except StoreError:
            pass  # who uses the state meets it too
        except Exception:
            logger.exception("A lease on the state at %s could not be renewed. It is tried again.", self._location)

    def _renew_all(self) -> None:
        for crawl in self.held.copy():
            program = self._link.program()
            self.expect(crawl, program)
            program.take_lease(lease_name(crawl), self.token, self._milliseconds)
            # Who writes under one that is lost meets the error.
            if self._link.run(program)[0] == 1:
                self._renewed = _clock()
            elif _clock() - self._renewed < self.seconds:
                self._is_forgotten = True
        if self._number is not None and self._link.run(self._numbered(self._number))[0] == 0:
            self._number = self._drawn()
