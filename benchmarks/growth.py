"""Time, memory and disk a page, while one crawl fills a state.

    python benchmarks/growth.py [PAGES ...] [--store leveldb|sqlite|memory]
    python benchmarks/growth.py 250000 500000 5000000 --max-pages 200000 --ttl 7    # a state with bounds

Each row is measured on the last pages before so many were judged. 68 of 100 pages are new articles, 17 are copies at a
new URL, and 15 come again. Half of the copies are of one of the last 10,000 articles, the others of any article that
the state may still hold. Keys and sketches are drawn at random, as many and as long as the default method makes of
articles of 1,500 letters. Sites and titles follow Zipf's law: three of ten pages of a site share one of four keys, and
two of ten pages have a title that others have too. The crawl's feed is stored after every 1,000 items.

The clock of the state is moved: pages come at 40 a second, and every other quarter of ``--max-pages`` at 5 a second, so
that either the number of pages or their age is the bound. 10 million pages take some hours and 8 GB of disk.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from synthetic import pages as synthetic_pages

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.sketch import HEAD
from scrapy_neardup.model import Fingerprint, Page, SiteCounts
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import STORES

SIZES = (10_000, 100_000, 1_000_000)
#: Items of a feed, after which it is stored.
BATCH = 1_000
NEW, COPY = 0.68, 0.85
RECENT = 10_000
SHARED_TITLE, SHARED_FORM = 0.2, 0.3
SITES, FORMS, TITLES = 100_000, 4, 4_000_000
#: The two speeds, in pages a second.
FAST, SLOW = 40, 5
TEXT = "渡口今天早上开航，往来的人很多，船工说水位比去年高了两尺，两岸的人都在等着看灯。" * 2
#: The kinds of rows, by their first byte: see ``state/layout.py``.
PARTS = {b"k": "postings", b"r": "records", b"u": "URLs", b"e": "evidence", b"d": "drops", b"b": "counts"}


class Draw(NamedTuple):
    """The random properties of the page with a number: always the same."""

    kind: float
    which: float
    site: int
    title: int
    form: int

    @classmethod
    @lru_cache(maxsize=100)
    def of(cls, number: int) -> Draw:
        """Draw them."""
        drawn = struct.unpack(">6Q", hashlib.blake2b(b"%d" % number, digest_size=48).digest())
        kind, which, site, shared, title, form = (one / 2**64 for one in drawn)
        place = zipf(site, 0.5, SITES)
        return cls(
            kind,
            which,
            place,
            zipf(title, 0.3, TITLES) if shared < SHARED_TITLE else -1,
            place * FORMS + int(form / SHARED_FORM * FORMS) if form < SHARED_FORM else -1,
        )


def zipf(chance: float, exponent: float, most: int) -> int:
    """A rank from 0 on; a rank from x on has the chance x ** -exponent."""
    return int(min((1 - chance) ** (-1 / exponent), float(most))) - 1


def article_of(number: int, span: int) -> int:
    """The number of the article of a page: its own, or that of a new article at most ``span`` pages before."""
    draw = Draw.of(number)
    if draw.kind < NEW or not number:
        return number
    back = draw.which * 2
    oldest = min(number, span)
    found = number - 1 - int(back * min(oldest, RECENT) if back < 1 else (back - 1) * oldest)
    while found > 0 and Draw.of(found).kind >= NEW:
        found -= 1
    return max(found, 0)


def page_of(number: int, span: int) -> Page:
    """The page with a number; its title begins with the number of its article."""
    article, draw = article_of(number, span), Draw.of(number)
    month = article % 12 + 1
    if draw.kind < NEW or draw.kind >= COPY:
        url = f"https://news{Draw.of(article).site}.example.com/2026/{month:02d}/article-{article}.html"
    else:
        url = f"https://mirror{draw.site}.example.net/2026/{month:02d}/{number}.html"
    letters = np.frombuffer(hashlib.shake_128(b"%d" % article).digest(28), np.uint16) % 2500
    title = f"{article} {''.join(map(chr, (letters + 0x4E00).tolist()))}"
    return Page(url, title, text=TEXT, site=url.split("/")[2])


class Drawn(Cascade):
    """The default method with drawn fingerprints."""

    def __init__(self) -> None:
        super().__init__()
        self.models = [Cascade().fingerprint(page) for page in synthetic_pages(200)]

    def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        """Draw it by the number in the title."""
        number = int(page.title.partition(" ")[0])
        draw, model = Draw.of(number), self.models[number % len(self.models)]
        many, size = len(model.keys), len(model.sketch)
        drawn = hashlib.shake_128(number.to_bytes(8, "big")).digest(8 * many + 12 + size)
        keys = list(struct.unpack_from(f">{many}Q", drawn))
        body, title = struct.unpack_from(">QI", drawn, 8 * many)
        sketch = bytearray(HEAD.pack(body, title, *HEAD.unpack_from(model.sketch)[2:]))
        sketch += drawn[8 * many + 12 + HEAD.size :]
        counted = self._order_at(model.sketch)
        sketch[counted] = model.sketch[counted]
        if draw.title >= 0:
            keys[0] = shared_key(b"title %d" % draw.title)
        if draw.form >= 0:
            keys[-1] = shared_key(b"form %d" % draw.form)
        own = np.frombuffer(hashlib.shake_128(page.title.encode()).digest(4 * 35), np.uint32)
        form = np.frombuffer(hashlib.shake_128(b"site %d" % draw.site).digest(4 * 6), np.uint32)
        return Fingerprint(keys_of(keys), bytes(sketch), own=1500, sentences=np.concatenate((own, form)))

    def _order_at(self, sketch: bytes) -> int:
        """Where a sketch counts the sentences whose order it holds."""
        *_, sentences, numbers, words = HEAD.unpack_from(sketch)
        minwise = self.parameters.bins * self.parameters.bits // 8
        return int(HEAD.size + minwise + 4 * sentences + 2 * numbers + 3 * words)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        """Sentences as long as those of articles."""
        return tuple(TEXT[n : n + 30] for n in range(limit))


def shared_key(name: bytes) -> int:
    """A key that several pages have."""
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big")


@dataclass
class Clock:
    """Seconds since 1970; ``pace``: pages at one of the two speeds."""

    pace: int
    now: float = 1_750_000_000.0
    last: int = 0

    def tick(self, number: int) -> None:
        """Move to the page with a number."""
        self.now += 1 / (FAST if number // self.pace % 2 == 0 else SLOW)

    def new_id(self) -> int:
        """The id of a page, as of ``PageStore.new_id``."""
        self.last = max(self.last + 1, int(self.now * 1e9))
        return self.last


@dataclass
class Crawl:
    """One crawl; ``number`` is that of its next page, ``held`` the pages that are not sealed."""

    store: PageStore
    bounds: Bounds
    keep: Keep
    number: int = 0
    held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        most = self.bounds.max_pages
        self.span = most // 2 if most else 2**62
        clock = self.clock = Clock(max(1, most // 4) if most else 2**62)
        self.store.clock.new_id = clock.new_id  # type: ignore[method-assign]
        self.store.clock.now = lambda: clock.now  # type: ignore[method-assign]
        self.detector = Detector(
            Drawn(), self.store, who="benchmark", bounds=self.bounds, policy=Policy(keep=self.keep)
        )

    def run(self, count: int) -> Times:
        """Judge so many pages."""
        times = Times()
        for _ in range(count):
            page = page_of(self.number, self.span)
            self.clock.tick(self.number)
            self.number += 1
            began, cpu = time.perf_counter_ns(), time.thread_time_ns()
            ruling = self.detector.check(page)
            between = time.thread_time_ns()
            assert isinstance(ruling, Ruled)
            times.look_up.append(between - cpu)
            if ruling.reservation is not None:
                self.detector.commit(ruling.reservation, sealed=False)
                times.commit.append(time.thread_time_ns() - between)
                self.held.append(ruling.reservation.record.id)
            times.longest = max(times.longest, time.perf_counter_ns() - began)
            if len(self.held) == BATCH:
                self.seal()
        return times

    def seal(self) -> None:
        """Store the feed."""
        self.detector.seal(self.held)
        self.held.clear()

    def rest(self) -> None:
        """Seal, and wait until the store has nothing to do."""
        self.seal()
        quiet = 0
        while quiet < 3:
            began = time.process_time()
            time.sleep(0.3)
            quiet = quiet + 1 if time.process_time() - began < 0.01 else 0


@dataclass
class Times:
    """Nanoseconds: of this thread's processor for each look-up and commit; by the clock for the longest page."""

    look_up: list[int] = field(default_factory=list)
    commit: list[int] = field(default_factory=list)
    longest: int = 0


def row(crawl: Crawl, window: int) -> str:
    """Judge the pages of a window, after the store came to rest."""
    crawl.rest()
    began = time.process_time_ns()
    times = crawl.run(window)
    crawl.rest()
    every = (time.process_time_ns() - began) / window / 1e3
    store, held = crawl.store, memory()
    return (
        f"{crawl.number:11,} {store.pages:11,} {median(times.look_up) / 1e3:8.0f} {median(times.commit) / 1e3:7.0f} "
        f"{every:8.0f} {times.longest / 1e6:11.0f} {held['RssAnon']:8.0f} {held['RssFile']:7.0f} "
        f"{store.kv.size() / 1e6:9.1f} {store.kv.size() / store.pages:7.0f}"
    )


def parts(store: PageStore) -> Iterator[str]:
    """What each kind of row takes on disk."""
    db: Any = getattr(getattr(store.kv, "base", None), "_db", None)
    if store.scheme == "leveldb" and db is not None:
        for first, name in PARTS.items():
            yield f"{db.approximate_size(first, bytes([first[0] + 1])) / store.pages:.1f} {name}"


def memory() -> dict[str, float]:
    """The memory of this process in MiB: its own, and mapped files, which the system may take back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = (line.split() for line in lines if line.startswith(("RssAnon", "RssFile")))
    return {name.rstrip(":"): int(size) / 1024 for name, size, *_ in found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="*", default=SIZES, help="rows of the table")
    parser.add_argument("--store", choices=["leveldb", "sqlite", "memory"], default="leveldb")
    parser.add_argument("--window", type=int, default=5_000, help="pages that are measured for a row")
    parser.add_argument("--keep", choices=[Keep.NOTHING.value, Keep.EVIDENCE.value], default=Keep.EVIDENCE.value)
    parser.add_argument("--max-pages", type=int, default=0)
    parser.add_argument("--ttl", type=float, default=0.0, help="in hours")
    parser.add_argument("--directory", help="for the state")
    given = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {given.store}")
    print("microseconds of processor a page: median of look-up and commit, mean of all threads; MiB; MB; bytes a page")
    print(
        f"{'judged':>11} {'known':>11} {'look-up':>8} {'commit':>7} {'all':>8} {'longest, ms':>11} {'memory':>8} "
        f"{'mapped':>7} {'disk':>9} {'a page':>7}"
    )
    with tempfile.TemporaryDirectory(dir=given.directory) as directory:
        bounds = Bounds(given.ttl * 3600 or None, given.max_pages or None)
        with closing(open_at(STORES[given.store], f"{directory}/state", {})) as store:
            crawl = Crawl(store, bounds, Keep(given.keep))
            for size in sorted(given.pages):
                crawl.run(size - crawl.number - given.window)
                print(row(crawl, given.window), flush=True)
            crawl.detector.end()
            print(f"all: {store.kv.size() / store.pages:.0f} bytes a page; {', '.join(parts(store))}")


if __name__ == "__main__":
    main()
