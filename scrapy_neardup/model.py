"""The data that travels: a page goes in, a verdict comes out."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.untrusted import one_line

#: No sentences to count.
NO_SENTENCES: npt.NDArray[np.uint32] = np.empty(0, np.uint32)


@fast_dataclass(frozen=True, slots=True)
class Page:
    """A page to be judged: its article, with as little as possible of the site around it.

    ``canonical`` is the address that the page names as its original. It only proposes a candidate; the texts decide.
    ``html`` is a fingerprint of the whole HTML, or of an item with its own text. It shows that a page too short to
    judge is unchanged; 0 if there is none. ``site`` names the publisher (see ``site_of``); empty if unknown.

    ``main``: the lines of the text that are the article, if they are known. ``quotes``: numbers, from 0, of the lines
    that quote other messages; ``main`` leaves them out. ``headline``: the headings of the body, one per line.
    ``links``: links that an article lists, one per line; they make no copy, but other ones make another article.
    ``reader``: how the text was found in the HTML; empty without HTML. ``row``: the page is a row of a listing, and
    equals another row only if all fields are equal. ``unread``: why the page was too large or too slow to read.
    ``body``: a digest of its bytes (see ``BodyHasher``), or 0. ``address``: its own URL, if ``url`` is a record's id.
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
    links: str = ""
    reader: str = ""
    row: bool = False
    unread: AnyReason = ""
    quotes: tuple[int, ...] = ()
    body: int = 0
    address: str = ""


class SiteCounts(Protocol):
    """The counts of one site in a state."""

    def pages(self) -> int:
        """Return the number of noted pages, at most 256; copies are not noted."""

    def pages_on_site(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        """Return on how many noted pages, at most 256, each sentence (32-bit fingerprint) stood."""

    def template_share(self) -> float:
        """Return the share of recent pages that filled in a template of the site; 0 if few are known."""

    def is_own(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate of this site."""

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate, of this site or everywhere."""


@fast_dataclass(frozen=True, slots=True)
class Fingerprint:
    """A page as a method sees it.

    ``keys``: unsigned 64-bit integers under which the page is filed and looked up. ``sketch``: bytes in the method's
    own versioned layout, to compare with candidates. Both are the same in every process, on every machine and in every
    release of a method's version.

    The rest serves to judge the page and is not kept. ``sentences``: 32-bit fingerprints to count, each once.
    ``whole``: the sketch of the text with its boilerplate, if it has any. ``own``: number of own letters and digits;
    None if the method does not count them. ``site``: the state's counts of the site. ``boilerplate``: sentences left
    out. ``site_free``: the sketch without boilerplate of its own site only, if there is other boilerplate too.
    ``title``: the method's view of the title. ``quoted``: number of quoted letters and digits. ``in_form``: of
    any comparison (see there).
    """

    keys: tuple[int, ...]
    sketch: bytes
    sentences: npt.NDArray[np.uint32] = field(default_factory=lambda: NO_SENTENCES, compare=False, repr=False)
    whole: bytes = b""
    own: int | None = None
    site: SiteCounts | None = field(default=None, compare=False, repr=False)
    boilerplate: frozenset[int] = field(default=frozenset(), compare=False, repr=False)
    site_free: bytes = b""
    title: Any = field(default=None, compare=False, repr=False)
    quoted: int = 0
    in_form: bool = False

    def why_unjudged(self, needed: int) -> AnyReason:
        """Return why a page with fewer than ``needed`` own letters is not judged, or an empty string."""
        if self.own is None or self.own >= needed:
            return ""
        return "quotes" if self.own + self.quoted >= needed else "boilerplate"


class Kind(str, Enum):
    """How two pages are alike; the value is the name in stats, settings and tags.

    The first three are copies. The others are reported but pass unless the policy says otherwise.
    """

    #: The same text, letter by letter. The titles may differ.
    IDENTICAL = "identical"
    #: An edited copy.
    NEAR = "near"
    #: An edited copy under another title.
    RETITLED = "retitled"
    #: One text contains most of the other, and much more.
    EXCERPT = "excerpt"
    #: The same title over another text.
    SAME_TITLE = "same_title"


@fast_dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two sketches.

    ``similarity`` and ``containment`` (of the shorter page in the longer one) lie in [0, 1]. ``certain``: a duplicate
    by similarity alone. ``identical``: same article, word by word, and same title. ``kind``: how the pages are
    alike, or None. ``in_form``: they look alike, perhaps on one site, and a title word of one page is missing in the
    other, as if one template was filled in twice. ``other_title``: equal texts of one site under quite other titles.
    """

    similarity: float
    containment: float
    duplicate: bool
    certain: bool
    identical: bool
    kind: Kind | None = None
    in_form: bool = False
    other_title: bool = False

    def is_copy(self, also_copies: Set[Kind]) -> bool:
        """Whether the new page is a copy, by the method or because its kind counts as one."""
        return self.duplicate or self.kind in also_copies


@dataclass(frozen=True, slots=True)
class Feature:
    """One piece of evidence with its weight; the score is the sum of value times weight."""

    name: str
    value: float
    weight: float
    meaning: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a method judged two pages."""

    features: tuple[Feature, ...]
    score: float
    #: The score that makes a duplicate.
    needed: float
    #: The deciding rule as a sentence.
    decision: str


@fast_dataclass(frozen=True, slots=True)
class Match:
    """The earlier page that decided a verdict, with the evidence."""

    id: int
    url: str
    first_seen: float
    similarity: float
    containment: float
    shared: tuple[str, ...] = ()


#: The reason of a row: an item without text, one of several of a response. It is compared with no page.
LISTING: Final = "listing"


class Outcome(str, Enum):
    """The seven verdicts; the value is the name in stats, logs and tags."""

    #: No earlier page has the same article. The item passes.
    UNIQUE = "unique"
    #: A copy of an earlier page with another URL. The item is dropped (``DuplicatePage``).
    DUPLICATE = "duplicate"
    #: An earlier crawl delivered this URL with the same text and title. The item is dropped (``UnchangedPage``). A page
    #: that cannot be judged is unchanged if its HTML or item is the same.
    UNCHANGED = "unchanged"
    #: The URL is known, and its text is new. The item passes, and the new text replaces the old one.
    UPDATED = "updated"
    #: This URL was delivered, and since then only a few letters of its text changed, such as a counter. The item is
    #: dropped (``UnchangedPage``) unless ``NEARDUP_POLICY`` lets it pass. The state keeps the delivered text.
    MINOR_UPDATE = "minor_update"
    #: A copy that takes the place of the original of its group, see ``NEARDUP_KEEP_POLICY``. The item passes with a
    #: tag.
    BETTER = "better"
    #: The page cannot be judged. The stat names the reason. The item passes.
    UNJUDGED = "unjudged"


@fast_dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one page.

    ``outcome`` is the answer. ``match`` is the earlier page that decided it; for a better page, the page that it
    supersedes. ``kind`` says how both are alike. ``reason`` says why a page is unjudged.

    ``id`` names the page in the state (0: it is not there). ``reader`` says how its text was found in the HTML.
    ``group`` names the group of a page that passes but belongs to one. ``by_hand``: a manual verdict decided.
    ``same_bytes``: the URL had the same bytes before, so the page was not read.
    """

    outcome: Outcome
    url: str
    id: int = 0
    match: Match | None = None
    reason: AnyReason = ""
    kind: Kind | None = None
    reader: str = ""
    group: int = 0
    by_hand: bool = False
    same_bytes: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether the page is a duplicate, unchanged or a minor update."""
        return self.outcome in (Outcome.DUPLICATE, Outcome.UNCHANGED, Outcome.MINOR_UPDATE)

    @property
    def similar_id(self) -> str:
        """The same 16 hexadecimal digits for all pages of a group; empty for a page outside the state."""
        group = self.group or (self.match.id if self.match and self.is_copy else self.id)
        return f"{group:016x}" if group else ""

    @property
    def kind_name(self) -> str | None:
        """The name of the kind, if there is one."""
        return self.kind.value if self.kind else None

    @property
    def headline(self) -> str:
        """The outcome, with the reason or the kind.

        >>> Verdict(Outcome.UNJUDGED, "http://a.example/", reason="no_text").headline
        'unjudged (no_text)'
        """
        detail = self.reason or self.kind_name
        return f"{self.outcome.value} ({detail})" if detail else self.outcome.value

    def sentence(self) -> str:
        """The verdict in one line, for logs and for the message of a dropped item.

        >>> print(Verdict(Outcome.UNJUDGED, "http://a.example/", reason="no_text").sentence())
        unjudged (no_text): http://a.example/
        """
        what, url = self.headline, one_line(self.url)
        if self.match is None:
            return f"{what}: {url}"
        earlier = one_line(self.match.url)
        shared = f', both say "{one_line(self.match.shared[0], 60)}"' if self.match.shared else ""
        shared += ", judged by hand" if self.by_hand else ""
        shared += ", the same bytes" if self.same_bytes else ""
        if self.outcome is Outcome.DUPLICATE:
            return f"{what}: {url} is a copy of {earlier} (similarity {self.match.similarity:.2f}{shared})"
        if self.outcome is Outcome.BETTER:
            return f"{what}: {url} supersedes {earlier} (similarity {self.match.similarity:.2f}{shared})"
        if self.outcome is Outcome.UNIQUE:
            return f"{what}: {url} is like {earlier} (containment {self.match.containment:.2f}{shared})"
        return f"{what}: {url} (similarity {self.match.similarity:.2f} to its earlier text{shared})"

    def as_tag(self) -> dict[str, Any]:
        """The verdict as plain data, for the field of a tagged item.

        Only copies have ``original``. Other pages have ``like``, the earlier page compared with them. A better page has
        ``supersedes``, the page that it replaces.
        """
        match = self.match
        first_seen = datetime.fromtimestamp(match.first_seen, tz=timezone.utc) if match else None
        return {
            "verdict": self.outcome.value,
            "kind": self.kind_name,
            "reason": self.reason or ("by_hand" if self.by_hand else "same_bytes" if self.same_bytes else None),
            "reader": self.reader or None,
            "similar_id": self.similar_id or None,
            "original": match.url if match and self.is_copy else None,
            "like": match.url if match and not self.is_copy else None,
            "supersedes": match.url if match and self.outcome is Outcome.BETTER else None,
            "first_seen": first_seen.isoformat(timespec="seconds") if first_seen else None,
            "similarity": round(match.similarity, 4) if match else None,
            "containment": round(match.containment, 4) if match else None,
            "shared": list(match.shared) if match else [],
        }
