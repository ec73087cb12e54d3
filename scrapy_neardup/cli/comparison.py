"""What is known of two pages: the verdict on the later one, and all that led to it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from scrapy_neardup.cli.pages import Side, describe_unjudged, fingerprint_page
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.inspect.lookup import KnownSite
from scrapy_neardup.judge.matching import candidates, filed_fingerprint, may_decide
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Kind, Likeness, Match, Verdict
from scrapy_neardup.settings import Config
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.marking import Mark, Part, mark_sentences, own_letters, sentence_letters

#: More sentences than a sketch holds.
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of two pages that can be judged.

    ``explanation`` is None for a method that only has a similarity. Of the ``keys`` of B, ``shared_keys`` are keys of
    A; ``common_keys`` do not count, because too many pages have them. ``found``: whether a crawl compares the two.
    """

    comparison: Comparison
    explanation: Explanation | None
    decision: str
    shared_keys: int
    keys: int
    common_keys: int
    found: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on B, judged against A.

    ``unjudged`` says why pages cannot be judged; then ``compared`` is None. ``action``: what a crawl does with B.
    ``texts``: the marked texts of A and B; None if the state does not have the text.
    """

    verdict: Verdict
    unjudged: tuple[str, ...]
    compared: Compared | None
    action: str
    texts: tuple[list[Part] | None, list[Part] | None]


@dataclass(frozen=True, slots=True)
class UsedState:
    """The state whose counts were used, with the sites of the pages; or why there is none."""

    location: str = ""
    sites: tuple[KnownSite, ...] = ()
    why_none: str = ""


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """The verdict of a crawl on ``copy``. ``other`` is its original, or another copy of it.

    ``names``: A and B as the user named them.
    """

    copy: Record
    evidence: Evidence | None
    original: Record
    other: Record
    names: tuple[str, str]

    @property
    def is_of_original(self) -> bool:
        """Whether the other page is the original."""
        return self.other.id == self.original.id


def find_recorded_verdict(store: PageStore, a: str, b: str) -> RecordedVerdict | None:
    """Return the recorded verdict on two pages of the state if they cannot be compared again.

    That is so if the state keeps neither text nor sketch of one of them. None also if they are not of one group.
    """
    one, two = store.find(a), store.find(b)
    if one is None or two is None or one.id == two.id or one.original != two.original:
        return None
    if _is_bare(store, two):
        copy, other = two, one
    elif _is_bare(store, one):
        copy, other = one, two
    else:
        return None
    original = store.record(copy.original)
    return RecordedVerdict(copy, store.evidence(copy.id), original, other, (a, b)) if original else None


def _is_bare(store: PageStore, record: Record) -> bool:
    kept = store.evidence(record.id)
    return record.is_light and not (kept and kept.text)


def judge(method: Method, config: Config, a: Side, b: Side, store: PageStore | None) -> Outcome:
    """Judge ``b`` as a crawl that has seen ``a``. The state knows boilerplate and common keys.

    Raises LexiconNeeded if the method cannot read one of the pages.
    """
    old, old_reason, old_why = _fingerprint(method, a, config.min_letters, store)
    new, new_reason, new_why = _fingerprint(method, b, config.min_letters, store)
    texts = _mark_text(method, a, old, b, new), _mark_text(method, b, new, a, old)
    unique = Verdict(Kind.UNIQUE, "B")
    if old is None or new is None or old_why or new_why:
        verdict = Verdict(Kind.UNJUDGED, "B", reason=new_reason or old_reason)
        unjudged = tuple(f"{name} {why}" for name, why in (("A", old_why), ("B", new_why)) if why)
        return Outcome(verdict, unjudged, None, config.action(unique), texts)
    compared = _compare(method, a, old, b, new, store)
    verdict = _verdict(compared.comparison, config.also_copies)
    return Outcome(verdict, (), compared, config.action(verdict if compared.found else unique), texts)


def _fingerprint(
    method: Method, side: Side, min_letters: int, store: PageStore | None
) -> tuple[Fingerprint | None, AnyReason, str]:
    """Return the fingerprint, and the reason and a sentence if the page cannot be judged."""
    record, page = side.record, side.page
    if record is not None and record.similarity > 0:
        return filed_fingerprint(record, store) if store else Fingerprint(record.keys, record.sketch), "", ""
    if record is not None:
        return None, "", "had too little text when it was crawled"
    assert page is not None
    fingerprint, reason = fingerprint_page(method, page, min_letters, store)
    return fingerprint, reason, describe_unjudged(reason, min_letters) if reason else ""


def _compare(method: Method, a: Side, old: Fingerprint, b: Side, new: Fingerprint, store: PageStore | None) -> Compared:
    common = candidates(method, store, new.keys).common if store else frozenset()
    comparison = method.compare(new, old.sketch, common)
    shared = len((set(new.keys) & set(old.keys)) - common)
    names_a = a.record is not None and b.page is not None and b.page.canonical == a.record.url
    return Compared(
        comparison,
        method.explain(new, old.sketch, common),
        method.decision(new, old.sketch, common),
        shared,
        len(new.keys),
        len(common),
        (shared > 0 or names_a) and (a.record is None or may_decide(a.record, comparison)),
    )


def _verdict(comparison: Comparison, also_copies: Set[Likeness]) -> Verdict:
    match = Match(0, "A", 0.0, comparison.similarity, comparison.containment)
    copy = comparison.is_copy(also_copies)
    return Verdict(Kind.DUPLICATE if copy else Kind.UNIQUE, "B", match=match, likeness=comparison.likeness)


def _mark_text(
    method: Method, side: Side, own: Fingerprint | None, other: Side, others: Fingerprint | None
) -> list[Part] | None:
    """Return the text of a side with its boilerplate, and with the sentences that the other side has too."""
    page, simplified = side.page, method.parameters.simplified
    if page is None:
        return None
    shared: Set[str] = frozenset()
    if other.page is not None:
        shared = sentence_letters(other.page.text, simplified=simplified)
    elif others is not None:
        found = method.shared(page, others.sketch, _ALL)
        shared = frozenset(own_letters(one, simplified=simplified) for one in found)
    boilerplate = own.boilerplate if own else frozenset()

    def mark(sentence: str) -> Mark:
        if boilerplate and method.hashes.short(sentence) in boilerplate:
            return Mark.BOILERPLATE
        return Mark.SHARED if sentence in shared else Mark.NONE

    return mark_sentences(page.text, mark, simplified=simplified)
