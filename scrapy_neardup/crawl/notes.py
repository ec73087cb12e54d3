"""Stats counted, and each kind of trouble logged once."""

from __future__ import annotations

from collections import Counter

from scrapy.statscollectors import StatsCollector

from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import line_logger, shell_word
from scrapy_neardup.page.sites import site_of

# ----------------------------------------------------------------------------------------------------------------------
# What is told while a crawl runs: stats counted, and each kind of trouble logged once.


logger = line_logger(__name__)


class Notes:
    """The stats of one crawl, and what its log has heard already."""

    def __init__(self, stats: StatsCollector) -> None:
        self.stats = stats
        self._told: set[str] = set()

    def count(self, stat: str, count: int = 1) -> None:
        """Add to a stat."""
        self.stats.inc_value(stat, count)

    def is_new(self, what: str) -> bool:
        """Whether this kind of thing has not been told yet; from now on it has."""
        new = what not in self._told
        self._told.add(what)
        return new

    def warn_once(self, what: str, message: str, *arguments: object, exc_info: bool = False) -> bool:
        """Log the first of a kind; whether it was."""
        if not self.is_new(what):
            return False
        logger.warning(message + " (Further cases of %r are only counted.)", *arguments, what, exc_info=exc_info)
        return True


# ----------------------------------------------------------------------------------------------------------------------
# Sites whose pages give no text: each is named once, as nothing of theirs is judged and nobody would notice.


#: Pages of a site from which a share of them means anything, and the share that is too much.
_PAGES = 20
_SHARE = 0.1
#: Sites that are watched: strangers choose how many there are.
_SITES = 10_000
_NO_TEXT = frozenset(("no_text", "too_short"))


class LowTextSites:
    """Counts pages of HTML by site, and those of them that say too little to be judged."""

    def __init__(self) -> None:
        self._pages: Counter[str] = Counter()
        self._silent: Counter[str] = Counter()
        self._told: set[str] = set()

    def see(self, verdict: Verdict) -> None:
        """Count a page that was read from HTML; of a site with too many silent ones the log tells once."""
        site = site_of(verdict.url)
        if site not in self._pages and len(self._pages) >= _SITES:
            return
        self._pages[site] += 1
        if verdict.reason not in _NO_TEXT:
            return
        self._silent[site] += 1
        pages, silent = self._pages[site], self._silent[site]
        if pages < _PAGES or silent <= _SHARE * pages or site in self._told:
            return
        self._told.add(site)
        logger.warning(
            "%d of %d pages of %s have too little text, so they pass unjudged, copies or not. Look at one with "
            "'scrapy neardup extract %s'. If scripts write the text, render the pages. Otherwise put the text into a "
            "field of the item (NEARDUP_FIELDS), or find it with your own function (NEARDUP_EXTRACTOR).",
            silent,
            pages,
            site,
            shell_word(verdict.url),
        )
