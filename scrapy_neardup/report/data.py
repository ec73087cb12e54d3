"""What a report says, as plain data: how it looks is nobody's business here.

All strings of pages are clean (see ``clean``) and bounded in length; all times are whole seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_neardup.text.marking import Part

#: The kinds in the order in which they are told: copies, and pages that passed though they are like an earlier one.
COPIES = ("identical", "near", "retitled", "excerpt", "same_title", "unknown")
PASSED = ("excerpt", "same_title")
#: The kind of a page that is no copy, in a list of pages.
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class Totals:
    """The state in numbers.

    ``passed``: originals that are like an earlier page. ``saved``: characters of text of those copies whose length is
    known, ``measured`` in number. ``first`` and ``last``: when the first page was first seen, and any page last; both 0
    for an empty state. ``size`` in bytes. ``rows``: of listings, which are compared with no page.
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

    @property
    def share(self) -> float:
        """Copies among all pages, in [0, 1].

        >>> Totals(pages=8, copies=2).share
        0.25
        """
        return self.copies / self.pages if self.pages else 0.0


@dataclass(frozen=True, slots=True)
class Count:
    """How many pages are of a kind."""

    name: str
    pages: int


@dataclass(frozen=True, slots=True)
class SiteFlow:
    """Who copies from whom: ``cells[row][column]`` copies on site ``rows[row]`` of originals on ``columns[column]``.

    The last row, column or both are all others together if there are more sites than ``shown``: of ``copying`` sites
    that have copies, and ``copied`` sites that have originals of copies.
    """

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: tuple[tuple[int, ...], ...] = ()
    shown: int = 0
    copying: int = 0
    copied: int = 0


@dataclass(frozen=True, slots=True)
class TimeBucket:
    """Pages that were first seen from ``start`` on, up to the start of the next bucket."""

    start: int
    originals: int = 0
    copies: int = 0
    unjudged: int = 0


@dataclass(frozen=True, slots=True)
class Times:
    """Pages by the time at which they were first seen, in buckets of ``unit`` ("minute", "5 minutes", "week") without a
    gap."""

    unit: str = ""
    buckets: tuple[TimeBucket, ...] = ()


@dataclass(frozen=True, slots=True)
class Threshold:
    """A parameter of the method that is a similarity, and what it decides."""

    name: str
    value: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Similarities:
    """Pages by similarity to their original: bin ``i`` holds those from i / bins on, the last one 1.0 as well."""

    copies: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True, slots=True)
class PageLine:
    """A page in a list. ``title`` is empty where none is known, and so is ``letters`` 0."""

    url: str
    site: str
    seen: int
    kind: str
    similarity: float
    letters: int = 0
    title: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """An original with its copies, ``copies`` in number, of which ``pages`` are the first.

    ``similar_id`` is that of the tags of a crawl. ``title`` is the best name that is known.
    """

    similar_id: str
    title: str
    original: PageLine | None
    copies: int
    pages: tuple[PageLine, ...]


@dataclass(frozen=True, slots=True)
class MarkedText:
    """The beginning of a text, its shared sentences marked.

    ``letters`` of the whole text; ``hidden``: the shared sentences that are behind the cut, in as much as was read.
    """

    parts: tuple[Part, ...]
    letters: int
    hidden: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether there is more of it."""
        return sum(len(part.text) for part in self.parts) < self.letters


@dataclass(frozen=True, slots=True)
class CopyLine:
    """A copy with its original; None for an original that is no longer in the state.

    ``similar_id`` is that of their group. ``shared`` and ``texts`` as in ``PagePair``; of too many copies the
    older ones have no texts here, and those before them no sentences either: None.
    """

    page: PageLine
    original: PageLine | None
    similar_id: str = ""
    containment: float = 0.0
    shared: tuple[str, ...] | None = ()
    texts: tuple[MarkedText | None, MarkedText | None] = (None, None)


@dataclass(frozen=True, slots=True)
class PagePair:
    """A page and the earlier one that it is like; ``texts`` of the earlier one and of the page, where they are known.

    ``copy``: whether it is one, or passed. ``shared``: sentences that both hold, as far as the state knows them.
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
        """Whether both texts are there."""
        return None not in self.texts


@dataclass(frozen=True, slots=True)
class CrawlLine:
    """A crawl that the state remembers; ``ended`` is 0 for one that runs, or was killed. Pages by verdict, ``lost``
    those that were taken back as their items were."""

    who: str
    begun: int
    ended: int = 0
    pages: int = 0
    unique: int = 0
    duplicate: int = 0
    unchanged: int = 0
    updated: int = 0
    rows: int = 0
    unjudged: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """All that is told of a state.

    ``groups``, ``pairs`` and ``copies`` (the newest first) are bounded; ``totals`` say how many there are.
    ``parameters`` are those of the recipe. ``language`` is that in which most of the pages seem to be written, of those
    in which reports are. ``unjudged``: pages that could not be judged by reason, in all crawls that are remembered,
    ``remembered`` in number; ``crawls`` are the last of them, the newest first.
    """

    location: str
    method: str
    parameters: tuple[tuple[str, str], ...] = ()
    totals: Totals = Totals()
    kinds: tuple[Count, ...] = ()
    passed: tuple[Count, ...] = ()
    flow: SiteFlow = SiteFlow()
    times: Times = Times()
    similarities: Similarities = Similarities()
    groups: tuple[Group, ...] = ()
    pairs: tuple[PagePair, ...] = ()
    copies: tuple[CopyLine, ...] = ()
    unjudged: tuple[Count, ...] = ()
    crawls: tuple[CrawlLine, ...] = ()
    remembered: int = 0
    language: str = "en"
