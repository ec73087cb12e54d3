"""The data of a report. ``page`` decides how it looks.

Strings of pages are clean (see ``untrusted``) and bounded. Times are whole seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scrapy_neardup.maintenance.scan import Statistics
from scrapy_neardup.text.marking import Part

#: Names in place of a site.
NO_SITE, GONE = "(no site)", "(no longer in the state)"


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
        return None not in self.texts


@dataclass(frozen=True, slots=True)
class Report:
    """Everything in a report.

    ``flows`` are the largest of ``all_flows``: copies on one site, of originals on another one, and their number.
    ``groups``, ``pairs`` and ``copies`` (newest first) are bounded; ``totals`` has the number of groups and copies.
    ``unjudged``: pages by reason in all ``remembered`` crawls; ``crawls``: the last of them, newest first, with their
    counts.
    """

    location: str
    method: str
    totals: Statistics = field(default_factory=Statistics)
    flows: tuple[tuple[str, str, int], ...] = ()
    all_flows: int = 0
    groups: tuple[Group, ...] = ()
    pairs: tuple[PagePair, ...] = ()
    copies: tuple[PagePair, ...] = ()
    unjudged: dict[str, int] = field(default_factory=dict)
    crawls: tuple[dict[str, Any], ...] = ()
    remembered: int = 0
