"""The verdict on two pages with all that led to it, as lines for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from scrapy_neardup.commands.marking import BRACKETS, shown
from scrapy_neardup.commands.output import table
from scrapy_neardup.commands.pair import Compared, Outcome
from scrapy_neardup.commands.sides import Side
from scrapy_neardup.commands.wording import line
from scrapy_neardup.config import DROP, TAG
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Feature, Kind, Likeness
from scrapy_neardup.text.marking import Mark, Part, cut

_ACTIONS = {DROP: "drops B", TAG: "lets B pass with a tag"}
_NO_COPY = {
    Likeness.EXCERPT: "B is no copy of A, but one of them holds most of the other and much more",
    Likeness.SAME_TITLE: "B is no copy of A, but has the same title",
}


def as_lines(method: Method, a: Side, b: Side, outcome: Outcome, limit: int, *, coloured: bool) -> Iterator[str]:
    """Verdict, features, rule and marked texts; of each text ``limit`` characters, or all for 0."""
    yield sentence(outcome)
    for name, side in (("A", a), ("B", b)):
        title = f', "{line(side.page.title)}"' if side.page and side.page.title else ""
        yield f"{name} is {line(side.name)}{title}"
    if outcome.compared is not None:
        yield _in_a_crawl(a, outcome.compared, outcome.action)
        yield from ("", *_evidence(method, outcome.compared))
    yield from ("", *_notes(a, b, outcome, coloured=coloured))
    for name, parts in zip("AB", outcome.texts, strict=True):
        if parts is not None:
            yield f"\n{name}:\n"
            yield from _text(parts, limit, coloured=coloured)


def as_data(method: Method, a: Side, b: Side, outcome: Outcome, limit: int) -> dict[str, Any]:
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
        **(_compared(method, compared) if compared else {}),
        "a": _side(a, outcome.texts[0], limit),
        "b": _side(b, outcome.texts[1], limit),
    }


def sentence(outcome: Outcome) -> str:
    """The verdict, as it is said first."""
    verdict, match = outcome.verdict, outcome.verdict.match
    said = verdict.headline
    if match is None:
        return f"{said}: {', and '.join(outcome.unjudged)}; such a page is nobody's copy, and nothing is a copy of it."
    what = "B is a copy of A"
    if verdict.kind is not Kind.DUPLICATE:
        what = _NO_COPY.get(verdict.likeness, "B is no copy of A") if verdict.likeness else "B is no copy of A"
    return f"{said}: {what}, similarity {match.similarity:.2f}, containment {match.containment:.2f}."


def _in_a_crawl(a: Side, compared: Compared, action: str) -> str:
    """Whether a crawl would have come to compare them, and what would become of B."""
    keys, acts = compared.keys, _ACTIONS.get(action, "lets B pass")
    ignored = f", not counting {keys.common} that too many pages have" if keys.common else ""
    by = f"{keys.shared} of B's {keys.of} keys are keys of A{ignored}"
    if compared.found and not keys.shared:
        by = "B names A as the place of its original"
    if compared.found:
        return f"A crawl compares them and {acts}: {by}."
    if a.record is not None and not a.record.is_original and keys.shared:
        return f"A crawl {acts}: A is a copy itself, and against a copy similarity alone decides."
    return f"A crawl does not compare them and {acts}: {by}."


def _evidence(method: Method, compared: Compared) -> Iterator[str]:
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
        yield f"What decided: {explanation.decision}"
        return
    yield table(
        ["feature", "value"],
        [("similarity", _value(comparison.similarity)), ("containment", _value(comparison.containment))],
    )
    yield ""
    yield f"What decided: {_threshold(method, duplicate=comparison.duplicate)}"


def _threshold(method: Method, *, duplicate: bool) -> str:
    """The rule of a method that does not explain itself."""
    name = getattr(method, "threshold", "")
    value = getattr(method.parameters, name, None) if name else None
    known = f", {name}={value}" if value is not None else ""
    return f"{method.name}{known}: {'a copy' if duplicate else 'no copy'}."


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
        yield "The state holds the text of neither: nothing more can be shown."
        return
    for name in of_state:
        yield f"The state holds no text of {name}: it knows some of its longest sentences again, and no others."
    shared, boilerplate = ("between {} and {}".format(*BRACKETS[mark]) for mark in (Mark.SHARED, Mark.BOILERPLATE))
    if coloured:
        shared, boilerplate = "green", "grey"
    marks = {part.mark for part in chain.from_iterable(filter(None, outcome.texts))}
    if Mark.SHARED in marks:
        yield f"Sentences that both pages hold: {shared}."
    else:
        yield f"No sentence{' that is not boilerplate' if Mark.BOILERPLATE in marks else ''} is known to be in both."
    if Mark.BOILERPLATE in marks:
        yield f"Boilerplate, sentences that stand on many pages: {boilerplate}."


def _text(parts: list[Part], limit: int, *, coloured: bool) -> Iterator[str]:
    length = _length(parts)
    few = cut(parts, limit) if limit else parts
    yield shown(few, coloured=coloured).rstrip() or "(no text)"
    if _length(few) < length:
        rest = _shared(parts) - _shared(few)
        hidden = f", and {rest} more of the shared sentences" if rest else ""
        yield f"\n(cut after {limit:,} of {length:,} characters{hidden}; --limit 0 shows all)"


def _length(parts: list[Part]) -> int:
    return sum(len(part.text) for part in parts)


def _shared(parts: list[Part]) -> int:
    return sum(part.mark is Mark.SHARED for part in parts)


def _compared(method: Method, compared: Compared) -> dict[str, Any]:
    comparison, explanation, keys = compared.comparison, compared.explanation, compared.keys
    return {
        "similarity": round(comparison.similarity, 4),
        "containment": round(comparison.containment, 4),
        "certain": comparison.certain,
        "features": [_feature(one) for one in explanation.features] if explanation else None,
        "score": round(explanation.score, 4) if explanation else None,
        "needed": explanation.needed if explanation else None,
        "decision": explanation.decision if explanation else _threshold(method, duplicate=comparison.duplicate),
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
    few = cut(parts, limit) if parts and limit else parts
    return {
        "name": side.name,
        "title": side.page.title if side.page else None,
        "characters": _length(parts) if parts is not None else None,
        "cut": _length(parts) > _length(few) if parts and few else False,
        "text": None if few is None else [{"text": one.text, "mark": one.mark.value or None} for one in few],
    }
