"""Sites whose pages give no text: each is named once, as nothing of theirs is judged and nobody would notice."""

from __future__ import annotations

from collections import Counter

from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import line_logger, shell_word
from scrapy_neardup.page.sites import site_of

logger = line_logger(__name__)

#: Pages of a site from which a share of them means anything, and the share that is too much.
_PAGES = 20
_SHARE = 0.1
#: Sites that are watched: strangers choose how many there are.
_SITES = 10_000
_NO_TEXT = frozenset(("no_text", "too_short"))


class SilentSites:
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
