"""The figures of ``tune``, and how they are printed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from scrapy_neardup.cli.command import parse_method
from scrapy_neardup.cli.output import format_count, format_table, present, warn
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.candidates import Candidate, CopiesByMethod, Stratum, Thresholds, agreement, verdicts
from scrapy_neardup.lab.documents import Spool
from scrapy_neardup.lab.estimates import ENOUGH, Answer, Figure, Label, Outlook, by_stratum, estimated
from scrapy_neardup.lab.evaluate import overrides
from scrapy_neardup.lab.exact import Alike
from scrapy_neardup.maintenance.scan import Watch
from scrapy_neardup.methods import make_method
from scrapy_neardup.settings import Config

#: Methods are compared on so many candidates at most.
_SAMPLE = 2_000
#: A value is better if it is so probable.
_CLEAR = 0.9


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the labels say about the values of a threshold. ``lost``: labels of pairs that are no candidates now."""

    tried: Thresholds
    strata: list[Stratum]
    answers: dict[str, Sequence[Answer]]
    outlook: Outlook
    lost: int

    @property
    def labels(self) -> int:
        """The number of labels that count."""
        return sum(map(len, self.answers.values()))


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where methods disagree: on the drawn pairs, and on all candidates or a sample of them."""

    drawn: CopiesByMethod
    all: CopiesByMethod
    is_sample: bool


def estimate(
    documents: Spool,
    found: list[Candidate],
    strata: list[Stratum],
    tried: Thresholds,
    labels: list[Label],
    cost: float,
) -> Tuning:
    """Estimate from the labels what each value of the threshold would do."""
    stratum_of = {}
    for stratum in strata:
        for place in stratum.pairs:
            pair = found[place].alike
            stratum_of[documents[pair.a].id, documents[pair.b].id] = stratum.name
    answers = by_stratum(labels, stratum_of)
    lost = sum((one.a, one.b) not in stratum_of for one in labels)
    return Tuning(tried, strata, answers, estimated(strata, answers, tried.values, tried.now, cost=cost), lost)


def compare_methods(
    documents: Spool, found: list[Candidate], tried: Thresholds, against: list[str], drawn: list[int], watch: Watch
) -> Disagreement | None:
    """Compare the verdicts of methods with their defaults; None if no other method works here."""
    random = Random(1)  # noqa: S311  # a sample
    sample = sorted(random.sample(range(len(found)), min(_SAMPLE, len(found))))
    places = sorted({*sample, *drawn})
    pairs = [found[place].alike for place in places]
    by_method = {tried.name: [found[place].copy[tried.now] for place in places]}
    for spec in against:
        if (copies := _judge_pairs(spec, documents, pairs, watch)) is not None:
            by_method[spec] = copies
    if len(by_method) < 2:
        return None
    at = {place: number for number, place in enumerate(places)}
    return Disagreement(
        agreement(by_method, [at[place] for place in drawn]),
        agreement(by_method, [at[place] for place in sample]),
        len(sample) < len(found),
    )


def _judge_pairs(spec: str, documents: Spool, pairs: list[Alike], watch: Watch) -> list[bool] | None:
    """Return the verdicts of a method; None, and a warning, if it does not work here."""
    try:
        return verdicts(documents, pairs, make_method(*parse_method(spec)), None, watch)
    except NearDupError as error:
        warn(f"tune: {spec} is left out: {error}")
        return None


def write_report(
    arguments: argparse.Namespace, config: Config, tuning: Tuning, disagreement: Disagreement | None
) -> None:
    """Print the figures as text or JSON."""
    present(arguments, _data(tuning, disagreement), lambda _: _lines(tuning, disagreement, config))


def _data(tuning: Tuning, disagreement: Disagreement | None) -> dict[str, Any]:
    tried, outlook = tuning.tried, tuning.outlook
    agreed = {"drawn": disagreement.drawn.as_dict(), "all": disagreement.all.as_dict()} if disagreement else None
    return {
        "method": tried.name,
        "threshold": tried.parameter,
        "candidates": sum(one.size for one in tuning.strata),
        "labels": tuning.labels,
        "values": [one.as_dict() for one in outlook.estimates],
        "now": tried.value,
        "enough_labels": outlook.enough,
        "chosen": tried.values[outlook.chosen] if outlook.enough else None,
        "better": outlook.better if outlook.enough else None,
        "parameters": overrides(tried.methods[outlook.chosen]) if outlook.enough else None,
        "agreement": agreed,
    }


def _lines(tuning: Tuning, disagreement: Disagreement | None, config: Config) -> Iterator[str]:
    yield ""
    yield from _strata_lines(tuning)
    if tuning.labels:
        yield from _estimate_lines(tuning)
        yield from _advice_lines(tuning, config)
    else:
        yield "No pair is labelled yet. Label some, then run the command again.\n"
    if disagreement is not None:
        yield from _disagreement_lines(disagreement)


def _strata_lines(tuning: Tuning) -> Iterator[str]:
    pages = sum(one.size for one in tuning.strata)
    yield f"{format_count(pages, 'page')} {'is' if pages == 1 else 'are'} like an earlier page.\n"
    rows = []
    for one in tuning.strata:
        answers = tuning.answers.get(one.name, ())
        rows.append((one.name, one.size, len(answers), sum(answer.copy for answer in answers)))
    yield format_table(["of these", "pages", "labelled", "copies"], rows) + "\n"
    if tuning.lost:
        yield f"{format_count(tuning.lost, 'label')} left out, because the pairs are no candidates here.\n"


def _estimate_lines(tuning: Tuning) -> Iterator[str]:
    tried = tuning.tried
    yield (
        f"What each {tried.parameter} of {tried.name} would have done, by {format_count(tuning.labels, 'label')} "
        "(95 % intervals in brackets):\n"
    )
    cells = [
        (
            f"{one.value:g}{' (now)' if at == tried.now else ''}",
            one.called,
            _format_number(one.wrong),
            _format_number(one.missed),
            _format_share(one.precision),
            _format_share(one.recall),
            f"{one.best:.0%}",
        )
        for at, one in enumerate(tuning.outlook.estimates)
    ]
    yield format_table([tried.parameter, "called", "wrong", "missed", "precision", "recall", "best"], cells) + "\n"
    unlabelled = [one for one in tuning.strata if not tuning.answers.get(one.name)]
    if unlabelled:
        pages = format_count(sum(one.size for one in unlabelled), "page")
        yield (
            f"{pages} in {format_count(len(unlabelled), 'stratum', 'strata')} have no label. The figures count half of "
            "them as copies, with a wide interval.\n"
        )


def _advice_lines(tuning: Tuning, config: Config) -> Iterator[str]:
    tried, outlook = tuning.tried, tuning.outlook
    name, value = tried.parameter, tried.value
    if not outlook.enough:
        yield (
            f"Too few labels: {outlook.deciding} for pairs where the values differ, but a comparison needs {ENOUGH}, "
            f"over most kinds of pairs. Label more, or keep {name} at {value:g}.\n"
        )
        return
    chosen = tried.values[outlook.chosen]
    if outlook.chosen == tried.now and outlook.safe >= _CLEAR:
        yield f"The present {name}, {value:g}, is best. The settings:\n"
    elif outlook.chosen == tried.now:
        yield (
            f"No {name} is clearly better than the present one, {value:g}. Keep it, or label more pairs with another "
            "--seed. The settings:\n"
        )
    elif outlook.better >= _CLEAR:
        yield f"{name} {chosen:g} is better than {value:g}. The settings:\n"
    else:
        yield (
            f"{name} {chosen:g} may be better than {value:g} (in {outlook.better:.0%} of cases). Label more pairs with "
            "another --seed, or keep the present value. The settings:\n"
        )
    if tried.name != config.method or tried.name != "cascade":
        yield f"    NEARDUP_METHOD = {tried.name!r}"
    yield f"    NEARDUP_PARAMETERS = {overrides(tried.methods[outlook.chosen])!r}\n"


def _disagreement_lines(found: Disagreement) -> Iterator[str]:
    yield "Where methods differ: how many of the copies by the row's method are copies by the column's method.\n"
    candidates = "candidates drawn at random" if found.is_sample else "candidates"
    for copies, what in ((found.all, candidates), (found.drawn, "pairs drawn for labelling")):
        yield f"{copies.pairs:,} {what}:\n"
        rows = [(name, *row) for name, row in zip(copies.methods, copies.called, strict=True)]
        yield format_table(["", *copies.methods], rows) + "\n"


def _format_number(figure: Figure) -> str:
    return f"{figure.estimate:,.0f} ({figure.low:,.0f}–{figure.high:,.0f})"


def _format_share(figure: Figure) -> str:
    return f"{figure.estimate:.1%} ({100 * figure.low:.0f}–{100 * figure.high:.0f})"
