"""One pass over all records: counts, and what to look at again. Small, however many pages there are.

What grows with the state is a number for each copy, each site, and each pair of sites.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable

import numpy as np

from scrapy_neardup.page.sites import site_of
from scrapy_neardup.report.candidates import PairCandidates
from scrapy_neardup.report.clean import SITE, clean_line
from scrapy_neardup.report.data import COPIES, PASSED, Count, SiteFlow, Totals
from scrapy_neardup.report.times import TimeTally
from scrapy_neardup.states.census import UNKNOWN, Census
from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.text.characters import HAN_CHARACTER

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

    def __init__(self, store: Store, rows: int) -> None:
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
