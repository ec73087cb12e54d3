"""How a state grows: time, memory and disk a page with 10 thousand, 100 thousand, 1 and 10 million pages in it.

    python benchmarks/growth.py [PAGES ...] [--store leveldb|sqlite] [--window N] [--keep nothing|evidence]
                                [--options JSON] [--directory DIR]

Of what comes, 68 in a hundred are new articles, 17 copies at a new URL, 15 come again as they were; half of the copies
are of one of the last 10,000 pages, the others of any. Keys and sketches are drawn as in ``endless.py``, as many and as
long as the default method makes of articles of 1,500 letters. Sites and titles are drawn after Zipf: of a site's pages
three in ten share one of four keys (boilerplate that is not known yet), and of all pages two in ten have a title that
others have as well, so a key of theirs is common now and then.

For each size a state is made anew. All but its last pages (100,000, half of a smaller state) are written by a process
of its own, sorted, as that is several times as fast; the last ones as a crawl files them, a batch a page, a seal every
1,000 pages, without looking anything up. When the store is at rest the next pages are judged and filed by the detector.
Of these is told: the look-up (all of ``Detector.check`` but making the fingerprint) and the commit, by the clock and by
this thread's processor time; and the processor time of all threads, in which LevelDB's merging is. Then, what each kind
of row takes on disk.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import marshal
import os
import platform
import struct
import tempfile
import time
from array import array
from collections.abc import Iterator, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from endless import Drawn, page_of

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.judge.matching import distinctive_keys
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.kv.options import DEFAULT, Options, read_options
from scrapy_neardup.methods.base import IsCommon
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Likeness, Match, Page, SiteCounts
from scrapy_neardup.state.evidence import Evidence, Keep, evidence
from scrapy_neardup.state.layout import evidence_key, last_id, pack_seen, posting_prefix, record_key, url_key
from scrapy_neardup.state.opening import STORES, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
#: Items of a feed, after which it is stored.
BATCH = 1_000
NEW, COPY = 0.68, 0.85
RECENT = 10_000
SHARED_TITLE, SHARED_FORM = 0.2, 0.3
SITES, FORMS, TITLES = 100_000, 4, 4_000_000
#: Nanoseconds between two pages.
STEP = 25_000_000
FIRST = 1_750_000_000_000_000_000
_DRAWS = struct.Struct(">6Q")
#: What each kind of row is: see ``state/layout.py``.
PARTS = {
    b"k": "postings",
    b"r": "records: URL, keys, sketch",
    b"u": "hashes of URLs, last seen",
    b"e": "evidence: titles, what copies share",
    b"d": "drops",
    b"b": "counts of sentences",
    b"j": "journal of what is not sealed",
    b"m": "recipe, tally",
}


def id_of(number: int) -> int:
    """That of the page with this number, like those of a clock: see ``PageStore.new_id``."""
    return (FIRST + number * STEP + number * 2_654_435_761 % STEP) & -0x10000


class Draw(NamedTuple):
    """What chance says of the page with a number: always the same."""

    kind: float
    which: float
    site: int
    title: int
    form: int

    @classmethod
    @lru_cache(maxsize=100)
    def of(cls, number: int) -> Draw:
        drawn = _DRAWS.unpack(hashlib.blake2b(b"%d" % number, digest_size=48).digest())
        kind, which, site, shared, title, form = (one / 2**64 for one in drawn)
        place = _zipf(site, 0.5, SITES)
        return cls(
            kind,
            which,
            place,
            _zipf(title, 0.3, TITLES) if shared < SHARED_TITLE else -1,
            place * FORMS + int(form / SHARED_FORM * FORMS) if form < SHARED_FORM else -1,
        )

    def article(self, number: int) -> int:
        """The number of the article that comes: its own, or that of an earlier new one."""
        if self.kind < NEW or not number:
            return number
        back = self.which * 2
        found = number - 1 - int(back * min(number, RECENT)) if back < 1 else int((back - 1) * number)
        while found and Draw.of(found).kind >= NEW:
            found -= 1
        return found


def _zipf(chance: float, exponent: float, most: int) -> int:
    """A rank from 0 on; that of a rank from x on is x ** -exponent."""
    return int(min((1 - chance) ** (-1 / exponent), float(most))) - 1


class Growing(Drawn):
    """The default method, whose fingerprints are drawn, some keys of which other pages share."""

    def __init__(self) -> None:
        super().__init__()
        self.next: Fingerprint | None = None
        self.compared, self.spent = 0, 0

    def fingerprint_own(self, page: Page, is_common: IsCommon, site: SiteCounts | None = None) -> Fingerprint:
        return self.next or self.drawn(page)

    def drawn(self, page: Page) -> Fingerprint:
        draw = Draw.of(int(page.title.partition(" ")[0]))
        own = np.frombuffer(hashlib.shake_128(page.title.encode()).digest(4 * 35), np.uint32)
        form = np.frombuffer(hashlib.shake_128(b"site %d" % draw.site).digest(4 * 6), np.uint32)
        return replace(self.filed(page), sentences=np.concatenate((own, form)))

    def filed(self, page: Page) -> Fingerprint:
        """What of it is kept."""
        found, draw = super().fingerprint_own(page, _nothing), Draw.of(int(page.title.partition(" ")[0]))
        keys = list(found.keys)
        if draw.title >= 0:
            keys[0] = _shared(b"title %d" % draw.title)
        if draw.form >= 0:
            keys[-1] = _shared(b"form %d" % draw.form)
        return Fingerprint(keys_of(keys), found.sketch, own=found.own)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        begun = time.perf_counter_ns()
        found = super().compare(new, old, common)
        self.spent += time.perf_counter_ns() - begun
        self.compared += 1
        return found

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        return tuple(letters(b"%s %d" % (page.title.encode(), n), 30) for n in range(limit))


def _nothing(sentences: object) -> np.ndarray:
    raise NotImplementedError


def _shared(what: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(what, digest_size=8).digest(), "big")


def letters(what: bytes, count: int) -> str:
    """Chinese characters by chance."""
    drawn = np.frombuffer(hashlib.shake_128(what).digest(2 * count), np.uint16) % 2500
    return "".join(map(chr, (drawn + 0x4E00).tolist()))


def page(number: int) -> Page:
    """What comes as the page with a number."""
    draw = Draw.of(number)
    article = draw.article(number)
    own = draw if article == number else Draw.of(article)
    month = article % 12 + 1
    if draw.kind < NEW or draw.kind >= COPY:
        url = f"https://news{own.site}.example.com/2026/{month:02d}/article-{article}.html"
    else:
        url = f"https://mirror{draw.site}.example.net/2026/{month:02d}/{number}.html"
    return replace(page_of(url, article), title=f"{article} {letters(b'%d' % article, 14)}")


@dataclass
class Grower:
    """Fills a store; ``number``: of the page that comes next."""

    store: PageStore
    keep: Keep
    method: Growing = field(default_factory=Growing)
    number: int = 0
    held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.next_id = FIRST
        self.store.clock.new_id = self.new_id  # type: ignore[method-assign]
        self.store.clock.now = lambda: (FIRST + self.number * STEP) / 1e9  # type: ignore[method-assign]
        self.detector = Detector(self.method, self.store, who="benchmark", policy=Policy(keep=self.keep))
        self.method = self.detector._method  # type: ignore[assignment]
        # What is kept of copies; to draw it for each would take most of the time.
        self.told = [self._told(page(number)) for number in range(500)]
        # How many pages are filed under each key that is shared; as many bytes, whatever comes.
        self.titles = np.zeros(TITLES, np.uint8)
        self.forms = np.zeros(SITES * FORMS, np.uint8)

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def come(self) -> Page:
        """The next page."""
        found = page(self.number)
        self.next_id = id_of(self.number)
        self.number += 1
        return found

    def common(self, fingerprint: Fingerprint, article: int) -> frozenset[int]:
        """The keys under which as many pages are filed as may be; the article is filed under the others."""
        found, draw = set(), Draw.of(article)
        for rank, filed, at in ((draw.title, self.titles, 0), (draw.form, self.forms, -1)):
            if rank < 0:
                continue
            if filed[rank] >= self.method.common:
                found.add(fingerprint.keys[at])
            else:
                filed[rank] += 1
        return frozenset(found)

    def fill(self, pages: int, *, drops: bool = True, rest: bool = True) -> None:
        """Until the state holds so many, without a look."""
        while self.store.pages < pages:
            number = self.number
            draw = Draw.of(number)
            if number and draw.kind >= COPY:
                self.number += 1
                continue
            found = self.come()
            if draw.kind < NEW or not number:
                fingerprint = self.method.filed(found)
                keys = distinctive_keys(fingerprint.keys, self.common(fingerprint, number))
                id = self.new_id()
                record = Record(id, found.url, id, 1.0, keys, fingerprint.sketch)
                told = evidence(found, None, None, copy=False, keep=self.keep)
                self.store.add(record, told, generation=self.detector.generation)
                self.hold(id)
            else:
                original = id_of(draw.article(number))
                record = Record(self.new_id(), found.url, original)
                match = Match(original, found.url, original / 1e9, 1.0, 1.0, ())
                lister = self.detector.crawl.drops
                drop = lister.rows(record.id, found.url, match, Likeness.IDENTICAL) if lister and drops else ()
                self.store.add(record, self.told[number % len(self.told)], along=drop)
        if rest:
            self.rest()

    def fill_sorted(self, pages: int) -> None:
        """The same, with all rows of a kind at once, in their order, so that there is nothing to merge.

        Drops are left out, of which a state tells of the last ones only.
        """
        store = self.store
        rows: dict[bytes, bytes] = {}
        keys, ids, urls, named = array("Q"), array("Q"), array("Q"), array("Q")
        held: list[int] = []
        packed = lru_cache(maxsize=1000)(Evidence.pack)
        with tempfile.TemporaryFile() as later:

            def add(record: Record, told: Evidence | None, **_: object) -> None:
                rows[record_key(record.id)] = record.pack()
                keys.extend(record.keys)
                ids.extend([record.id] * len(record.keys))
                urls.append(last_id(url_key(record.url, store.hashes)))
                named.append(record.id)
                marshal.dump((evidence_key(record.id), packed(told)) if told else None, later)
                if len(rows) >= BATCH:
                    store.write(Changes(dict(rows)))
                    rows.clear()

            store.add, self.hold, before = add, held.append, store.add  # type: ignore[method-assign, assignment]
            self.fill(pages, drops=False, rest=False)
            store.write(Changes(dict(rows)))
            store.add, self.hold = before, Grower.hold.__get__(self)  # type: ignore[method-assign]
            later.seek(0)
            self._write_all(row for _ in named if (row := marshal.load(later)))
        self._write_all(_posted(keys, ids))
        order = np.argsort(np.frombuffer(urls, np.uint64))
        self._write_all(
            (b"u" + urls[at].to_bytes(8, "big"), pack_seen(named[at], named[at] / 1e9)) for at in order.tolist()
        )

    def _write_all(self, rows: Iterator[Row]) -> None:
        while batch := dict(islice(rows, 10 * BATCH)):
            self.store.write(Changes(batch))

    def _told(self, page: Page) -> Evidence | None:
        match = Match(FIRST, page.url, FIRST / 1e9, 1.0, 1.0, self.method.shared(page, b""))
        return evidence(page, Likeness.IDENTICAL, match, copy=True, keep=self.keep)

    def hold(self, id: int) -> None:
        """It is in the feed."""
        self.held.append(id)
        if len(self.held) == BATCH:
            self.detector.seal(self.held)
            self.held.clear()

    def rest(self) -> None:
        """Seal, and wait until the store has nothing to do."""
        self.detector.seal(self.held)
        self.held.clear()
        quiet = 0
        while quiet < 3:
            begun = time.process_time()
            time.sleep(0.3)
            quiet = quiet + 1 if time.process_time() - begun < 0.01 else 0

    def judge(self, count: int) -> Times:
        """Have the detector judge and file the next pages."""
        times, method = Times(), self.method
        method.compared = method.spent = 0
        for _ in range(count):
            found = self.come()
            method.next = method.drawn(found)
            processor = time.process_time_ns()
            with times.of(times.look_up):
                ruling = self.detector.check(found)
            assert isinstance(ruling, Ruled)
            times.kinds[ruling.verdict.kind] = times.kinds.get(ruling.verdict.kind, 0) + 1
            if ruling.reservation is not None:
                with times.of(times.commit):
                    self.detector.commit(ruling.reservation, sealed=False)
                self.common(method.next, self.number - 1)
                times.processor += time.process_time_ns() - processor
                self.hold(ruling.reservation.record.id)
            else:
                times.processor += time.process_time_ns() - processor
        method.next = None
        begun = time.process_time_ns()
        self.rest()
        times.later = time.process_time_ns() - begun
        times.compared, times.comparing = method.compared / count, method.spent / count / 1e3
        return times


@dataclass
class Times:
    """Of each page, by the clock and by this thread's processor time, in nanoseconds."""

    look_up: list[tuple[int, int]] = field(default_factory=list)
    commit: list[tuple[int, int]] = field(default_factory=list)
    kinds: dict[Kind, int] = field(default_factory=dict)
    processor: int = 0
    later: int = 0
    compared: float = 0.0
    comparing: float = 0.0

    class _Watch:
        def __init__(self, into: list[tuple[int, int]]) -> None:
            self.into = into

        def __enter__(self) -> None:
            self.begun = time.perf_counter_ns(), time.thread_time_ns()

        def __exit__(self, *_: object) -> None:
            self.into.append((time.perf_counter_ns() - self.begun[0], time.thread_time_ns() - self.begun[1]))

    def of(self, into: list[tuple[int, int]]) -> _Watch:
        return self._Watch(into)


def _posted(keys: array[int], ids: array[int]) -> Iterator[Row]:
    """The rows of postings, in their order; no key has more ids than a row holds."""
    numbers, pages = np.frombuffer(keys, np.uint64), np.frombuffer(ids, np.uint64)
    order = np.lexsort((pages, numbers))
    before, held = -1, b""
    for at in range(0, len(order), 1_000_000):  # as lists of all would take gigabytes
        some = order[at : at + 1_000_000]
        for key, id in zip(numbers[some].tolist(), pages[some].tolist(), strict=True):
            if key != before:
                if held:
                    yield posting_prefix(before), held
                before, held = key, b""
            held += id.to_bytes(8, "big")
    if held:
        yield posting_prefix(before), held


def made(location: str, kind: str, keep: Keep, pages: int, options: Options = DEFAULT) -> tuple[PageStore, Grower]:
    """A store with so many pages, and what fills it further."""
    last = min(100_000, pages // 2)
    child = get_context("spawn").Process(target=_make, args=(location, kind, keep, pages - last, options))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"The state could not be filled: {child.exitcode}.")
    store: PageStore = open_at(STORES[kind], location, {}, options=options)
    grower = Grower(store, keep)
    with np.load(f"{location}.shared.npz") as shared:
        grower.titles, grower.forms, grower.number = shared["titles"], shared["forms"], int(shared["number"])
    grower.fill(pages)
    return store, grower


def _make(location: str, kind: str, keep: Keep, pages: int, options: Options) -> None:
    with closing(open_at(STORES[kind], location, {}, options=options)) as store:
        grower = Grower(store, keep)
        grower.fill_sorted(pages)
        grower.detector.end()
    np.savez(f"{location}.shared.npz", titles=grower.titles, forms=grower.forms, number=grower.number)


def main() -> None:
    parser = argparse.ArgumentParser(description="How a state grows.")
    parser.add_argument("pages", type=int, nargs="*", default=SIZES)
    parser.add_argument("--store", default="leveldb")
    parser.add_argument("--window", type=int, default=10_000, help="pages that are judged at each size")
    parser.add_argument("--keep", choices=[Keep.NOTHING.value, Keep.EVIDENCE.value], default=Keep.EVIDENCE.value)
    parser.add_argument("--options", default="{}", help="NEARDUP_STORE_OPTIONS, as JSON")
    parser.add_argument("--directory", default=None)
    given = parser.parse_args()
    options = read_options("--options", json.loads(given.options))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {time.strftime('%F %T')}")
    print(f"{given.store}, a window of {given.window:,} pages, NEARDUP_KEEP = {given.keep!r}; microseconds a page:")
    print(
        f"{'':>10} | {'look-up':^31} | {'commit':^31} | all   | memory, MiB         | disk \n"
        f"{'pages':>10} | {'clock':^15} | {'processor':^13} | {'clock':^15} | {'processor':^13} | cpu   | "
        f"all  own  mapped     | a page\n"
        f"{'':>10} | {'median':>7} {'mean':>7} | {'median':>6} {'mean':>6} | {'median':>7} {'mean':>7} | "
        f"{'median':>6} {'mean':>6} |       |"
    )
    for size in given.pages:
        with tempfile.TemporaryDirectory(dir=given.directory) as directory:
            begun = time.monotonic()
            store, grower = made(f"{directory}/state", given.store, Keep(given.keep), size, options)
            with closing(store):
                filled = time.monotonic() - begun
                times = grower.judge(given.window)
                print(row(size, times, store, filled), flush=True)
                for line in parts(store):
                    print(line, flush=True)
                grower.detector.end()


def row(size: int, times: Times, store: PageStore, filled: float) -> str:
    cells = []
    for found in (times.look_up, times.commit):
        for at, width in ((0, 7), (1, 6)):
            these = [one[at] / 1e3 for one in found]
            cells.append(f"{median(these):{width}.0f} {fmean(these):{width}.0f}")
    pages = len(times.look_up)
    kinds = ", ".join(f"{count} {kind.value}" for kind, count in sorted(times.kinds.items()))
    held = memory()
    return (
        f"{size:10,} | {' | '.join(cells)} | {(times.processor + times.later) / pages / 1e3:5.0f} | "
        f"{held['VmRSS']:5.0f} {held['RssAnon']:5.0f} {held['RssFile']:5.0f} | {store.size() / store.pages:5.0f}\n"
        f"{'':>10}   {kinds}; {times.compared:.2f} comparisons a page, {times.comparing:.0f} µs; "
        f"filled in {filled:.0f} s"
    )


def parts(store: PageStore) -> Iterator[str]:
    """What each kind of row takes on disk."""
    if store.scheme != "leveldb":
        return
    db: Any = getattr(store, "_db")  # noqa: B009 - of one kind of store alone
    for first, what in PARTS.items():
        behind = bytes([first[0] + 1])
        size = db.approximate_size(first, behind)
        yield f"{'':>10}   {size / store.pages:6.1f} bytes a page: {what}"


def memory() -> dict[str, float]:
    """What this process has, in MiB: all, its own, and of files that are mapped, which the system may take back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = (line.split() for line in lines if line.startswith(("VmRSS", "RssAnon", "RssFile")))
    return {name.rstrip(":"): int(size) / 1024 for name, size, *_ in found}


if __name__ == "__main__":
    main()
