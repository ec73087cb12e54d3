"""The output of ``tune``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from scrapy_neardup.commands.output import as_json, counted, method_spec, table, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.documents import Spool
from scrapy_neardup.evaluation.evaluate import overrides
from scrapy_neardup.evaluation.exact import Alike
from scrapy_neardup.evaluation.tuning_estimates import ENOUGH, Answer, Figure, Label, Outlook, by_stratum, estimated
from scrapy_neardup.evaluation.tuning_pairs import Candidate, CopiesByMethod, Stratum, Thresholds, agreement, verdicts
from scrapy_neardup.maintenance.scan import Watch
from scrapy_neardup.methods import make_method
from scrapy_neardup.settings import Config

NAME = "tune"
#: Candidates on which methods are compared; of more some are drawn.
_MOST = 2_000
#: From how probable on a value is said to be better.
_CLEAR = 0.9


@dataclass(frozen=True, slots=True)
class Tuned:
    """What labels say of the values of a threshold; ``lost``: labels of pairs that are no candidates any more."""

    tried: Thresholds
    strata: list[Stratum]
    answers: dict[str, Sequence[Answer]]
    outlook: Outlook
    lost: int

    @property
    def labels(self) -> int:
        """How many labels count."""
        return sum(map(len, self.answers.values()))


def compared(
    documents: Spool,
    found: list[Candidate],
    strata: list[Stratum],
    tried: Thresholds,
    labels: list[Label],
    cost: float,
) -> Tuned:
    """The findings from these labels."""
    where = {}
    for stratum in strata:
        for place in stratum.pairs:
            pair = found[place].alike
            where[documents[pair.a].id, documents[pair.b].id] = stratum.name
    answers = by_stratum(labels, where)
    lost = sum((one.a, one.b) not in where for one in labels)
    return Tuned(tried, strata, answers, estimated(strata, answers, tried.values, tried.now, cost=cost), lost)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where methods disagree: on the drawn pairs, and on all candidates or ``sampled`` many of them."""

    drawn: CopiesByMethod
    all: CopiesByMethod
    sampled: bool

    @classmethod
    def of(
        cls,
        documents: Spool,
        found: list[Candidate],
        tried: Thresholds,
        against: list[str],
        drawn: list[int],
        watch: Watch,
    ) -> Disagreement | None:
        """From what the methods say with their defaults, without those that fail; None if there is no other one."""
        random = Random(1)  # noqa: S311  # a sample
        places = sorted(random.sample(range(len(found)), _MOST)) if len(found) > _MOST else list(range(len(found)))
        counted_ones = sorted({*places, *drawn})
        said = {tried.name: [found[place].copy[tried.now] for place in counted_ones]}
        pairs = [found[place].alike for place in counted_ones]
        for spec in against:
            if (found_by := _said(spec, documents, pairs, watch)) is not None:
                said[spec] = found_by
        if len(said) < 2:
            return None
        at = {place: number for number, place in enumerate(counted_ones)}
        return cls(
            agreement(said, [at[place] for place in drawn]),
            agreement(said, [at[place] for place in places]),
            len(places) < len(found),
        )


def _said(spec: str, documents: Spool, pairs: list[Alike], watch: Watch) -> list[bool] | None:
    """What a method says of the pairs; None, and a line that says why, if it cannot be had or read them."""
    try:
        return verdicts(documents, pairs, make_method(*method_spec(spec)), None, watch)
    except NearDupError as error:
        sys.stderr.write(f"{NAME}: {spec} is left out: {error}\n")
        return None


def tell(findings: Tuned, comparison: Disagreement | None, config: Config, *, as_data: bool) -> None:
    """Print it all."""
    if as_data:
        write(as_json(_data(findings, comparison)) + "\n")
        return
    write("\n" + "\n".join([*_estimates(findings), *_settings(findings, config), *_matrices(comparison)]))


def _data(findings: Tuned, comparison: Disagreement | None) -> dict[str, Any]:
    tried, outlook = findings.tried, findings.outlook
    return {
        "method": tried.name,
        "threshold": tried.parameter,
        "candidates": sum(one.size for one in findings.strata),
        "labels": findings.labels,
        "values": [one.as_dict() for one in outlook.estimates],
        "now": tried.value,
        "enough_labels": outlook.enough,
        "chosen": tried.values[outlook.chosen] if outlook.enough else None,
        "better": outlook.better if outlook.enough else None,
        "parameters": overrides(tried.methods[outlook.chosen]) if outlook.enough else None,
        "agreement": {"drawn": comparison.drawn.as_dict(), "all": comparison.all.as_dict()} if comparison else None,
    }


def _estimates(findings: Tuned) -> Iterator[str]:
    tried = findings.tried
    pages = sum(one.size for one in findings.strata)
    yield f"{counted(pages, 'page')} {'is' if pages == 1 else 'are'} like an earlier page.\n"
    rows = [
        (
            one.name,
            one.size,
            len(given := findings.answers.get(one.name, ())),
            sum(answer.copy for answer in given),
        )
        for one in findings.strata
    ]
    yield table(["of these", "pages", "labelled", "copies"], rows) + "\n"
    if findings.lost:
        yield f"{counted(findings.lost, 'label')} left out, because the pairs are no candidates here.\n"
    if not findings.labels:
        yield "No pair is labelled yet. Label some, then run the command again.\n"
        return
    yield (
        f"What each {tried.parameter} of {tried.name} would have done, by {counted(findings.labels, 'label')} "
        "(95 % intervals in brackets):\n"
    )
    cells = [
        (
            f"{one.value:g}{' (now)' if at == tried.now else ''}",
            one.called,
            _number(one.wrong),
            _number(one.missed),
            _percent(one.precision),
            _percent(one.recall),
            f"{one.best:.0%}",
        )
        for at, one in enumerate(findings.outlook.estimates)
    ]
    yield table([tried.parameter, "called", "wrong", "missed", "precision", "recall", "best"], cells) + "\n"
    unasked = [one for one in findings.strata if not findings.answers.get(one.name)]
    if unasked:
        pages = sum(one.size for one in unasked)
        yield (
            f"{counted(pages, 'page')} in {counted(len(unasked), 'stratum', 'strata')} have no label. The figures "
            "count half of them as copies, with a wide interval.\n"
        )


def _settings(findings: Tuned, config: Config) -> Iterator[str]:
    tried, outlook = findings.tried, findings.outlook
    if not findings.labels:
        return
    if not outlook.enough:
        yield (
            f"Too few labels: {outlook.deciding} for pairs where the values differ, but a comparison needs {ENOUGH}, "
            f"over most kinds of pairs. Label more, or keep {tried.parameter} at {tried.value:g}.\n"
        )
        return
    chosen = tried.values[outlook.chosen]
    if outlook.chosen == tried.now and outlook.safe >= _CLEAR:
        yield f"The present {tried.parameter}, {tried.value:g}, is best. The settings:\n"
    elif outlook.chosen == tried.now:
        yield (
            f"No {tried.parameter} is clearly better than the present one, {tried.value:g}. Keep it, or label more "
            "pairs with another --seed. The settings:\n"
        )
    elif outlook.better >= _CLEAR:
        yield f"{tried.parameter} {chosen:g} is better than {tried.value:g}. The settings:\n"
    else:
        yield (
            f"{tried.parameter} {chosen:g} may be better than {tried.value:g} (in {outlook.better:.0%} of cases). "
            "Label more pairs with another --seed, or keep the present value. The settings:\n"
        )
    if tried.name != config.method or tried.name != "cascade":
        yield f"    NEARDUP_METHOD = {tried.name!r}"
    yield f"    NEARDUP_PARAMETERS = {overrides(tried.methods[outlook.chosen])!r}\n"


def _matrices(comparison: Disagreement | None) -> Iterator[str]:
    if comparison is None:
        return
    yield "Where methods differ: how many of the copies by the row's method are copies by the column's method.\n"
    kinds = "candidates drawn at random" if comparison.sampled else "candidates"
    for found, what in ((comparison.all, kinds), (comparison.drawn, "pairs drawn for labelling")):
        yield f"{found.pairs:,} {what}:\n"
        rows = [(name, *row) for name, row in zip(found.methods, found.called, strict=True)]
        yield table(["", *found.methods], rows) + "\n"


def _number(found: Figure) -> str:
    return f"{found.estimate:,.0f} ({found.low:,.0f}–{found.high:,.0f})"


def _percent(found: Figure) -> str:
    return f"{found.estimate:.1%} ({100 * found.low:.0f}–{100 * found.high:.0f})"
