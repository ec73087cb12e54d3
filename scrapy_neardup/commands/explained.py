"""The verdict on two pages with all that led to it, as lines for people and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from textwrap import indent
from typing import Any

from scrapy_neardup.commands.marking import BRACKETS, shown
from scrapy_neardup.commands.output import table
from scrapy_neardup.commands.pair import Compared, Outcome
from scrapy_neardup.commands.sides import Side
from scrapy_neardup.commands.wording import counted, line
from scrapy_neardup.config import DROP, TAG
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Feature, Kind, Likeness
from scrapy_neardup.states.known import KnownSite
from scrapy_neardup.text.marking import Mark, Part, cut

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
            yield from _text(parts, limit, coloured=coloured)


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


def _text(parts: list[Part], limit: int, *, coloured: bool) -> Iterator[str]:
    length = _length(parts)
    few = cut(parts, limit) if limit else parts
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
    few = cut(parts, limit) if parts and limit else parts
    return {
        "name": side.name,
        "title": side.page.title if side.page else None,
        "characters": _length(parts) if parts is not None else None,
        "cut": _length(parts) > _length(few) if parts and few else False,
        "text": None if few is None else [{"text": one.text, "mark": one.mark.value or None} for one in few],
    }
