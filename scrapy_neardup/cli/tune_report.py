"""The figures of ``tune``, and how they are printed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from scrapy_neardup.cli.output import format_count, format_table, present
from scrapy_neardup.lab.agreement import MethodAgreement
from scrapy_neardup.lab.estimates import ENOUGH, Figure, Tuning
from scrapy_neardup.lab.evaluate import find_overrides
from scrapy_neardup.settings import Config

#: A value is better if it is so probable.
_CLEAR = 0.9


def write_report(
    arguments: argparse.Namespace, config: Config, tuning: Tuning, disagreement: MethodAgreement | None
) -> None:
    """Print the figures as text or JSON."""
    present(arguments, _data(tuning, disagreement), lambda _: _lines(tuning, disagreement, config))


def _data(tuning: Tuning, disagreement: MethodAgreement | None) -> dict[str, Any]:
    tried, outlook = tuning.tried, tuning.outlook
    agreed = {"drawn": asdict(disagreement.drawn), "all": asdict(disagreement.all)} if disagreement else None
    return {
        "method": tried.name,
        "threshold": tried.parameter,
        "candidates": sum(one.size for one in tuning.strata),
        "labels": tuning.labels,
        "values": [asdict(one) for one in outlook.estimates],
        "now": tried.value,
        "enough_labels": outlook.enough,
        "chosen": tried.values[outlook.chosen] if outlook.enough else None,
        "better": outlook.better if outlook.enough else None,
        "parameters": find_overrides(tried.methods[outlook.chosen]) if outlook.enough else None,
        "agreement": agreed,
    }


def _lines(tuning: Tuning, disagreement: MethodAgreement | None, config: Config) -> Iterator[str]:
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
    chosen, is_kept = tried.values[outlook.chosen], outlook.chosen == tried.now
    is_clear = (outlook.safe if is_kept else outlook.better) >= _CLEAR
    more = "" if is_clear else " To be surer, label more pairs with another --seed."
    if is_kept:
        yield f"Keep {name} {value:g}.{more} The settings:\n"
    else:
        yield f"{name} {chosen:g} is better than {value:g} in {outlook.better:.0%} of cases.{more} The settings:\n"
    if tried.name != config.method or tried.name != "cascade":
        yield f"    NEARDUP_METHOD = {tried.name!r}"
    yield f"    NEARDUP_PARAMETERS = {find_overrides(tried.methods[outlook.chosen])!r}\n"


def _disagreement_lines(found: MethodAgreement) -> Iterator[str]:
    yield "Where methods differ: how many of the copies by the row's method are copies by the column's method.\n"
    candidates = "candidates drawn at random" if found.is_sample else "candidates"
    for copies, what in ((found.all, candidates), (found.drawn, "pairs drawn for labelling")):
        yield f"{copies.pairs:,} {what}:\n"
        rows = [(name, *row.values()) for name, row in copies.called.items()]
        yield format_table(["", *copies.called], rows) + "\n"


def _format_number(figure: Figure) -> str:
    return f"{figure.estimate:,.0f} ({figure.low:,.0f}–{figure.high:,.0f})"


def _format_share(figure: Figure) -> str:
    return f"{figure.estimate:.1%} ({100 * figure.low:.0f}–{100 * figure.high:.0f})"
