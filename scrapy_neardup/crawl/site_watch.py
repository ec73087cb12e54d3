"""Warnings about sites. They change no verdict, so no page can abuse them, and their tables are bounded.

Each alarm warns once per site and crawl. Two alarms say that pages are not read well: many have almost no text, or many
differ from their delivered version by a few letters. Three say that a site loses suspiciously many pages as copies:

* **titles**: pages of the site with ``_TITLES`` different titles were dropped for one original. A site seldom posts one
  article five times, each time with a new title. Such an original is often no article: a footer on a relaunched site,
  a page with nothing but a disclaimer, a form that many notices fill in.
* **jump**: ``_MANY`` of the last ``_RECENT`` pages of the site were dropped, and hardly any page before them, earlier
  crawls included. Of a mirror, pages are dropped from the beginning, or more and more of them.
* **delivered**: ``_DELIVERED`` pages that earlier crawls delivered are now dropped as copies of older pages.

The state remembers pages and drops of each site (``maintenance/tables``), so the jump alarm sees drops that begin with
a crawl.
"""

from __future__ import annotations

from collections import OrderedDict
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

#: Shows what is read of a page; takes its URL twice.
_LOOK = "scrapy fetch --nolog %s | scrapy neardup extract - --url %s"
_LOW_TEXT = (
    "%d of %d pages of %s have too little text, so they pass unjudged, copies or not. Look at one: "
    f"{_LOOK}. If scripts write the text, render the pages. Otherwise put the text into a field of the item "
    "(NEARDUP_FIELDS), or find it with your own function (NEARDUP_EXTRACTOR)."
)
_CHANGES = (
    "%d of %d known pages of %s differ from their delivered text by a few letters. Perhaps a counter or a date stands "
    f"in their text. Look at one: {_LOOK}. Leave such lines out with a CSS selector in your spider (NEARDUP_FIELDS "
    "names the field), or with NEARDUP_EXTRACTOR. NEARDUP_POLICY = {'minor_update': 'tag'} delivers such pages."
)


@dataclass(slots=True)
class _Site:
    """Counts of one site, ``past``: in earlier crawls.

    ``last``: the last judged pages as bits, a one for each drop. ``read``: pages read from HTML, ``low_text`` of them
    have too little text. ``known``: pages whose URL was delivered, ``minor`` of them are minor updates.
    """

    past: SiteDrops
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    last: int = 0
    read: int = 0
    low_text: int = 0
    known: int = 0
    minor: int = 0
    warned: set[str] = field(default_factory=set)

    def see(self, *, dropped: bool, delivered: bool) -> None:
        """Count a judged page."""
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


class SiteWatch:
    """Sees each page of a crawl after it was judged, and warns of its site."""

    def __init__(self, notes: Notes, past: Mapping[str, SiteDrops]) -> None:
        """``past``: the counts of earlier crawls by site."""
        self._notes = notes
        self._past = past
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._originals: OrderedDict[tuple[int, str], set[int]] = OrderedDict()
        self._warned = 0

    def counts(self) -> list[SiteDrops]:
        """The counts of this crawl."""
        sites = self._sites.items()
        return [SiteDrops(name, site.pages, site.drops, site.delivered) for name, site in sites if site.pages]

    def see(self, page: Page, ruled: Ruled) -> None:
        """Count a page, and warn if it is one too many. A copy without a reservation is dropped."""
        verdict = ruled.verdict
        if not (name := site_of(verdict.url)):
            return
        site = _recent(self._sites, name, _SITES, lambda: _Site(self._past.get(name) or SiteDrops(name)))
        self._see_shares(site, verdict)
        if verdict.kind is Kind.UNJUDGED:
            return
        dropped = verdict.kind is Kind.DUPLICATE and ruled.reservation is None
        site.see(dropped=dropped, delivered=ruled.was_delivered)
        if not dropped or verdict.match is None:
            return
        alarms = {
            stats.SUSPICIOUS_JUMP: site.describe_jump(),
            stats.SUSPICIOUS_DELIVERED: site.describe_delivered(),
            stats.SUSPICIOUS_TITLES: self._describe_titles(page, verdict.match.id, name),
        }
        for alarm, what in alarms.items():
            if what and alarm not in site.warned:
                site.warned.add(alarm)
                self._warn(alarm, name, verdict, verdict.match, what)

    def _see_shares(self, site: _Site, verdict: Verdict) -> None:
        """Count pages without text, and minor updates among known pages; warn of a too large share."""
        if verdict.reader:  # it was read from HTML
            site.read += 1
            if verdict.reason in _NO_TEXT:
                site.low_text += 1
                self._warn_of_share(site, _LOW_TEXT, site.low_text, site.read, _LOW_TEXT_SHARE, verdict.url)
        if verdict.kind in _KNOWN:
            site.known += 1
            if verdict.kind is Kind.MINOR_UPDATE:
                site.minor += 1
                if self._warn_of_share(site, _CHANGES, site.minor, site.known, _MINOR_SHARE, verdict.url):
                    self._notes.count(stats.SUSPICIOUS_MINOR_UPDATES)

    def _warn_of_share(self, site: _Site, warning: str, count: int, pages: int, most: float, url: str) -> bool:
        if pages < _SHARE_PAGES or count <= most * pages or warning in site.warned:
            return False
        site.warned.add(warning)
        logger.warning(warning, count, pages, site.past.site, shell_word(url), shell_word(url))
        return True

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
