"""The frozen things that travel: a page goes in, a verdict comes out."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.oneline import one_line
from scrapy_neardup.quick import quick

#: Nothing to be counted.
NO_SENTENCES: npt.NDArray[np.uint32] = np.empty(0, np.uint32)


@dataclass(frozen=True, slots=True)
class Page:
    """What is judged: an article, and as little as can be told of the site around it.

    ``canonical`` is the address that the page itself names as the place of its original. It only
    proposes a candidate; whether two pages are copies is decided by their text. ``html`` is the fingerprint of the
    whole HTML, or of the whole item that brought its text, 0 where neither has a name: by it a page too short to judge
    is known to be unchanged. ``site`` names who published it (see ``site_of``); empty where that is not known.

    ``main``: those lines of the text that are the article itself, where that could be told. ``quotes``: of one read
    from HTML the numbers, from 0, of those lines of the text that it quotes from others; ``main`` is without them.
    ``headline``: what the body has for a title, a line each. ``reader``: how the text was found in HTML; empty for one
    that came without. ``row``: it stands in a listing, and is the same as another one only if all that it holds is.
    ``unread``: of one that was too much to be read or judged, why. ``body``: by what its very bytes are known again
    (see ``page.bodies``), 0 for one that was not made from a body. ``letters``: characters of its text, of one that is
    known by its bytes, and whose text is not at hand.
    """

    url: str
    title: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""
    text: str = ""
    canonical: str = ""
    html: int = 0
    site: str = ""
    main: str = ""
    headline: str = ""
    reader: str = ""
    row: bool = False
    unread: str = ""
    quotes: tuple[int, ...] = ()
    body: int = 0
    letters: int = 0


class SiteCounts(Protocol):
    """What a state knows of one site."""

    def pages(self) -> int:
        """How many of its pages were noted, 256 at most; copies are not."""

    def stood_on(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        """On how many of them, 256 at most, each of these sentences (32-bit fingerprints) stood."""

    def forms(self) -> float:
        """The share of its last pages that looked like another one of it under another title; 0 if few are known."""

    def is_own(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Which of them stand on so many of its pages that they are its boilerplate."""

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Which of them are boilerplate: of the site, or everywhere."""


@quick(frozen=True, slots=True)
class Fingerprint:
    """What a method makes of a page.

    ``keys``: unsigned 64-bit integers under which the page is filed and looked up.
    ``sketch``: bytes in the method's own versioned layout, compared with the sketches of candidates.
    Both are the same in every process, on every machine and in every release of a method's version.

    The rest is of use while the page is judged, and is not kept. ``sentences``: 32-bit fingerprints of the sentences to
    be counted; one that comes twice counts once. ``whole``: the sketch of the text with its boilerplate, where there is
    any. ``own``: letters and digits that are not boilerplate; None for a method that does not ask. ``site``: what the
    state knows of its site. ``boilerplate``: those of the sentences that were left out for standing on many pages.
    ``unframed``: the sketch of the text without what is boilerplate of its own site, where some more of it is
    boilerplate everywhere. ``quoted``: letters and digits of what it quotes, which are not among its own. ``title``:
    what the method knows of its title, to hold it against an earlier page. ``in_form``: it looks like one of its site,
    see ``Comparison``.
    """

    keys: tuple[int, ...]
    sketch: bytes
    sentences: npt.NDArray[np.uint32] = field(default_factory=lambda: NO_SENTENCES, compare=False, repr=False)
    whole: bytes = b""
    own: int | None = None
    site: SiteCounts | None = field(default=None, compare=False, repr=False)
    boilerplate: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    unframed: bytes = b""
    title: Any = field(default=None, compare=False, repr=False)
    quoted: int = 0
    in_form: bool = False

    def with_keys(self, keys: tuple[int, ...]) -> Fingerprint:
        """The same under other keys: ``replace`` for what nearly every page needs, without looking up its fields."""
        return Fingerprint(
            *(keys, self.sketch, self.sentences, self.whole, self.own, self.site),
            *(self.boilerplate, self.unframed, self.title, self.quoted, self.in_form),
        )

    def why_unjudged(self, needed: int) -> str:
        """The reason for which a page with fewer than ``needed`` letters of its own is not judged; empty if it is."""
        if self.own is None or self.own >= needed:
            return ""
        return "quotes" if self.own + self.quoted >= needed else "boilerplate"


class Likeness(str, Enum):
    """How two pages are alike; the value is the name in stats, settings and tags.

    The first three are duplicates, the others are told of but pass unless the policy says otherwise.
    """

    #: The same text, letter by letter, whatever its title.
    IDENTICAL = "identical"
    #: An edited copy.
    NEAR = "near"
    #: An edited copy under another title.
    RETITLED = "retitled"
    #: One of two texts holds most of the other, and much more.
    EXCERPT = "excerpt"
    #: The same title over another text.
    SAME_TITLE = "same_title"


@quick(frozen=True, slots=True)
class Comparison:
    """What a method says of two sketches.

    ``similarity`` and ``containment`` (of the shorter page in the longer one) lie in [0, 1];
    ``certain``: a duplicate by similarity alone, whatever else agrees or not; ``identical``: word by word
    the same article under the same title. ``likeness`` says in which way the pages are alike; None if they are not.
    ``same_site``: both are known to be of one site. ``in_form``: and they look alike, and one says what its title
    says and the other does not, whatever becomes of them.
    """

    similarity: float
    containment: float
    duplicate: bool
    certain: bool
    identical: bool
    likeness: Likeness | None = None
    same_site: bool = False
    in_form: bool = False

    def is_copy(self, also_copies: Set[Likeness]) -> bool:
        """Whether the new page is a copy, by the method or because its likeness is to count as one."""
        return self.duplicate or self.likeness in also_copies


@dataclass(frozen=True, slots=True)
class Feature:
    """One piece of evidence, and how much it weighs: the score is the sum of the values times their weights."""

    name: str
    value: float
    weight: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a method came to its verdict on two pages."""

    features: tuple[Feature, ...]
    score: float
    #: The score that makes a duplicate.
    needed: float
    #: The rule that decided, as a sentence.
    decision: str


@quick(frozen=True, slots=True)
class Match:
    """The earlier page that decided a verdict, with the evidence."""

    id: int
    url: str
    first_seen: float
    similarity: float
    containment: float
    shared: tuple[str, ...] = ()


class Kind(str, Enum):
    """The six answers; the value is the name in stats, logs and tags.

    ``BETTER`` is a copy that passes, as it takes the place of the page that stood for its group.
    """

    UNIQUE = "unique"
    DUPLICATE = "duplicate"
    UNCHANGED = "unchanged"
    UPDATED = "updated"
    BETTER = "better"
    UNJUDGED = "unjudged"


@quick(frozen=True, slots=True)
class Verdict:
    """The answer on one page.

    ``id`` names the page in the state (0: it has none). ``reason`` says why a page is unjudged. ``likeness`` says how a
    duplicate is like the page that it matches, or a page that passes, of which it is an excerpt or shares the title.
    ``reader`` says how the page's text was found in its HTML (see ``Page``). ``group`` names the group of a page that
    passes and belongs to one all the same; the match of a better page is the one that it supersedes.
    ``by_hand``: somebody has said so, against what the method says. ``same_bytes``: the page was not read, as its very
    bytes had been judged before.
    """

    kind: Kind
    url: str
    id: int = 0
    match: Match | None = None
    reason: str = ""
    likeness: Likeness | None = None
    reader: str = ""
    group: int = 0
    by_hand: bool = False
    same_bytes: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether the page brings nothing that is not in the state already."""
        return self.kind in (Kind.DUPLICATE, Kind.UNCHANGED)

    @property
    def similar_id(self) -> str:
        """The same 16 hexadecimal digits for all pages of one group; empty for a page outside the state."""
        group = self.match.id if self.match and self.is_copy else self.group or self.id
        return f"{group:016x}" if group else ""

    @property
    def kind_of_likeness(self) -> str | None:
        """The name of the likeness, if there is one."""
        return self.likeness.value if self.likeness else None

    @property
    def headline(self) -> str:
        """The kind, with the reason or the likeness.

        >>> Verdict(Kind.UNJUDGED, "http://a.example/", reason="no_text").headline
        'unjudged (no_text)'
        """
        detail = self.reason or self.kind_of_likeness
        return f"{self.kind.value} ({detail})" if detail else self.kind.value

    def sentence(self) -> str:
        """The verdict in one line, for logs and for the message of a dropped item.

        >>> print(Verdict(Kind.UNJUDGED, "http://a.example/", reason="no_text").sentence())
        unjudged (no_text): http://a.example/
        """
        said, url = self.headline, one_line(self.url)
        if self.match is None:
            return f"{said}: {url}"
        earlier = one_line(self.match.url)
        shared = f', both say "{_clip(self.match.shared[0])}"' if self.match.shared else ""
        shared += ", judged by hand" if self.by_hand else ""
        shared += ", the same bytes" if self.same_bytes else ""
        if self.kind is Kind.DUPLICATE:
            return f"{said}: {url} is a copy of {earlier} (similarity {self.match.similarity:.2f}{shared})"
        if self.kind is Kind.BETTER:
            return f"{said}: {url} supersedes {earlier} (similarity {self.match.similarity:.2f}{shared})"
        if self.kind is Kind.UNIQUE:
            return f"{said}: {url} is like {earlier} (containment {self.match.containment:.2f}{shared})"
        return f"{said}: {url} (similarity {self.match.similarity:.2f} to its earlier text{shared})"

    def as_tag(self) -> dict[str, Any]:
        """The verdict as plain data, for the field of a tagged item.

        ``original`` is there for copies alone; ``like`` is the earlier page that any other page was compared with, and
        ``supersedes`` the one whose place a better page takes.
        """
        match = self.match
        return {
            "verdict": self.kind.value,
            "kind": self.kind_of_likeness,
            "reason": self.reason or ("by_hand" if self.by_hand else "same_bytes" if self.same_bytes else None),
            "reader": self.reader or None,
            "similar_id": self.similar_id or None,
            "original": match.url if match and self.is_copy else None,
            "like": match.url if match and not self.is_copy else None,
            "supersedes": match.url if match and self.kind is Kind.BETTER else None,
            "first_seen": _iso(match.first_seen) if match else None,
            "similarity": round(match.similarity, 4) if match else None,
            "containment": round(match.containment, 4) if match else None,
            "shared": list(match.shared) if match else [],
        }


def _clip(text: str, limit: int = 60) -> str:
    return one_line(text if len(text) <= limit else text[: limit - 1] + "…")


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds")
