"""Counts of a state in one pass over its records."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from heapq import heappush, heappushpop
from itertools import chain, islice, zip_longest

import numpy as np

from scrapy_neardup.maintenance.statistics import UNKNOWN, Census
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.report.clean import SITE, clean_line
from scrapy_neardup.report.data import COPIES, PASSED, Count, SiteFlow, TimeBucket, Times, Totals
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.characters import HAN_CHARACTER

# ----------------------------------------------------------------------------------------------------------------------
# The pairs of pages that are worth a look: those nearest to the border, and then some of other sites.


#: Pairs of a kind that are remembered as the nearest to the border, and pairs of sites of which one each is.
_NEAREST, _FLOWS = 64, 256


@dataclass(slots=True)
class _OfKind:
    """The pairs of a kind: a heap of the least similar (negated: the most similar of them is first), one by sites."""

    nearest: list[tuple[float, int]] = field(default_factory=list)
    by_sites: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)


class PairCandidates:
    """Pairs by kind, few of them remembered; a pair is named by the id of its newer page."""

    def __init__(self) -> None:
        self._kinds: dict[str, _OfKind] = {}

    def add(self, kind: str, similarity: float, id: int, sites: tuple[int, int]) -> None:
        """Remember a pair if it is less similar than others of its kind, or the first of two sites."""
        found = self._kinds.setdefault(kind, _OfKind())
        entry = (-similarity, -id)
        if len(found.nearest) < _NEAREST:
            heappush(found.nearest, entry)
        else:
            heappushpop(found.nearest, entry)
        there = found.by_sites.get(sites)
        if (there is None and len(found.by_sites) < _FLOWS) or (there is not None and (similarity, id) < there):
            found.by_sites[sites] = (similarity, id)

    def best(self, count: int) -> dict[str, list[int]]:
        """Up to ``count`` ids of each kind: by turns one nearest to the border, and one of two sites not yet there.

        >>> candidates = PairCandidates()
        >>> for similarity, id, sites in ((0.5, 1, (1, 2)), (0.6, 2, (1, 2)), (0.9, 3, (3, 4))):
        ...     candidates.add("near", similarity, id, sites)
        >>> candidates.best(2)
        {'near': [1, 3]}
        """
        return {kind: list(islice(_by_turns(found), count)) for kind, found in self._kinds.items()}


def _by_turns(found: _OfKind) -> Iterator[int]:
    nearest = [-id for _, id in sorted(found.nearest, reverse=True)]
    spread = [id for _, id in sorted(found.by_sites.values())]
    # The least similar of all leads both lists.
    both = chain.from_iterable(zip_longest(nearest, spread[1:]))
    yield from dict.fromkeys(id for id in both if id is not None)


def quotas(there: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of each kind are taken if there are so many and ``count`` in all: the same, what one lacks to others.

    >>> quotas({"near": 9, "excerpt": 1, "retitled": 9}, 8)
    {'near': 4, 'excerpt': 1, 'retitled': 3}
    """
    taken = dict.fromkeys(there, 0)
    while count > 0 and (open_ := [kind for kind, many in there.items() if taken[kind] < many]):
        for kind in open_[:count]:
            taken[kind] += 1
        count -= len(open_)
    return taken


# ----------------------------------------------------------------------------------------------------------------------
# Pages by the time at which they were first seen: few buckets, whatever the span, in little memory.


#: Buckets that are shown at most, and those that are counted in before a coarser unit is taken.
SHOWN, _COUNTED = 60, 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: Units that are counted in: each is made of whole ones of the one before.
_UNITS = ("second", "minute", "hour", "day", "month", "year")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
#: What is shown of what is counted, the finest first: name, and so many units from that offset on. Weeks begin on
#: Mondays, and the first day of all was a Thursday.
_SHOWN = {
    "second": (("second", 1, 0), ("5 seconds", 5, 0), ("15 seconds", 15, 0)),
    "minute": (("minute", 1, 0), ("5 minutes", 5, 0), ("15 minutes", 15, 0)),
    "hour": (("hour", 1, 0), ("6 hours", 6, 0)),
    "day": (("day", 1, 0), ("week", 7, 3)),
    "month": (("month", 1, 0),),
    "year": (("year", 1, 0), ("10 years", 10, 0)),
}


class TimeTally:
    """Counts by unit, which becomes coarser as the span grows."""

    def __init__(self) -> None:
        self._unit = 0
        self._counts: Counter[tuple[int, int]] = Counter()
        self._low = self._high = -1

    def add(self, seconds: float, column: int) -> None:
        """Count a page; ``column``: 0 for an original, 1 for a copy, 2 for one that could not be judged."""
        at = _number(_UNITS[self._unit], int(seconds))
        self._low, self._high = (min(self._low, at), max(self._high, at)) if self._counts else (at, at)
        self._counts[at, column] += 1
        while self._high - self._low >= _COUNTED:
            self._coarsen()

    def times(self) -> Times:
        """The buckets, in the finest unit in which they are few."""
        if not self._counts:
            return Times()
        while True:
            unit = _UNITS[self._unit]
            for name, many, offset in _SHOWN[unit]:
                low, high = (self._low + offset) // many, (self._high + offset) // many
                if high - low < SHOWN:
                    return Times(name, self._buckets(unit, many, offset, range(low, high + 1)))
            self._coarsen()

    def _buckets(self, unit: str, many: int, offset: int, numbers: range) -> tuple[TimeBucket, ...]:
        rows = {number: [0, 0, 0] for number in numbers}
        for (at, column), count in self._counts.items():
            rows[(at + offset) // many][column] += count
        return tuple(TimeBucket(max(0, _start(unit, number * many - offset)), *row) for number, row in rows.items())

    def _coarsen(self) -> None:
        old, new = _UNITS[self._unit], _UNITS[self._unit + 1]
        self._unit += 1
        self._low, self._high = (_number(new, _start(old, at)) for at in (self._low, self._high))
        counts, self._counts = self._counts, Counter()
        for (at, column), count in counts.items():
            self._counts[_number(new, _start(old, at)), column] += count


def _number(unit: str, seconds: int) -> int:
    """The number of the unit that a time is in.

    >>> [_number(unit, 90_000) for unit in ("hour", "day", "month", "year")]
    [25, 1, 23640, 1970]
    """
    if unit in _SECONDS:
        return seconds // _SECONDS[unit]
    day = _EPOCH + timedelta(seconds=seconds)
    return day.year if unit == "year" else day.year * 12 + day.month - 1


def _start(unit: str, number: int) -> int:
    """When the unit of this number begins, in seconds since 1970."""
    if unit in _SECONDS:
        return number * _SECONDS[unit]
    year, month = (number, 0) if unit == "year" else divmod(number, 12)
    return int((datetime(year, month + 1, 1, tzinfo=timezone.utc) - _EPOCH).total_seconds())


# ----------------------------------------------------------------------------------------------------------------------
# One pass over all records: counts, and what to look at again. Small, however many pages there are.
#
# What grows with the state is a number for each copy, each site, and each pair of sites.


#: Bins of similarity.
BINS = 50
#: Sites of the matrix that have a row or a column of their own.
_SITES = 15
#: Originals of which the site is remembered.
_REMEMBERED = 50_000
_KANA = re.compile("[\u3040-\u30ff]")
#: Ends of hosts; the last one is 中国.
_CHINESE_DOMAINS = frozenset(("cn", "tw", "hk", "mo", "中国", "xn--fiqs8s"))
NO_SITE, GONE, OTHERS = "(no site)", "(no longer in the state)", "other sites"


class Figures:
    """What is counted; ``add`` every record once, by id."""

    def __init__(self, store: PageStore, rows: int) -> None:
        """``rows``: the newest copies that are remembered by id."""
        self._store = store
        self._census = Census()
        self._saved = self._measured = 0
        self.newest: deque[int] = deque(maxlen=rows)
        self.similar_copies, self.similar_passed = [0] * BINS, [0] * BINS
        self.times = TimeTally()
        self.candidates = PairCandidates()
        self._sites: dict[str, int] = {}
        self._flow: Counter[tuple[int, int]] = Counter()
        self._site_of: OrderedDict[int, int] = OrderedDict()
        self._chinese = 0

    def add(self, record: Record, evidence: Evidence | None) -> None:
        """Count a page."""
        self._chinese += is_chinese(evidence.title if evidence else "", record.url)
        self._census.add(record, evidence)
        site = self._site(record.url)
        copy = record.original != record.id
        if copy:
            self._add_copy(record, site, evidence)
        elif record.is_original:
            self._add_passed(record, site, evidence)
        self.times.add(int(record.first_seen), 1 if copy else 0 if record.is_original else 2)

    def totals(self) -> Totals:
        """The state in numbers."""
        census = self._census
        return Totals(
            census.pages,
            census.originals,
            census.copies,
            census.unjudged,
            sum(one.pages for one in self.by_passed()),
            len(census.groups()[0]),
            len(self._sites.keys() - {NO_SITE, GONE}),
            self._saved,
            self._measured,
            int(census.first_seen),
            census.last_seen(self._store),
            self._store.size(),
            census.rows,
        )

    def language(self) -> str:
        """That of most pages, of those in which a report can be."""
        return "zh" if 2 * self._chinese > self._census.pages else "en"

    def largest(self, many: int) -> dict[int, int]:
        """Id of an original -> how many copies it has, of those with the most copies; then the oldest come first."""
        originals, copies = self._census.groups()
        first = np.lexsort((originals, -copies))[:many]
        return dict(zip(originals[first].tolist(), copies[first].tolist(), strict=True))

    def by_kind(self) -> tuple[Count, ...]:
        """Copies by kind, those kinds that are there."""
        kinds: Counter[str] = Counter()
        for likeness, copies in self._census.kinds.items():
            kinds[_kind(likeness)] += copies
        return tuple(Count(kind, kinds[kind]) for kind in COPIES if kinds[kind])

    def by_passed(self) -> tuple[Count, ...]:
        """Originals that are like an earlier page, by kind."""
        passed = self._census.passed
        return tuple(Count(kind, passed[kind]) for kind in PASSED if passed[kind])

    def flow(self) -> SiteFlow:
        """Who copies from whom."""
        copying: Counter[int] = Counter()
        copied: Counter[int] = Counter()
        for (row, column), count in self._flow.items():
            copying[row] += count
            copied[column] += count
        names = list(self._sites)
        rows, columns = (_largest(counts, names) for counts in (copying, copied))
        cells = [[0] * (len(columns) + 1) for _ in range(len(rows) + 1)]
        for (row, column), count in self._flow.items():
            cells[rows.get(row, len(rows))][columns.get(column, len(columns))] += count
        more_rows, more_columns = len(copying) > len(rows), len(copied) > len(columns)
        return SiteFlow(
            tuple(clean_line(names[site], SITE) for site in rows) + (OTHERS,) * more_rows,
            tuple(clean_line(names[site], SITE) for site in columns) + (OTHERS,) * more_columns,
            tuple(tuple(row[: len(columns) + more_columns]) for row in cells[: len(rows) + more_rows]),
            _SITES,
            len(copying),
            len(copied),
        )

    def _add_copy(self, record: Record, site: int, evidence: Evidence | None) -> None:
        self.newest.append(record.id)
        self.similar_copies[_bin(record.similarity)] += 1
        if evidence is not None:
            self._saved += evidence.letters
            self._measured += 1
        sites = site, self._site_of_original(record.original)
        self._flow[sites] += 1
        self.candidates.add(kind_of(evidence), record.similarity, record.id, sites)

    def _add_passed(self, record: Record, site: int, evidence: Evidence | None) -> None:
        if evidence is None or not evidence.like or evidence.likeness not in PASSED:
            return
        self.similar_passed[_bin(evidence.similarity)] += 1
        sites = site, self._site_of_original(evidence.like)
        self.candidates.add(f"{evidence.likeness} passed", evidence.similarity, record.id, sites)

    def _site(self, url: str) -> int:
        """The number of the site of a URL."""
        return self._sites.setdefault(site_of(url) or NO_SITE, len(self._sites))

    def _site_of_original(self, id: int) -> int:
        known = self._site_of.pop(id, None)
        if known is None:
            record = self._store.record(id)
            known = self._sites.setdefault(GONE, len(self._sites)) if record is None else self._site(record.url)
        self._site_of[id] = known
        if len(self._site_of) > _REMEMBERED:
            self._site_of.popitem(last=False)
        return known


def is_chinese(title: str, url: str) -> bool:
    """Whether a page seems to be in Chinese: its title holds Han characters and no kana, or else its host says so.

    >>> is_chinese("渡口恢复通航", ""), is_chinese("渡し船は空でした", "")
    (True, False)
    >>> is_chinese("", "https://www.ferry.com.cn/1"), is_chinese("The ferry", "https://www.ferry.com.cn/1")
    (True, False)
    """
    if title:
        return bool(HAN_CHARACTER.search(title)) and not _KANA.search(title)
    host = site_of(url).partition(":")[0].rpartition(".")[2]
    return host in _CHINESE_DOMAINS


def language_of(pages: Iterable[tuple[str, str]]) -> str:
    """The language of most pages, each given by title and URL, among those in which reports are."""
    chinese = [is_chinese(title, url) for title, url in pages]
    return "zh" if 2 * sum(chinese) > len(chinese) else "en"


def kind_of(evidence: Evidence | None) -> str:
    """The kind of a copy, "unknown" where nothing was kept of it.

    >>> kind_of(Evidence("near")), kind_of(None)
    ('near', 'unknown')
    """
    return _kind(evidence.likeness if evidence is not None else "")


def _kind(likeness: str) -> str:
    return likeness if likeness in COPIES else UNKNOWN


def _bin(similarity: float) -> int:
    # A record holds similarities in 65535ths: what was 0.76 is not in the bin below.
    return max(0, min(BINS - 1, int(similarity * BINS + 0.001)))


def _largest(counts: Counter[int], names: list[str]) -> dict[int, int]:
    """Site -> its place among those with the largest counts."""
    ordered = sorted(counts, key=lambda site: (-counts[site], names[site]))
    return {site: place for place, site in enumerate(ordered[:_SITES])}
