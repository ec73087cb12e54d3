"""A crawl without end: memory, disk and time a page while pages come and expire, and whether they stay as they are.

    python benchmarks/endless.py [PAGES [leveldb|sqlite|memory]] [--max-pages N] [--ttl HOURS] [--directory DIR]

Of the pages, 5,000,000 if nothing is said, 70 in a hundred are new articles, 15 copies of a recent one at a new URL, 13
come again as they were, and 2 with another text. Their keys and sketches are drawn at random, as many and as long as
the default method makes of articles of 1,500 letters; all else is as in a crawl: the look for candidates, the
comparison, filing, and a feed of 1,000 items that is stored and seals its pages. Recent are half as many pages as may
be known. The clock is moved: a quarter as many pages come at 40 a second, then as many at 5, and so on, so that now the
number of pages is the bound, and now the TTL. A tenth of all three numbers goes through the state as often.

Each row is a twentieth of the pages. ``longest``: the page that took longest of all that came then, by the clock.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import resource
import struct
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from synthetic import pages as synthetic_pages

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.sketch import HEAD, OPENING_BYTES
from scrapy_neardup.model import Fingerprint, Page, SiteCounts
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import STORES, open_at
from scrapy_neardup.state.pages import PageStore

#: Items of a feed, after which it is stored.
BATCH = 1_000
#: The two speeds, in pages a second.
FAST, SLOW = 40, 5
ROWS = 20
TEXT = "渡口今天早上开航，往来的人很多，船工说水位比去年高了两尺，两岸的人都在等着看灯。" * 2


class Drawn(Cascade):
    """The default method, but for what it makes of a page: that is drawn by the number in its title."""

    def __init__(self) -> None:
        super().__init__()
        self.models = [Cascade().fingerprint(page) for page in synthetic_pages(200)]

    def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        number = int(page.title.partition(" ")[0])
        model = self.models[number % len(self.models)]
        many, size = len(model.keys), len(model.sketch)
        drawn = hashlib.shake_128(number.to_bytes(8, "big")).digest(8 * many + 12 + size)
        keys = struct.unpack_from(f">{many}Q", drawn)
        body, title = struct.unpack_from(">QI", drawn, 8 * many)
        _, _, *rest = HEAD.unpack_from(model.sketch)
        sketch = bytearray(HEAD.pack(body, title, *rest) + drawn[8 * many + 12 + HEAD.size :])
        counted = self.order_of(model.sketch)
        sketch[counted] = model.sketch[counted]
        return Fingerprint(keys_of(keys), bytes(sketch), own=1500)

    def order_of(self, sketch: bytes) -> int:
        """Where it is counted how many sentences the order of a sketch is of."""
        *_, sentences, numbers, words = HEAD.unpack_from(sketch)
        minwise = self.parameters.bins * self.parameters.bits // 8
        return int(HEAD.size + minwise + OPENING_BYTES + 4 * sentences + 2 * numbers + 3 * words)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        return ()


@dataclass
class Clock:
    """What time it is where the pages come from, in seconds since 1970; ``pace``: pages at one speed."""

    pace: int
    now: float = 1_750_000_000.0
    last: int = 0

    def tick(self, number: int) -> None:
        self.now += 1 / (FAST if number // self.pace % 2 == 0 else SLOW)

    def new_id(self) -> int:
        self.last = max(self.last + 1, int(self.now * 1e9))
        return self.last


@dataclass
class Crawl:
    """Draws pages and has them judged; ``recent``: URL and article of those that may be copied, or come again."""

    store: PageStore
    detector: Detector
    clock: Clock
    recent: deque[tuple[str, int]]
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    held: list[int] = field(default_factory=list)
    longest: float = 0.0

    def come(self, number: int) -> None:
        self.clock.tick(number)
        page = self.drawn(number)
        begun = time.perf_counter()
        ruling = self.detector.check(page)
        assert isinstance(ruling, Ruled)
        if ruling.reservation is not None:
            self.detector.commit(ruling.reservation, sealed=False)
            self.held.append(ruling.reservation.record.id)
            if len(self.held) == BATCH:
                self.detector.seal(self.held)
                self.held.clear()
        self.longest = max(self.longest, time.perf_counter() - begun)

    def drawn(self, number: int) -> Page:
        kind, known = self.chance.random(), self.recent
        if kind < 0.7 or not known:
            url, article = f"https://news{number % 50}.example.com/{number % 12 + 1:02d}/article-{number}.html", number
        else:
            url, article = known[self.chance.randrange(len(known))]
            if kind < 0.85:
                return page_of(f"https://mirror{number % 9}.example.net/{number}.html", article)
            if kind >= 0.98:
                article = number
        known.append((url, article))
        return page_of(url, article)


def page_of(url: str, article: int) -> Page:
    """A page with so much text that it is judged, and the number of its article for a title."""
    return Page(url, str(article), text=TEXT, site=url.split("/")[2])


@dataclass(frozen=True)
class Row:
    """What was measured of a twentieth of the pages."""

    known: int
    memory: float
    disk: float
    spent: float
    longest: float


def main() -> None:
    parser = argparse.ArgumentParser(description="A crawl without end.")
    parser.add_argument("pages", type=int, nargs="?", default=5_000_000)
    parser.add_argument("store", nargs="?", default="")
    parser.add_argument("--max-pages", type=int, default=200_000)
    parser.add_argument("--ttl", type=float, default=7.0, help="in hours")
    parser.add_argument("--directory", default=None)
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%F')}")
    for name in [given.store] if given.store else ["leveldb", "sqlite"]:
        bounds = Bounds(given.ttl * 3600, given.max_pages)
        print(f"\n{name}: {given.pages:,} pages, at most {given.max_pages:,} known, {given.ttl:g} h after last sight")
        print(f"{'pages':>10} {'known':>9} {'MiB':>7} {'MB disk':>8} {'µs a page':>10} {'longest ms':>11}", flush=True)
        with tempfile.TemporaryDirectory(dir=given.directory) as directory:
            tell(list(measured(name, directory, given.pages, bounds)))


def measured(name: str, directory: str, count: int, bounds: Bounds) -> Iterator[Row]:
    """A row for each twentieth; the state is closed and compacted at the end."""
    most = bounds.max_pages or count
    clock = Clock(max(1, most // 4))
    store: PageStore = open_at(STORES[name], f"{directory}/state", {})
    store.clock.new_id = clock.new_id  # type: ignore[method-assign]
    store.clock.now = lambda: clock.now  # type: ignore[method-assign]
    gone = [0]

    def expired(pages: int) -> None:
        gone[0] += pages

    method = Drawn()
    detector = Detector(
        method, store, who="benchmark", bounds=bounds, on_expired=expired, policy=Policy(keep=Keep.NOTHING)
    )
    crawl = Crawl(store, detector, clock, deque(maxlen=max(1, most // 2)))
    each = count // ROWS
    for row in range(ROWS):
        begun, crawl.longest = time.process_time(), 0.0
        for number in range(row * each, (row + 1) * each):
            crawl.come(number)
        spent = (time.process_time() - begun) / each
        found = Row(store.pages, memory(), store.size() / 1e6, spent * 1e6, crawl.longest * 1e3)
        print(
            f"{(row + 1) * each:10,} {found.known:9,} {found.memory:7.0f} {found.disk:8.1f} {found.spent:10.0f} "
            f"{found.longest:11.0f}",
            flush=True,
        )
        yield found
    detector.seal()
    detector.trim()
    detector.end()
    print(f"{gone[0]:,} pages expired; {store.pages:,} are known at the end")
    if store.lasts:
        before = store.size()
        begun = time.perf_counter()
        store.kv.compact()
        took = time.perf_counter() - begun
        print(f"compacting: {before / 1e6:.1f} MB to {store.size() / 1e6:.1f} MB in {took:.1f} s", flush=True)
    store.close()
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def tell(rows: list[Row]) -> None:
    """The last tenth against the first one, in which the state was empty at first, and against the second one."""
    tenths = [rows[at : at + 2] for at in range(0, ROWS, 2)]
    for name, first in (("first", tenths[0]), ("second", tenths[1])):
        ratios = []
        for what in ("memory", "disk", "spent"):
            last, then = (sum(getattr(row, what) for row in tenth) for tenth in (tenths[-1], first))
            ratios.append(f"{what} {last / then if then else 0:.2f}")
        print(f"last tenth / {name} tenth: {', '.join(ratios)}", flush=True)


def memory() -> float:
    """What this process has, in MiB."""
    statm = Path("/proc/self/statm").read_text(encoding="ascii")
    return int(statm.split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
