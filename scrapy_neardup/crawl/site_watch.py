"""Warnings about sites. They change no verdict, so no page can abuse them, and their tables are bounded.

Each alarm warns once per site and crawl. Three say that a site loses suspiciously many pages as copies:

* **titles**: pages of the site with ``_TITLES`` different titles were dropped for one original. A site seldom posts one
  article five times, each time with a new title. Such an original is often no article: a footer on a relaunched site,
  a page with nothing but a disclaimer, a form that many notices fill in.
* **jump**: ``_MANY`` of the last ``_RECENT`` pages of the site were dropped, and hardly any page before them, earlier
  crawls included. Of a mirror, pages are dropped from the beginning, or more and more of them.
* **delivered**: ``_DELIVERED`` pages that earlier crawls delivered are now dropped as copies of older pages.

One says that more than half of a site's known pages differ from their delivered version by a few letters.

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
from scrapy_neardup.model import Outcome, Page, Verdict
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
#: The least number of known pages of a site, and the share of minor updates among them that is too much.
_KNOWN_PAGES, _MINOR_SHARE = 20, 0.5
#: The most sites, and originals with the sites that copy them, to watch: strangers choose how many there are.
_SITES, _ORIGINALS = 10_000, 20_000
#: Warnings that sites lose pages, and that they have minor updates; further ones are only counted.
_WARNINGS = 20
#: Letters of a title that are compared.
_LONGEST = 500
_KNOWN = frozenset((Outcome.UNCHANGED, Outcome.UPDATED, Outcome.MINOR_UPDATE))


@dataclass(slots=True)
class _Site:
    """Counts of one site, ``past``: in earlier crawls.

    ``last``: the last judged pages as bits, a one for each drop. ``titles``: the most titles that were dropped for one
    original. ``known``: pages with a delivered URL, ``minor`` of them are minor updates.
    """

    past: SiteDrops
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    last: int = 0
    titles: int = 0
    known: int = 0
    minor: int = 0
    warned: set[str] = field(default_factory=set)

    def describe_titles(self) -> str:
        return f"{_TITLES} under different titles for this one original" if self.titles >= _TITLES else ""

    def describe_jump(self) -> str:
        """Nearly all of the last pages were dropped, and hardly any of the others, also of those just before."""
        recent = (self.last & ((1 << _RECENT) - 1)).bit_count()
        pages, drops = self.past.pages + self.pages - _RECENT, self.past.drops + self.drops - recent
        if recent < _MANY or self.pages < _RECENT or pages < _BEFORE or drops > _FEW * pages:
            return ""
        if (self.last >> _RECENT).bit_count() > _FEW * min(_BEFORE, self.pages - _RECENT):
            return ""
        return f"{recent} of its last {_RECENT} pages, and {drops:,} of the {pages:,} before them"

    def describe_delivered(self) -> str:
        is_many = self.delivered >= max(_DELIVERED, _SHARE * self.pages)
        return f"{self.delivered:,} that earlier crawls had delivered" if is_many else ""

    def describe_minor(self) -> str:
        is_many = self.known >= _KNOWN_PAGES and self.minor > _MINOR_SHARE * self.known
        return f"{self.minor} of {self.known} known pages" if is_many else ""


#: Alarms by the outcome that may raise them: the stat that counts the sites, and a description of one.
_ALARMS: Mapping[Outcome, Mapping[str, Callable[[_Site], str]]] = {
    Outcome.DUPLICATE: {
        stats.SUSPICIOUS_JUMP: _Site.describe_jump,
        stats.SUSPICIOUS_DELIVERED: _Site.describe_delivered,
        stats.SUSPICIOUS_TITLES: _Site.describe_titles,
    },
    Outcome.MINOR_UPDATE: {stats.SUSPICIOUS_MINOR_UPDATES: _Site.describe_minor},
}


class SiteWatch:
    """Sees each page of a crawl after it was judged, and warns of its site."""

    def __init__(self, notes: Notes, past: Mapping[str, SiteDrops]) -> None:
        """``past``: the counts of earlier crawls by site."""
        self._notes = notes
        self._past = past
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._originals: OrderedDict[tuple[int, str], set[int]] = OrderedDict()
        self._warned = Counter[Outcome]()

    def counts(self) -> list[SiteDrops]:
        sites = self._sites.items()
        return [SiteDrops(name, site.pages, site.drops, site.delivered) for name, site in sites if site.pages]

    def see(self, page: Page, ruled: Ruled) -> None:
        """Count a page, and warn if it is one too many. A copy without a reservation is dropped."""
        verdict = ruled.verdict
        if verdict.outcome is Outcome.UNJUDGED or not (name := site_of(verdict.url)):
            return
        site = _recent(self._sites, name, _SITES, lambda: _Site(self._past.get(name) or SiteDrops(name)))
        dropped = verdict.outcome is Outcome.DUPLICATE and ruled.reservation is None
        site.pages += 1
        site.drops += dropped
        site.delivered += dropped and ruled.was_delivered
        site.last = (site.last << 1 | dropped) & ((1 << _RECENT + _BEFORE) - 1)
        site.known += verdict.outcome in _KNOWN
        site.minor += verdict.outcome is Outcome.MINOR_UPDATE
        if verdict.outcome is Outcome.DUPLICATE:
            if not dropped or verdict.match is None:
                return
            site.titles = max(site.titles, self._count_titles(page, verdict.match.id, name))
        for alarm, describe in _ALARMS.get(verdict.outcome, {}).items():
            if alarm not in site.warned and (what := describe(site)):
                site.warned.add(alarm)
                self._warn(alarm, name, verdict, what)

    def _count_titles(self, page: Page, original: int, site: str) -> int:
        """The different titles so far, up to ``_TITLES``, under which pages of a site were dropped for an original."""
        title = letters(normalize(f"{article_title(page.title[:_LONGEST])}{page.headline[:_LONGEST]}"))
        titles = _recent(self._originals, (original, site), _ORIGINALS, set[int])
        if title and len(titles) < _TITLES:
            titles.add(OPEN.of(title))
        return len(titles)

    def _warn(self, alarm: str, name: str, verdict: Verdict, what: str) -> None:
        self._notes.count(alarm)
        self._warned[verdict.outcome] += 1
        match, is_minor = verdict.match, verdict.outcome is Outcome.MINOR_UPDATE
        if self._warned[verdict.outcome] > _WARNINGS:
            lost = "have minor updates" if is_minor else "are dropped as copies"
            self._notes.warn_once(
                f"sites with pages that {lost}", f"Many pages of further sites {lost}. List: scrapy neardup stats"
            )
            return
        site, url = shell_word(name), shell_word(verdict.url)
        if is_minor or match is None:
            logger.warning(
                "%s of %s differ from their delivered text by a few letters. Perhaps a counter or a date stands in "
                "their text. Look at one: scrapy fetch --nolog %s | scrapy neardup extract - --url %s. Leave it "
                "out with a CSS selector in your spider (NEARDUP_FIELDS names the field), or with NEARDUP_EXTRACTOR. "
                "NEARDUP_POLICY = {'minor_update': 'tag'} delivers such pages.",
                what,
                one_line(name),
                url,
                url,
            )
            return
        shared = f' Both contain "{one_line(match.shared[0], 60)}".' if match.shared else ""
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
            url,
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
