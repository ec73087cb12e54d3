"""Bytes of memory a page while pages wait for their feeds to be stored, and at most while that is done.

    python benchmarks/waiting.py [PAGES ...]

The pages are drawn, not crawled: what is measured is all that ledger and feed watch keep of them. The feeds are files
that nothing is written to, and the state is one that forgets, so that nothing else is measured. Each row is a process
of its own; the memory is what the system has given to it (Linux only).
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot
from scrapy.statscollectors import StatsCollector

from scrapy_neardup.crawl.ledger import Ledger
from scrapy_neardup.crawl.notes import Notes, Outage
from scrapy_neardup.crawl.visits import End, JudgedPage
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Fingerprint, Kind, Verdict
from scrapy_neardup.state.record import Record

BATCH = 1000


class Slot:
    """A file of a feed, and its storage."""

    def __init__(self, name: str, batch: int = 0) -> None:
        self.uri = self.uri_template = name
        self.batch = batch
        self.itemcount = 0

    @property
    def storage(self) -> Slot:
        return self

    def open(self, spider: Spider) -> None:
        """Nothing is written."""

    def store(self, file: object) -> None:
        """It is stored at once."""


class Exporter:
    """Scrapy's feed exports, of which those in batches are stored as they fill."""

    def __init__(self, *slots: Slot) -> None:
        self.slots = list(slots)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        [slot] = self.slots
        slot.itemcount += 1
        if slot.itemcount == slot.batch:
            self.slots = [Slot(slot.uri, slot.batch)]
            slot.store(None)


class Forgetful:
    """A detector without a state."""

    def __init__(self) -> None:
        self.sealed = 0

    def commit(self, reservation: Reservation, *, sealed: bool) -> None:
        self.sealed += sealed

    def seal(self, ids: Sequence[int]) -> None:
        self.sealed += len(ids)


def one_feed() -> Exporter:
    return Exporter(Slot("mem://a"))


def two_feeds() -> Exporter:
    return Exporter(Slot("mem://a"), Slot("mem://b"))


def beside_batches() -> Exporter:
    return Exporter(Slot("mem://a"), Slot("mem://b", BATCH))


KINDS: dict[str, tuple[Callable[[], Exporter], int]] = {
    "one feed": (one_feed, 1),
    "two feeds": (two_feeds, 1),
    f"one feed, one in batches of {BATCH}": (beside_batches, 1),
    "the same, three items a page": (beside_batches, 3),
}


def main() -> None:
    counts = [int(count) for count in sys.argv[1:]] or [100_000, 1_000_000, 5_000_000]
    print(f"{'':36} {'pages':>9} {'bytes a page':>12} {'at most':>8} {'µs a page':>9}")
    for kind in KINDS:
        for count in counts:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                held, most, spent = pool.apply(measured, (kind, count))
            print(
                f"{kind:36} {count:9,} {held / count:12.1f} {most / count:8.1f} {spent / count * 1e6:9.1f}", flush=True
            )


def measured(kind: str, count: int) -> tuple[int, int, float]:
    """Bytes held once all pages have come, bytes at most until they are sealed, and seconds."""
    make, items = KINDS[kind]
    exporter, detector, notes = make(), Forgetful(), Notes(StatsCollector(Crawler(Spider)))
    slots = list(exporter.slots)
    ledger = Ledger(cast(Detector, detector), notes, Outage(notes, None), cast(FeedExporter, exporter))
    spider = Spider("any")
    before, begun = memory(), time.perf_counter()
    for _ in range(count):
        id = time.time_ns()
        verdict, record = Verdict(Kind.UNIQUE, "https://a.example/", id), Record(id, "https://a.example/", id)
        page = JudgedPage(verdict, Reservation(verdict, Fingerprint((), b""), record))
        for _ in range(items):
            page.in_pipelines += 1
            ledger.end(page, End.SCRAPED, ledger.feeds.export(None, spider))
    held = memory() - before
    for slot in cast(list[FeedSlot], exporter.slots):
        slot.storage.store(cast(Any, None))
    spent = time.perf_counter() - begun
    assert detector.sealed == count, (detector.sealed, count, len(slots))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    return held, max(held, most), spent  # the two are counted in different ways


def memory() -> int:
    """What this process has, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
