"""Two pages before a method, as a crawl would have them: the verdict on the newer one, and all that led to it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from scrapy_neardup.commands.prejudged import prejudge, why_not
from scrapy_neardup.commands.sides import Side
from scrapy_neardup.config import Config
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judging.matching import candidates, filed_fingerprint, has_a_say
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Kind, Likeness, Match, Verdict
from scrapy_neardup.stores import Store
from scrapy_neardup.text.marking import Mark, Part, marked, own_letters, sentence_letters

#: More sentences than a sketch holds.
_ALL = 1_000_000


@dataclass(frozen=True, slots=True)
class Keys:
    """By what a crawl finds an earlier page: how many are ``shared``, of how many, and how many are too ``common``."""

    shared: int
    of: int
    common: int


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of two pages that can be judged.

    ``explanation`` is None for a method that looks at nothing but similarity; ``decision``: what decided. ``found``:
    whether a crawl would have compared the two, or never have come upon A.
    """

    comparison: Comparison
    explanation: Explanation | None
    decision: str
    keys: Keys
    found: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on B, judged against A.

    ``unjudged`` says of each page that cannot be judged why; then ``compared`` is None. ``action``: what becomes of B
    in a crawl. ``texts``: those of A and B in parts, None for a page of the state.
    """

    verdict: Verdict
    unjudged: tuple[str, ...]
    compared: Compared | None
    action: str
    texts: tuple[list[Part] | None, list[Part] | None]


def judge(method: Method, config: Config, a: Side, b: Side, store: Store | None) -> Outcome:
    """Judge ``b`` as a crawl does that has seen ``a``; ``store`` knows what is boilerplate, and which keys are common.

    Raises LexiconNeeded if the method cannot read one of the pages.
    """
    old, old_reason, old_why = _fingerprint(method, a, config.min_letters, store)
    new, new_reason, new_why = _fingerprint(method, b, config.min_letters, store)
    texts = _text(method, a, old, b, new), _text(method, b, new, a, old)
    if old is None or new is None or old_why or new_why:
        verdict = Verdict(Kind.UNJUDGED, "B", reason=new_reason or old_reason)
        unjudged = tuple(f"{name} {why}" for name, why in (("A", old_why), ("B", new_why)) if why)
        return Outcome(verdict, unjudged, None, config.action(Verdict(Kind.UNIQUE, "B")), texts)
    compared = _compare(method, a, old, b, new, store)
    verdict = _verdict(compared.comparison, config.also_copies)
    action = config.action(verdict if compared.found else Verdict(Kind.UNIQUE, "B"))
    return Outcome(verdict, (), compared, action, texts)


def _fingerprint(
    method: Method, side: Side, min_letters: int, store: Store | None
) -> tuple[Fingerprint | None, AnyReason, str]:
    """The fingerprint where there is one; of a page that cannot be judged the reason, if it is known, and why."""
    record, page = side.record, side.page
    if record is not None and record.similarity > 0:
        return filed_fingerprint(record, store) if store else Fingerprint(record.keys, record.sketch), "", ""
    if record is not None:
        return None, "", "had too little text when it was crawled"
    assert page is not None
    fingerprint, reason = prejudge(method, page, min_letters, store)
    return fingerprint, reason, why_not(reason, min_letters) if reason else ""


def _compare(method: Method, a: Side, old: Fingerprint, b: Side, new: Fingerprint, store: Store | None) -> Compared:
    common = candidates(method, store, new.keys).common if store else frozenset()
    comparison = method.compare(new, old.sketch, common)
    keys = Keys(len((set(new.keys) & set(old.keys)) - common), len(new.keys), len(common))
    record, page = a.record, b.page
    found = keys.shared > 0 or (record is not None and page is not None and page.canonical == record.url)
    if record is not None:
        found = found and has_a_say(record, comparison)
    explanation, decision = method.explain(new, old.sketch, common), method.decision(new, old.sketch, common)
    return Compared(comparison, explanation, decision, keys, found)


def _verdict(comparison: Comparison, also_copies: Set[Likeness]) -> Verdict:
    match = Match(0, "A", 0.0, comparison.similarity, comparison.containment)
    copy = comparison.is_copy(also_copies)
    return Verdict(Kind.DUPLICATE if copy else Kind.UNIQUE, "B", match=match, likeness=comparison.likeness)


def _text(
    method: Method, side: Side, own: Fingerprint | None, other: Side, others: Fingerprint | None
) -> list[Part] | None:
    """The text of one side, with what is boilerplate in it and what the other side is known to hold."""
    page, simplified = side.page, method.parameters.simplified
    if page is None:
        return None
    if other.page is not None:
        shared = sentence_letters(other.page.text, simplified=simplified)
    elif others is not None:
        found = method.shared(page, others.sketch, _ALL)
        shared = frozenset(own_letters(one, simplified=simplified) for one in found)
    else:
        shared = frozenset()
    boilerplate = own.boilerplate if own else frozenset()

    def mark(sentence: str) -> Mark:
        if boilerplate and method.hashes.short(sentence) in boilerplate:
            return Mark.BOILERPLATE
        return Mark.SHARED if sentence in shared else Mark.NONE

    return marked(page.text, mark, simplified=simplified)
