"""Who is at work on a state: each crawl is held by a lease, which ends by itself when its process is no more.

A lease that has ended can be taken by whoever comes, and by the one who had it if nobody did. So a crawl that was cut
off for longer goes on as if nothing were, unless others have begun to take back what it had not sealed: that it is
told.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from secrets import randbelow, token_bytes

from scrapy_neardup.errors import StoreError
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.redis_layout import GIVEN_UP, Spot, lease_name, number_name, spot
from scrapy_neardup.stores.redis_link import Link
from scrapy_neardup.stores.redis_program import Program

#: Seconds for which a crawl that is not heard of keeps what it has not sealed, and its place before others.
LEASE = 60.0
#: Low bits of an id that tell who gave it: two crawlers never give the same one.
NUMBER_BITS = 12


class PageLost(StoreError):
    """A page that was on its way is not there any more: it was taken back, or the server has lost it."""


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
        program.held(lease_name(crawl))
        return crawl not in self.held and self._link.run(program)[1] == 1

    def lost(self, kind: type[StoreError] = StoreError) -> StoreError:
        """The error to raise where our place was given to others."""
        return kind(
            f"This crawl was not heard of for more than {self.seconds:.0f} seconds, so what it had not sealed in the "
            f"state at {self._location} was taken back by others. See whether its machine was asleep, or cut off from "
            "the server. Start it again: what is lost comes again."
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
        raise StoreError(f"More than {(1 << NUMBER_BITS) - 1:,} crawlers work on the state at {self._location}.")

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
            with suppress(StoreError):  # who uses the state meets it too; here it is tried again
                for crawl in self.held.copy():
                    program = self._link.program()
                    self.expect(crawl, program)
                    program.take_lease(lease_name(crawl), self.token, self._milliseconds)
                    self._link.run(program)  # one that is lost is told of to whoever writes under it
                if self._number is not None and self._link.run(self._numbered(self._number))[0] == 0:
                    self._number = self._drawn()
