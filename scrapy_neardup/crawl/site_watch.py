"""Warnings about sites. They change no verdict, so no page can abuse them, and their tables are bounded.

``ShareWatch`` warns of sites with almost no text, and of sites whose texts change by themselves. ``DropWatch`` warns of
sites that lose suspiciously many pages as copies. It has three alarms. Each warns once per site and crawl:

* **titles**: pages of the site with ``_TITLES`` different titles were dropped for one original. A site seldom posts one
  article five times, each time with a new title. Such an original is often no article: a footer on a relaunched site,
  a page with nothing but a disclaimer, a form that many notices fill in.
* **jump**: ``_MANY`` of the last ``_RECENT`` pages of the site were dropped, and hardly any page before them, in this
  crawl and in earlier ones. A mirror drops pages from its beginning, or more and more of them.
* **delivered**: ``_DELIVERED`` pages that earlier crawls delivered are now dropped as copies of older pages.

The state remembers pages and drops of each site (``maintenance/tables``), so the jump alarm sees drops that begin with
a crawl.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scrapy_neardup.crawl import stats
from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.maintenance.tables import SiteDrops
from scrapy_neardup.model import Kind, Match, Page, Verdict
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title
from scrapy_neardup.untrusted import line_logger, one_line, shell_word

logger = line_logger(__name__)

K = TypeVar("K")
V = TypeVar("V")

#: Different titles of one site, all dropped for one original.
_TITLES = 5
#: The last pages of a site that are looked at, and the number of drops among them.
_RECENT, _MANY = 15, 14
#: The number of pages before those, and a share of drops among them that no mirror has. Of two mirrors with 30 to 300
#: pages in random order 1 % raise the alarm: see benchmarks/drops.py.
_BEFORE, _FEW = 20, 0.1
#: Dropped pages of one site that earlier crawls delivered, and their least share of the site's pages.
_DELIVERED, _SHARE = 10, 0.1
#: The most sites, and originals with the sites that copy them, to watch: strangers choose how many there are.
_SITES, _ORIGINALS = 10_000, 20_000
#: Sites that a crawl warns of; further ones are only counted.
_WARNINGS = 20
#: Letters of a title that are compared.
_LONGEST = 500
#: The least number of pages of a site for a warning about a share of them, and the shares that are too much.
_SHARE_PAGES, _LOW_TEXT_SHARE, _MINOR_SHARE = 20, 0.1, 0.5
_NO_TEXT = frozenset(("no_text", "too_short"))
_KNOWN = frozenset((Kind.UNCHANGED, Kind.UPDATED, Kind.MINOR_UPDATE))


_LOW_TEXT = (
    "%d of %d pages of %s have too little text, so they pass unjudged, copies or not. Look at one with 'scrapy neardup "
    "extract %s'. If scripts write the text, render the pages. Otherwise put the text into a field of the item "
    "(NEARDUP_FIELDS), or find it with your own function (NEARDUP_EXTRACTOR)."
)
_CHANGES = (
    "%d of %d known pages of %s differ from their delivered text by a few letters. Perhaps a counter or a date stands "
    "in their text. Look at one with 'scrapy neardup extract %s', and leave such lines out: with a CSS selector in "
    "your spider (NEARDUP_FIELDS names the field), or with NEARDUP_EXTRACTOR. NEARDUP_POLICY = {'minor_update': 'tag'} "
    "delivers such pages."
)


class ShareWatch:
    """Counts the pages of each site, and those of one kind. It warns once of a site with too many of these."""

    def __init__(self, too_many: float, warning: str) -> None:
        """``warning`` gets the pages of the kind, all pages, the site, and the URL of the last page."""
        self._too_many = too_many
        self._warning = warning
        self._pages: Counter[str] = Counter()
        self._of_kind: Counter[str] = Counter()
        self._warned: set[str] = set()

    def see(self, verdict: Verdict, *, is_of_kind: bool) -> bool:
        """Count a page; returns whether its site is warned of."""
        site = site_of(verdict.url)
        if site not in self._pages and len(self._pages) >= _SITES:
            return False
        self._pages[site] += 1
        self._of_kind[site] += is_of_kind
        pages, of_kind = self._pages[site], self._of_kind[site]
        if not is_of_kind or pages < _SHARE_PAGES or of_kind <= self._too_many * pages or site in self._warned:
            return False
        self._warned.add(site)
        logger.warning(self._warning, of_kind, pages, site, shell_word(verdict.url))
        return True


class SiteShares:
    """Watches two shares of each site: pages without text, and minor updates among its known pages."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._low_text = ShareWatch(_LOW_TEXT_SHARE, _LOW_TEXT)
        self._changes = ShareWatch(_MINOR_SHARE, _CHANGES)

    def see(self, verdict: Verdict) -> None:
        """Count a page."""
        if verdict.reader:  # it was read from HTML
            self._low_text.see(verdict, is_of_kind=verdict.reason in _NO_TEXT)
        is_minor = verdict.kind is Kind.MINOR_UPDATE
        if verdict.kind in _KNOWN and self._changes.see(verdict, is_of_kind=is_minor):
            self._notes.count(stats.SUSPICIOUS_MINOR_UPDATES)


@dataclass(slots=True)
class _Site:
    """Counts of one site, ``past``: in earlier crawls. ``last``: the last pages as bits, a one for each drop."""

    past: SiteDrops
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    last: int = 0
    warned: set[str] = field(default_factory=set)

    def see(self, *, dropped: bool, delivered: bool) -> None:
        self.pages += 1
        self.drops += dropped
        self.delivered += dropped and delivered
        self.last = (self.last << 1 | dropped) & ((1 << _RECENT + _BEFORE) - 1)

    def describe_jump(self) -> str:
        """Nearly all of the last pages were dropped, and hardly any before; empty without such a jump."""
        recent = (self.last & ((1 << _RECENT) - 1)).bit_count()
        pages, drops = self.past.pages + self.pages - _RECENT, self.past.drops + self.drops - recent
        just_before = min(_BEFORE, max(0, self.pages - _RECENT))
        if recent < _MANY or self.pages < _RECENT or pages < _BEFORE or drops > _FEW * pages:
            return ""
        if (self.last >> _RECENT).bit_count() > _FEW * just_before:
            return ""
        return f"{recent} of its last {_RECENT} pages, and {drops:,} of the {pages:,} before them"

    def describe_delivered(self) -> str:
        is_many = self.delivered >= max(_DELIVERED, _SHARE * self.pages)
        return f"{self.delivered:,} that earlier crawls had delivered" if is_many else ""


class DropWatch:
    """Sees each page of a crawl after it was judged, and warns of suspicious drops."""

    def __init__(self, notes: Notes, past: Mapping[str, SiteDrops]) -> None:
        """``past``: the counts of earlier crawls by site."""
        self._notes = notes
        self._past = past
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._originals: OrderedDict[tuple[int, str], set[int]] = OrderedDict()
        self._warned = 0

    def counts(self) -> list[SiteDrops]:
        """The counts of this crawl."""
        return [SiteDrops(name, site.pages, site.drops, site.delivered) for name, site in self._sites.items()]

    def see(self, page: Page, ruled: Ruled) -> None:
        """Count a page, and warn if its drop is one too many. A copy without a reservation is dropped."""
        verdict, site = ruled.verdict, site_of(ruled.verdict.url)
        if not site or verdict.kind is Kind.UNJUDGED:
            return
        dropped = verdict.kind is Kind.DUPLICATE and ruled.reservation is None
        counts = _recent(self._sites, site, _SITES, lambda: _Site(self._past.get(site) or SiteDrops(site)))
        counts.see(dropped=dropped, delivered=ruled.was_delivered)
        if not dropped or verdict.match is None:
            return
        alarms = {
            stats.SUSPICIOUS_JUMP: counts.describe_jump(),
            stats.SUSPICIOUS_DELIVERED: counts.describe_delivered(),
            stats.SUSPICIOUS_TITLES: self._describe_titles(page, verdict.match.id, site),
        }
        for alarm, what in alarms.items():
            if what and alarm not in counts.warned:
                counts.warned.add(alarm)
                self._warn(alarm, counts.past.site, verdict, verdict.match, what)

    def _describe_titles(self, page: Page, original: int, site: str) -> str:
        title = letters(normalize(f"{article_title(page.title[:_LONGEST])}{page.headline[:_LONGEST]}"))
        if not title:
            return ""
        titles = _recent(self._originals, (original, site), _ORIGINALS, set[int])
        if len(titles) < _TITLES:
            titles.add(OPEN.of(title))
        return f"{_TITLES} under different titles for this one original" if len(titles) >= _TITLES else ""

    def _warn(self, alarm: str, name: str, verdict: Verdict, match: Match, what: str) -> None:
        self._notes.count(alarm)
        self._warned += 1
        if self._warned > _WARNINGS:
            self._notes.warn_once(
                "suspicious drops",
                "More sites lose suspiciously many pages as copies. List them with: scrapy neardup stats",
            )
            return
        shared = f' Both contain "{one_line(match.shared[0], 60)}".' if match.shared else ""
        site = shell_word(name)
        logger.warning(
            "Suspiciously many pages of %s are dropped as copies: %s. The last one is %s, dropped for %s.%s Perhaps "
            "its articles are not read any more, or somebody forges them. Compare the two: scrapy neardup compare %s "
            "%s. List all drops: scrapy neardup dropped --last --site %s. If they are wrong: scrapy neardup keep "
            "--last --site %s, and the next crawl delivers them.",
            one_line(name),
            what,
            one_line(verdict.url),
            one_line(match.url),
            shared,
            shell_word(verdict.url),
            shell_word(match.url),
            site,
            site,
        )


def _recent(known: OrderedDict[K, V], key: K, most: int, new: Callable[[], V]) -> V:
    """The value of a key, which becomes the most recently used one; keep at most ``most`` keys."""
    found = known.pop(key, None)
    known[key] = found = new() if found is None else found
    if len(known) > most:
        known.popitem(last=False)
    return found
