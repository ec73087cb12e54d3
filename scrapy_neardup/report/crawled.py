"""The crawls that a state remembers, as lines of a report, and why pages could not be judged in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scrapy_neardup.model import ROW
from scrapy_neardup.report.clean import SITE, clean_line
from scrapy_neardup.report.data import Count, CrawlLine
from scrapy_neardup.states.crawls import Crawl, verdict_counts

#: Crawls that are shown: the last ones.
_SHOWN = 50
_UNJUDGED = "unjudged/"


def crawl_lines(found: Sequence[Crawl]) -> tuple[CrawlLine, ...]:
    """The last crawls, the newest first; ``found`` begins with the oldest."""
    return tuple(_line(crawl) for crawl in reversed(found[-_SHOWN:]))


def reasons(found: Sequence[Crawl]) -> tuple[Count, ...]:
    """Pages that could not be judged by reason, the most frequent first; rows of listings are not among them.

    >>> reasons([Crawl(1, "a", 2, {"unjudged/no_text": 1}), Crawl(3, "a", 4, {"unjudged/no_text": 2, "pages": 9})])
    (Count(name='no_text', pages=3),)
    """
    counted: Counter[str] = Counter()
    for crawl in found:
        for name, count in crawl.counts.items():
            if name.startswith(_UNJUDGED) and name != _UNJUDGED + ROW:
                counted[clean_line(name.removeprefix(_UNJUDGED), SITE)] += int(count)
    return tuple(Count(*one) for one in sorted(counted.items(), key=lambda one: (-one[1], one[0])) if one[1])


def _line(crawl: Crawl) -> CrawlLine:
    verdicts = verdict_counts(crawl.counts)
    del verdicts["better"]
    return CrawlLine(
        clean_line(crawl.who, SITE),
        int(crawl.begun),
        crawl.ended,
        int(crawl.counts.get("pages", 0)),
        **verdicts,
        lost=int(crawl.counts.get("rolled_back", 0)),
    )
