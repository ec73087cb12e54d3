"""Warns of sites that lose suspiciously many pages as copies. It changes no verdict, so no page can abuse it.

Each site has three alarms, and each of them warns once in a crawl:

* **titles**: pages of the site under ``_TITLES`` different titles were dropped for one original. A site seldom posts
  one article five times, each time under a new title. Such an original is often no article: a footer that is all that
  is read of a relaunched site, a page with nothing but a disclaimer, a form that many notices fill in.
* **jump**: ``_MANY`` of the last ``_RECENT`` pages of the site were dropped, and hardly any page before them, in this
  crawl and in earlier ones. A mirror drops pages from its beginning, or more and more of them.
* **delivered**: ``_DELIVERED`` pages that earlier crawls delivered are now dropped as copies of older pages.

The state remembers pages and drops of each site (``maintenance/tables``), so drops that begin with a crawl are a jump,
too. All tables are bounded, as strangers choose how many sites, titles and originals there are.
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
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger, one_line, shell_word
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title

logger = line_logger(__name__)

K = TypeVar("K")
V = TypeVar("V")

#: Different titles of one site, all dropped for one original.
_TITLES = 5
#: Of so many pages of a site the last ones, and how many of them must have been dropped.
_RECENT, _MANY = 15, 14
#: So many pages before those tell what the site was like, and the share of drops among them that no mirror has. Of two
#: mirrors of 30 to 300 pages in random order 1 % raise the alarm: see benchmarks/drops.py.
_BEFORE, _FEW = 20, 0.1
#: Dropped pages of one site that earlier crawls delivered, and the least share of the site's pages.
_DELIVERED, _SHARE = 10, 0.1
#: Sites, and originals with the sites that copy them, that are watched: the last ones.
_SITES, _ORIGINALS = 10_000, 20_000
#: Sites that a crawl warns of; further ones are only counted.
_WARNINGS = 20
#: Letters of a title that are compared.
_LONGEST = 500


@dataclass(slots=True)
class _Site:
    """Pages and drops of one site in this crawl; ``last``: the last pages as bits, a one for each drop.

    ``past``: the same of earlier crawls. ``warned``: the alarms that were raised.
    """

    past: SiteDrops
    pages: int = 0
    drops: int = 0
    delivered: int = 0
    last: int = 0
    warned: set[str] = field(default_factory=set)

    def see(self, *, dropped: bool, delivered: bool) -> None:
        """Count a page."""
        self.pages += 1
        self.drops += dropped
        self.delivered += dropped and delivered
        self.last = (self.last << 1 | dropped) & ((1 << _RECENT + _BEFORE) - 1)

    def jump(self) -> str:
        """What is striking where nearly all of the last pages were dropped, and hardly any before; else nothing."""
        recent = (self.last & ((1 << _RECENT) - 1)).bit_count()
        pages, drops = self.past.pages + self.pages - _RECENT, self.past.drops + self.drops - recent
        just_before = min(_BEFORE, max(0, self.pages - _RECENT))
        if recent < _MANY or self.pages < _RECENT or pages < _BEFORE or drops > _FEW * pages:
            return ""
        if (self.last >> _RECENT).bit_count() > _FEW * just_before:
            return ""
        return f"{recent} of its last {_RECENT} pages, and {drops:,} of the {pages:,} before them"

    def loses_delivered(self) -> bool:
        """Whether many pages that were delivered are dropped now."""
        return self.delivered >= max(_DELIVERED, _SHARE * self.pages)


class DropWatch:
    """Sees each page of a crawl after it was judged."""

    def __init__(self, notes: Notes, past: Mapping[str, SiteDrops]) -> None:
        """``past``: what earlier crawls counted, by site."""
        self._notes = notes
        self._past = past
        self._sites: OrderedDict[str, _Site] = OrderedDict()
        self._originals: OrderedDict[tuple[int, str], set[int]] = OrderedDict()
        self._warned = 0

    def counted(self) -> list[SiteDrops]:
        """What this crawl counted of each site that it saw last."""
        return [SiteDrops(name, site.pages, site.drops, site.delivered) for name, site in self._sites.items()]

    def see(self, page: Page, ruled: Ruled) -> None:
        """Count a page, and warn where its drop is one too many. A copy without a reservation is dropped."""
        verdict, site = ruled.verdict, site_of(ruled.verdict.url)
        if not site or verdict.kind is Kind.UNJUDGED:
            return
        dropped = verdict.kind is Kind.DUPLICATE and ruled.reservation is None
        seen = _recent(self._sites, site, _SITES, lambda: _Site(self._past.get(site) or SiteDrops(site)))
        seen.see(dropped=dropped, delivered=ruled.was_delivered)
        if not dropped or verdict.match is None:
            return
        if jump := seen.jump():
            self._warn(stats.SUSPICIOUS_JUMP, seen, verdict, jump)
        if seen.loses_delivered():
            self._warn(
                stats.SUSPICIOUS_DELIVERED, seen, verdict, f"{seen.delivered:,} that earlier crawls had delivered"
            )
        if self._has_many_titles(page, verdict, site):
            self._warn(
                stats.SUSPICIOUS_TITLES, seen, verdict, f"{_TITLES} under different titles for this one original"
            )

    def _has_many_titles(self, page: Page, verdict: Verdict, site: str) -> bool:
        title = letters(normalize(f"{article_title(page.title[:_LONGEST])}{page.headline[:_LONGEST]}"))
        if not title or verdict.match is None:
            return False
        titles = _recent(self._originals, (verdict.match.id, site), _ORIGINALS, set[int])
        if len(titles) < _TITLES:
            titles.add(OPEN.of(title))
        return len(titles) >= _TITLES

    def _warn(self, alarm: str, seen: _Site, verdict: Verdict, what: str) -> None:
        if alarm in seen.warned:
            return
        seen.warned.add(alarm)
        self._notes.count(alarm)
        self._warned += 1
        if self._warned > _WARNINGS:
            self._notes.warn_once(
                "suspicious drops",
                "More sites lose suspiciously many pages as copies. List them with: scrapy neardup stats",
            )
            return
        match = verdict.match
        assert match is not None
        shared = f' Both contain "{one_line(match.shared[0], 60)}".' if match.shared else ""
        site = shell_word(seen.past.site)
        logger.warning(
            "Suspiciously many pages of %s are dropped as copies: %s. The last one is %s, dropped for %s.%s Perhaps "
            "its articles are not read any more, or somebody forges them. Compare the two: scrapy neardup compare %s "
            "%s. List all drops: scrapy neardup dropped --last --site %s. If they are wrong: scrapy neardup keep "
            "--last --site %s, and the next crawl delivers them.",
            one_line(seen.past.site),
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
    """The value under a key, which becomes the last one used; above ``most`` keys the first one goes."""
    found = known.pop(key, None)
    known[key] = found = new() if found is None else found
    if len(known) > most:
        known.popitem(last=False)
    return found
