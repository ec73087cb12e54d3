"""The data of a report. ``page`` decides how it looks.

Strings of pages are clean (see ``untrusted``) and bounded. Times are whole seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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

    ``passed``: originals that resemble an earlier page. ``saved``: characters of the ``measured`` copies, the copies of
    known length. ``first``, ``last``: the first page's first sight and the latest sight of any page; 0 for an empty
    state. ``size``: bytes. ``rows``: rows of listings. ``flows``: pairs of sites where one copies from the other.
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
class PagePair:
    """A page and the earlier page that it resembles, None if that is gone.

    ``copy``: whether the page is a copy, or passed. ``shared``: common sentences that the state keeps. ``texts``: of
    the earlier page and of the later one, if known. In the table of a large report older copies have no texts, and
    still older ones no sentences either (None).
    """

    kind: str
    copy: bool
    page: PageLine
    original: PageLine | None
    similar_id: str
    similarity: float
    containment: float
    shared: tuple[str, ...] | None = ()
    texts: tuple[MarkedText | None, MarkedText | None] = (None, None)

    @property
    def has_texts(self) -> bool:
        """Whether both texts are known."""
        return None not in self.texts


@dataclass(frozen=True, slots=True)
class Report:
    """Everything in a report.

    ``kinds``, ``passed``: pages by kind. ``flows``, ``groups``, ``pairs`` and ``copies`` (newest first) are bounded;
    ``totals`` has their numbers. ``parameters``: of the recipe. ``unjudged``: pages by reason in all ``remembered``
    crawls; ``crawls``: the last of them, newest first, with their counts.
    """

    location: str
    method: str
    parameters: tuple[tuple[str, str], ...] = ()
    totals: Totals = Totals()
    kinds: dict[str, int] = field(default_factory=dict)
    passed: dict[str, int] = field(default_factory=dict)
    flows: tuple[SiteFlow, ...] = ()
    groups: tuple[Group, ...] = ()
    pairs: tuple[PagePair, ...] = ()
    copies: tuple[PagePair, ...] = ()
    unjudged: dict[str, int] = field(default_factory=dict)
    crawls: tuple[dict[str, Any], ...] = ()
    remembered: int = 0
