"""The safety brake: whatever goes wrong with the judging of a site, few of its articles are lost before it is noticed.

Two things are looked at, and neither of them is what copying looks like:

* **one original and many titles**: pages of one site under ``_TITLES`` different titles were dropped for one page. An
  article is reposted by many sites, and often under another title, but a site seldom posts it five times, each time
  under a new one. A footer that is all that is read of each page of a relaunched site is such an original, a
  page with nothing but a site's disclaimer, a form that many notices fill in.
* **a site that was no mirror becomes one**: of its last ``_RECENT`` pages ``_MANY`` were dropped, while of those before
  no more than ``_FEW`` were. A mirror is one from its beginning, or becomes one slowly, as its pages and those of the
  other site come in a mixed order; where someone forges copies of a site's articles it happens at once.

A page that is seen again (``unchanged``) is one that was not dropped for another: a second crawl, which drops nothing
else and takes the copies of the first one for copies again, sees the shares that the first one saw.

Nothing in here knows of Scrapy. Titles are kept as fingerprints, pages by their ids; sites and originals are bounded,
as strangers choose how many there are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title

K = TypeVar("K")
V = TypeVar("V")

#: Different titles of one site, all dropped for one original.
_TITLES = 5
#: Of so many pages of a site the last ones, and how many of them must have been dropped.
_RECENT, _MANY = 15, 13
#: So many pages before those are what a site was, and the share of dropped ones among them that is no mirror's.
_BEFORE, _FEW = 20, 0.2
#: Sites, and originals with the sites that copy them, that are watched: those that were seen last.
_SITES, _ORIGINALS = 10_000, 20_000
#: Sites and originals that the brake is on for; for more it is on for all there is.
_MOST = 10_000
#: Letters of a title that are looked at.
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Alarm:
    """What the brake has found: of which site, with which verdict, and the ids of pages that were dropped until then.

    ``before``: the share of dropped pages among the earlier ones of the site; None if it is the titles of the pages
    dropped for one original that are striking.
    """

    site: str
    verdict: Verdict
    dropped: tuple[int, ...]
    before: float | None = None

    @property
    def is_of_site(self) -> bool:
        return self.before is not None


@dataclass(slots=True)
class _Site:
    """Pages of a site: how many there were and how many were dropped; the last ones bit by bit, a one for a drop.

    ``ids``: of the last ones that were dropped.
    """

    pages: int = 0
    drops: int = 0
    last: int = 0
    ids: tuple[int, ...] = ()

    def see(self, id: int | None) -> float | None:
        """Count a page, dropped if there is an id; the earlier share of drops if it has jumped with this one."""
        self.pages += 1
        self.drops += id is not None
        self.last = (self.last << 1 | (id is not None)) & ((1 << _RECENT + _BEFORE) - 1)
        recent = (self.last & ((1 << _RECENT) - 1)).bit_count()
        self.ids = (*self.ids, id)[-recent:] if id is not None else self.ids[-recent:] if recent else ()
        earlier = self.pages - _RECENT
        if id is None or recent < _MANY or earlier < _BEFORE:
            return None
        share = max((self.drops - recent) / earlier, (self.last >> _RECENT).bit_count() / _BEFORE)
        return share if share <= _FEW else None


@dataclass(slots=True)
class Brake:
    """Sees each page that is judged, in the order of the crawl; ``acts``: whether copies pass once it is on."""

    acts: bool
    _on: set[str | int] = field(default_factory=set)
    _off: set[str | int] = field(default_factory=set)
    _sites: OrderedDict[str, _Site] = field(default_factory=OrderedDict)
    _originals: OrderedDict[tuple[int, str], dict[int, int]] = field(default_factory=OrderedDict)

    def put_on(self, what: str | int) -> None:
        """It has come on before: for a site, or for an original by its id."""
        self._on.add(what)

    def put_off(self, what: str | int) -> None:
        """Somebody says that all is well there: it does not come on for it."""
        self._off.add(what)

    @property
    def is_on_for_all(self) -> bool:
        """Whether it is on for so many sites and originals that it is on for every one."""
        return len(self._on) > _MOST

    def lets_pass(self, verdict: Verdict) -> bool:
        """Whether the page is to pass though it is a copy, as the brake is on for its site or its original."""
        return self.acts and verdict.kind is Kind.DUPLICATE and self._is_on(site_of(verdict.url), verdict)

    def see(self, page: Page, verdict: Verdict, *, dropped: bool) -> Alarm | None:
        """Count a page that was judged; ``dropped``: as a copy of another page. The alarm if this is one too many."""
        site = site_of(verdict.url)
        if not site or verdict.kind is Kind.UNJUDGED or self._is_on(site, verdict):
            return None
        seen = _recent(self._sites, site, _SITES, _Site)
        before = seen.see(verdict.id if dropped else None)
        if not dropped or verdict.match is None:
            return None
        if before is not None and site not in self._off:
            self._on.add(site)
            return Alarm(site, verdict, seen.ids, before)
        title = letters(normalize(f"{article_title(page.title[:_LONGEST])}{page.headline[:_LONGEST]}"))
        if not title or verdict.match.id in self._off:
            return None
        key = verdict.match.id, site
        titles = _recent(self._originals, key, _ORIGINALS, dict)
        titles.setdefault(OPEN.of(title), verdict.id)
        if len(titles) < _TITLES:
            return None
        self._on.add(verdict.match.id)
        del self._originals[key]
        return Alarm(site, verdict, tuple(titles.values()))

    def _is_on(self, site: str, verdict: Verdict) -> bool:
        original = verdict.match.id if verdict.match else 0
        return self.is_on_for_all or site in self._on or original in self._on


def _recent(known: OrderedDict[K, V], key: K, most: int, new: Callable[[], V]) -> V:
    """What is known under a key, which is the last one used now; of more than ``most`` keys the first one goes."""
    found = known.pop(key, None) or new()
    known[key] = found
    if len(known) > most:
        known.popitem(last=False)
    return found
