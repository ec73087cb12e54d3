"""The verdict on two pages, with everything that led to it."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass
from itertools import chain
from textwrap import indent
from typing import Any

from scrapy_neardup.commands.output import BRACKETS, counted, line, shown, table
from scrapy_neardup.commands.pages import Side, prejudge, why_not
from scrapy_neardup.errors import AnyReason
from scrapy_neardup.judge.matching import candidates, filed_fingerprint, has_a_say
from scrapy_neardup.maintenance.lookup import KnownSite
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Explanation, Feature, Fingerprint, Kind, Likeness, Match, Verdict
from scrapy_neardup.settings import DROP, TAG, Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.text.marking import Mark, Part, mark_sentences, own_letters, sentence_letters, truncate

# ----------------------------------------------------------------------------------------------------------------------
# Two pages before a method, as a crawl would have them: the verdict on the newer one, and all that led to it.


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


def judge(method: Method, config: Config, a: Side, b: Side, store: PageStore | None) -> Outcome:
    """Judge ``b`` as a crawl does that has seen ``a``; ``store`` knows what is boilerplate, and which keys are common.

    Raises LexiconNeeded if the method cannot read one of the pages.
    """
    old, old_reason, old_why = _fingerprint(method, a, config.min_letters, store)
    new, new_reason, new_why = _fingerprint(method, b, config.min_letters, store)
    texts = _marked_text(method, a, old, b, new), _marked_text(method, b, new, a, old)
    if old is None or new is None or old_why or new_why:
        verdict = Verdict(Kind.UNJUDGED, "B", reason=new_reason or old_reason)
        unjudged = tuple(f"{name} {why}" for name, why in (("A", old_why), ("B", new_why)) if why)
        return Outcome(verdict, unjudged, None, config.action(Verdict(Kind.UNIQUE, "B")), texts)
    compared = _compare(method, a, old, b, new, store)
    verdict = _verdict(compared.comparison, config.also_copies)
    action = config.action(verdict if compared.found else Verdict(Kind.UNIQUE, "B"))
    return Outcome(verdict, (), compared, action, texts)


def _fingerprint(
    method: Method, side: Side, min_letters: int, store: PageStore | None
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


def _compare(method: Method, a: Side, old: Fingerprint, b: Side, new: Fingerprint, store: PageStore | None) -> Compared:
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


def _marked_text(
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

    return mark_sentences(page.text, mark, simplified=simplified)


# ----------------------------------------------------------------------------------------------------------------------
# The verdict on two pages with all that led to it, as lines for people and as plain data.


#: What stands before each line of a page, so that none looks like a line of ours.
_INDENT = "  | "
#: As many pages of a site as are counted.
_MOST = 256
_ACTIONS = {DROP: "drops B", TAG: "lets B pass with a tag"}
_NO_COPY = {
    Likeness.EXCERPT: "B is no copy of A, but one contains most of the other and much more",
    Likeness.SAME_TITLE: "B is no copy of A, but has the same title",
}


@dataclass(frozen=True, slots=True)
class UsedState:
    """The state whose counts were used, and what it knows of the sites of the pages; or ``why`` there is none."""

    location: str = ""
    sites: tuple[KnownSite, ...] = ()
    why: str = ""

    def sentence(self) -> str:
        """Which state was used, in a line."""
        if not self.location:
            return f"No state is used, so no boilerplate and no templates are known: {line(self.why)}"
        known = "; ".join(
            f"it has counted {counted(one.pages, 'page')}{' or more' * (one.pages >= _MOST)} of {line(one.name)}; "
            f"{one.forms:.0%} of the last share a template"
            for one in self.sites
        )
        return f"By the counts of the state at {line(self.location)}: {known or 'it knows neither site'}."


def as_lines(a: Side, b: Side, outcome: Outcome, state: UsedState, limit: int, *, coloured: bool) -> Iterator[str]:
    """Verdict, features, rule and marked texts; of each text ``limit`` characters, or all for 0."""
    yield sentence(outcome)
    for name, side in (("A", a), ("B", b)):
        title = f', "{line(side.page.title)}"' if side.page and side.page.title else ""
        yield f"{name} is {line(side.name)}{title}"
    if outcome.compared is not None:
        yield _in_a_crawl(a, outcome.compared, outcome.action)
        yield from ("", *_evidence(outcome.compared))
    yield from ("", state.sentence(), *_notes(a, b, outcome, coloured=coloured))
    for name, parts in zip("AB", outcome.texts, strict=True):
        if parts is not None:
            yield f"\n{name}:\n"
            yield from _text_lines(parts, limit, coloured=coloured)


def as_data(method: Method, a: Side, b: Side, outcome: Outcome, state: UsedState, limit: int) -> dict[str, Any]:
    """The same, for JSON."""
    compared, verdict = outcome.compared, outcome.verdict
    return {
        "verdict": verdict.kind.value,
        "kind": verdict.kind_of_likeness,
        "reason": verdict.reason or None,
        "sentence": sentence(outcome),
        "action": outcome.action,
        "method": method.name,
        "parameters": method.parameters.as_data(),
        **(_compared(compared) if compared else {}),
        "a": _side(a, outcome.texts[0], limit),
        "b": _side(b, outcome.texts[1], limit),
        "store": state.location or None,
        "why_no_store": state.why or None,
        "sites": [asdict(one) for one in state.sites],
    }


def sentence(outcome: Outcome) -> str:
    """The verdict, as it is said first."""
    verdict, match = outcome.verdict, outcome.verdict.match
    said = verdict.headline
    if match is None:
        return f"{said}: {', and '.join(outcome.unjudged)}. An unjudged page is no copy and has no copies."
    what = "B is a copy of A"
    if verdict.kind is not Kind.DUPLICATE:
        what = _NO_COPY.get(verdict.likeness, "B is no copy of A") if verdict.likeness else "B is no copy of A"
    return f"{said}: {what}, similarity {match.similarity:.2f}, containment {match.containment:.2f}."


def _in_a_crawl(a: Side, compared: Compared, action: str) -> str:
    """Whether a crawl would have come to compare them, and what would become of B."""
    keys, acts = compared.keys, _ACTIONS.get(action, "lets B pass")
    ignored = f" ({keys.common} keys of too many pages do not count)" if keys.common else ""
    by = f"{keys.shared} of B's {keys.of} keys are keys of A{ignored}"
    if compared.found and not keys.shared:
        by = "B names A as its original"
    if compared.found:
        return f"A crawl compares them and {acts}: {by}."
    if a.record is not None and not a.record.is_original and keys.shared:
        return f"A crawl {acts}: A is a copy itself, so only the similarity decides."
    return f"A crawl does not compare them and {acts}: {by}."


def _evidence(compared: Compared) -> Iterator[str]:
    """The features, what they come to, and the rule."""
    explanation, comparison = compared.explanation, compared.comparison
    if explanation is not None:
        rows = [
            (one.name, _value(one.value), *(_weighed(one) if one.weight else ("", "")), one.meaning)
            for one in explanation.features
        ]
        yield table(["feature", "value", "weight", "adds", "meaning"], rows, remarks=1)
        yield ""
        yield f"Score {explanation.score:.3f}, needed {explanation.needed:g}."
        yield f"Decision: {compared.decision}"
        return
    yield table(
        ["feature", "value"],
        [("similarity", _value(comparison.similarity)), ("containment", _value(comparison.containment))],
    )
    yield ""
    yield f"Decision: {compared.decision}"


def _weighed(feature: Feature) -> tuple[str, str]:
    """The weight, and what the feature adds to the score."""
    return f"{feature.weight:g}", f"{_adds(feature):.3f}"


def _adds(feature: Feature) -> float:
    return feature.value * feature.weight + 0.0  # which makes 0 of -0


def _value(value: float) -> str:
    """A share with three digits; a count as it is."""
    return f"{value:.3f}" if value <= 1 else f"{value:,.0f}"


def _notes(a: Side, b: Side, outcome: Outcome, *, coloured: bool) -> Iterator[str]:
    """What the marks mean, and what there is no text of."""
    of_state = [name for name, side in (("A", a), ("B", b)) if side.page is None]
    if len(of_state) == 2:
        yield "The state has the text of neither page, so there is nothing more to show."
        return
    for name in of_state:
        yield f"The state has no text of {name}. It recognises only some of its longest sentences."
    shared, boilerplate = ("between {} and {}".format(*BRACKETS[mark]) for mark in (Mark.SHARED, Mark.BOILERPLATE))
    if coloured:
        shared, boilerplate = "green", "grey"
    marks = {part.mark for part in chain.from_iterable(filter(None, outcome.texts))}
    if Mark.SHARED in marks:
        yield f"Common sentences: {shared}."
    else:
        yield f"No common sentence{' besides boilerplate' if Mark.BOILERPLATE in marks else ''} is known."
    if Mark.BOILERPLATE in marks:
        yield f"Boilerplate (on many pages): {boilerplate}."


def _text_lines(parts: list[Part], limit: int, *, coloured: bool) -> Iterator[str]:
    length = _length(parts)
    few = truncate(parts, limit) if limit else parts
    text = shown(few, coloured=coloured).rstrip()
    yield indent(text, _INDENT, lambda _: True) if text else "(no text)"
    if _length(few) < length:
        rest = _shared(parts) - _shared(few)
        hidden = f", and {rest} more common sentences" if rest else ""
        yield f"\n(cut after {limit:,} of {length:,} characters{hidden}; --limit 0 shows all)"


def _length(parts: list[Part]) -> int:
    return sum(len(part.text) for part in parts)


def _shared(parts: list[Part]) -> int:
    return sum(part.mark is Mark.SHARED for part in parts)


def _compared(compared: Compared) -> dict[str, Any]:
    comparison, explanation, keys = compared.comparison, compared.explanation, compared.keys
    return {
        "similarity": round(comparison.similarity, 4),
        "containment": round(comparison.containment, 4),
        "certain": comparison.certain,
        "features": [_feature(one) for one in explanation.features] if explanation else None,
        "score": round(explanation.score, 4) if explanation else None,
        "needed": explanation.needed if explanation else None,
        "decision": compared.decision,
        "keys": {"shared": keys.shared, "of": keys.of, "common": keys.common},
        "compared_in_a_crawl": compared.found,
    }


def _feature(feature: Feature) -> dict[str, Any]:
    return {
        "name": feature.name,
        "value": round(feature.value, 4),
        "weight": feature.weight,
        "adds": round(_adds(feature), 4),
        "meaning": feature.meaning,
    }


def _side(side: Side, parts: list[Part] | None, limit: int) -> dict[str, Any]:
    few = truncate(parts, limit) if parts and limit else parts
    return {
        "name": side.name,
        "title": side.page.title if side.page else None,
        "characters": _length(parts) if parts is not None else None,
        "cut": _length(parts) > _length(few) if parts and few else False,
        "text": None if few is None else [{"text": one.text, "mark": one.mark.value or None} for one in few],
    }
