"""The data of a report. ``page`` decides how it looks.

Strings of pages are clean (see ``untrusted``) and bounded. Times are whole seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.text.marking import Part

#: All kinds in their order: copies, then pages that passed though they resemble an earlier one.
COPIES = ("identical", "near", "retitled", "excerpt", "same_title", "unknown")
PASSED = ("excerpt", "same_title")
#: Names in place of a site.
NO_SITE, GONE = "(no site)", "(no longer in the state)"


def kind_of(evidence: Evidence | None) -> str:
    """Return the kind of a copy.

    >>> kind_of(Evidence("near")), kind_of(None)
    ('near', 'unknown')
    """
    return evidence.likeness if evidence is not None and evidence.likeness in COPIES else "unknown"


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of a state.

    ``passed``: originals that resemble an earlier page. ``saved``: characters of the ``measured`` copies whose length
    is known. ``first``, ``last``: the first page's first sight and the latest sight of any page; 0 for an empty state.
    ``size``: bytes. ``rows``: rows of listings. ``flows``: pairs of sites where one copies from the other.
    """

    pages: int = 0
    originals: int = 0
    copies: int = 0
    unjudged: int = 0
    passed: int = 0
    groups: int = 0
    sites: int = 0
    saved: int = 0
    measured: int = 0
    first: int = 0
    last: int = 0
    size: int = 0
    rows: int = 0
    flows: int = 0

    @property
    def share(self) -> float:
        """The share of copies, in [0, 1].

        >>> Totals(pages=8, copies=2).share
        0.25
        """
        return self.copies / self.pages if self.pages else 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """A name and its number of pages."""

    name: str
    pages: int


@dataclass(frozen=True, slots=True)
class SiteFlow:
    """Copies on one site of originals on another one, or on the same."""

    copying: str
    copied: str
    copies: int


@dataclass(frozen=True, slots=True)
class PageLine:
    """A page in a list. An unknown title is empty, unknown ``letters`` are 0."""

    url: str
    site: str
    seen: int
    kind: str
    similarity: float
    letters: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """An original with ``copies`` copies; ``pages`` are the first of them.

    ``similar_id`` is the one in tags. ``title`` is the best known one.
    """

    similar_id: str
    title: str
    original: PageLine | None
    copies: int
    pages: tuple[PageLine, ...]


@dataclass(frozen=True, slots=True)
class MarkedText:
    """The beginning of a text with its shared sentences marked.

    ``letters``: of the whole text. ``hidden``: shared sentences behind the cut, as far as the text was read.
    """

    parts: tuple[Part, ...]
    letters: int
    hidden: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on."""
        return sum(len(part.text) for part in self.parts) < self.letters


@dataclass(frozen=True, slots=True)
class CopyLine:
    """A copy with its original, None if that is gone.

    ``shared`` and ``texts`` as in ``PagePair``; in a large report older copies have no texts, and still older ones no
    sentences either (None).
    """

    page: PageLine
    original: PageLine | None
    similar_id: str = ""
    containment: float = 0.0
    shared: tuple[str, ...] | None = ()
    texts: tuple[MarkedText | None, MarkedText | None] = (None, None)


@dataclass(frozen=True, slots=True)
class PagePair:
    """A page and the earlier one that it resembles; ``texts``: of the earlier one and of the page, if known.

    ``copy``: whether the page is a copy, or passed. ``shared``: sentences in both that the state keeps.
    """

    kind: str
    copy: bool
    page: PageLine
    original: PageLine
    similarity: float
    containment: float
    shared: tuple[str, ...]
    texts: tuple[MarkedText | None, MarkedText | None]

    @property
    def has_texts(self) -> bool:
        """Whether both texts are known."""
        return None not in self.texts


@dataclass(frozen=True, slots=True)
class CrawlLine:
    """A crawl; ``ended`` is 0 while it runs or if it was killed. ``lost``: pages that were rolled back with their
    items.
    """

    who: str
    begun: int
    ended: int = 0
    pages: int = 0
    unique: int = 0
    duplicate: int = 0
    unchanged: int = 0
    updated: int = 0
    minor_update: int = 0
    rows: int = 0
    unjudged: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Everything in a report.

    ``flows``, ``groups``, ``pairs`` and ``copies`` (newest first) are bounded; ``totals`` has their numbers.
    ``parameters``: of the recipe. ``language``: of most pages. ``unjudged``: pages by reason in all ``remembered``
    crawls; ``crawls``: the last of them, newest first.
    """

    location: str
    method: str
    parameters: tuple[tuple[str, str], ...] = ()
    totals: Totals = Totals()
    kinds: tuple[Count, ...] = ()
    passed: tuple[Count, ...] = ()
    flows: tuple[SiteFlow, ...] = ()
    groups: tuple[Group, ...] = ()
    pairs: tuple[PagePair, ...] = ()
    copies: tuple[CopyLine, ...] = ()
    unjudged: tuple[Count, ...] = ()
    crawls: tuple[CrawlLine, ...] = ()
    remembered: int = 0
    language: str = "en"
