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
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.report.data import COPIES, PASSED, Count, SiteFlow, TimeBucket, Times, Totals
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.untrusted import SITE, clean_line

#: Pairs of a kind to remember as nearest to the threshold, and as examples of two sites.
_NEAREST, _FLOWS = 64, 256


@dataclass(slots=True)
class _OfKind:
    """The pairs of a kind: a heap of the least similar ones (negated), and one pair per two sites."""

    nearest: list[tuple[float, int]] = field(default_factory=list)
    by_sites: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)


class PairCandidates:
    """Remembers a few pairs of each kind for a closer look. The id of the newer page names a pair."""

    def __init__(self) -> None:
        self._kinds: dict[str, _OfKind] = {}

    def add(self, kind: str, similarity: float, id: int, sites: tuple[int, int]) -> None:
        """Remember a pair if it is less similar than others of its kind, or the first of its two sites."""
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
        """Return up to ``count`` ids of each kind, alternately near the threshold and of two new sites.

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
    # Both lists begin with the least similar pair.
    both = chain.from_iterable(zip_longest(nearest, spread[1:]))
    yield from dict.fromkeys(id for id in both if id is not None)


def quotas(there: Mapping[str, int], count: int) -> dict[str, int]:
    """Share ``count`` among kinds: equal parts, and what one kind lacks goes to others.

    >>> quotas({"near": 9, "excerpt": 1, "retitled": 9}, 8)
    {'near': 4, 'excerpt': 1, 'retitled': 3}
    """
    taken = dict.fromkeys(there, 0)
    while count > 0 and (open_ := [kind for kind, many in there.items() if taken[kind] < many]):
        for kind in open_[:count]:
            taken[kind] += 1
        count -= len(open_)
    return taken


#: Show at most this many buckets; count in at most this many before the unit gets coarser.
SHOWN, _COUNTED = 60, 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: Units of counting. Each divides the next one.
_UNITS = ("second", "minute", "hour", "day", "month", "year")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
#: How counted units may be grouped, the finest first: name, number of units, offset. Weeks begin on Mondays; the first
#: day of 1970 was a Thursday.
_SHOWN = {
    "second": (("second", 1, 0), ("5 seconds", 5, 0), ("15 seconds", 15, 0)),
    "minute": (("minute", 1, 0), ("5 minutes", 5, 0), ("15 minutes", 15, 0)),
    "hour": (("hour", 1, 0), ("6 hours", 6, 0)),
    "day": (("day", 1, 0), ("week", 7, 3)),
    "month": (("month", 1, 0),),
    "year": (("year", 1, 0), ("10 years", 10, 0)),
}


class TimeTally:
    """Counts pages over time. The unit gets coarser as the span grows."""

    def __init__(self) -> None:
        self._unit = 0
        self._counts: Counter[tuple[int, int]] = Counter()
        self._low = self._high = -1

    def add(self, seconds: float, column: int) -> None:
        """Count a page in ``column``: 0 original, 1 copy, 2 unjudged."""
        at = _number(_UNITS[self._unit], int(seconds))
        self._low, self._high = (min(self._low, at), max(self._high, at)) if self._counts else (at, at)
        self._counts[at, column] += 1
        while self._high - self._low >= _COUNTED:
            self._coarsen()

    def times(self) -> Times:
        """Return the buckets in the finest unit that gives few enough."""
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
    """Return the number of the unit at a time.

    >>> [_number(unit, 90_000) for unit in ("hour", "day", "month", "year")]
    [25, 1, 23640, 1970]
    """
    if unit in _SECONDS:
        return seconds // _SECONDS[unit]
    day = _EPOCH + timedelta(seconds=seconds)
    return day.year if unit == "year" else day.year * 12 + day.month - 1


def _start(unit: str, number: int) -> int:
    """Return the beginning of a unit, in seconds since 1970."""
    if unit in _SECONDS:
        return number * _SECONDS[unit]
    year, month = (number, 0) if unit == "year" else divmod(number, 12)
    return int((datetime(year, month + 1, 1, tzinfo=timezone.utc) - _EPOCH).total_seconds())


# Memory grows by a number for each copy, each site, and each pair of sites.


#: Bins of similarity.
BINS = 50
#: Sites with a row or a column of their own in the matrix.
_SITES = 15
#: Originals whose site is remembered.
_REMEMBERED = 50_000
_KANA = re.compile("[\u3040-\u30ff]")
#: Suffixes of hosts; the last one is 中国.
_CHINESE_DOMAINS = frozenset(("cn", "tw", "hk", "mo", "中国", "xn--fiqs8s"))
NO_SITE, GONE, OTHERS = "(no site)", "(no longer in the state)", "other sites"


class Figures:
    """The counts of a report. Add every record once, by id."""

    def __init__(self, store: PageStore, rows: int) -> None:
        """``rows``: how many of the newest copies to remember."""
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
        if not record.is_row:
            self.times.add(int(record.first_seen), 1 if copy else 0 if record.is_original else 2)

    def totals(self) -> Totals:
        """Return the totals."""
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
        """Return the language of most pages."""
        return "zh" if 2 * self._chinese > self._census.pages else "en"

    def largest(self, many: int) -> dict[int, int]:
        """Return the originals with most copies, and their number of copies; then the oldest first."""
        originals, copies = self._census.groups()
        first = np.lexsort((originals, -copies))[:many]
        return dict(zip(originals[first].tolist(), copies[first].tolist(), strict=True))

    def by_kind(self) -> tuple[Count, ...]:
        """Count copies by kind."""
        kinds: Counter[str] = Counter()
        for likeness, copies in self._census.kinds.items():
            kinds[_kind(likeness)] += copies
        return tuple(Count(kind, kinds[kind]) for kind in COPIES if kinds[kind])

    def by_passed(self) -> tuple[Count, ...]:
        """Count originals that resemble an earlier page, by kind."""
        passed = self._census.passed
        return tuple(Count(kind, passed[kind]) for kind in PASSED if passed[kind])

    def flow(self) -> SiteFlow:
        """Return who copies from whom."""
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
        """Return the number of a URL's site."""
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
    """Whether a page seems Chinese: its title has Han characters and no kana, or its host is Chinese.

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
    """Return the language of most pages, given by title and URL, among the languages of reports."""
    chinese = [is_chinese(title, url) for title, url in pages]
    return "zh" if 2 * sum(chinese) > len(chinese) else "en"


def kind_of(evidence: Evidence | None) -> str:
    """Return the kind of a copy, "unknown" without evidence.

    >>> kind_of(Evidence("near")), kind_of(None)
    ('near', 'unknown')
    """
    return _kind(evidence.likeness if evidence is not None else "")


def _kind(likeness: str) -> str:
    return likeness if likeness in COPIES else UNKNOWN


def _bin(similarity: float) -> int:
    # A record holds similarities in 65535ths, so 0.76 may be slightly less.
    return max(0, min(BINS - 1, int(similarity * BINS + 0.001)))


def _largest(counts: Counter[int], names: list[str]) -> dict[int, int]:
    """Return the sites with the largest counts, and their rank."""
    ordered = sorted(counts, key=lambda site: (-counts[site], names[site]))
    return {site: place for place, site in enumerate(ordered[:_SITES])}
