"""Figures from verdicts: missed copies, wrong drops, and cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import asdict, dataclass, field
from typing import Any

from scrapy_neardup.lab.corpus import NEG, POS, REPOST, TEMPLATE
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, Pair


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Agreement of verdicts with a person, in pairs: drops of ``different`` ones, and kept ``copies``.

    ``unsure`` pairs count in neither.
    """

    pairs: int
    agree: int
    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int


@dataclass(frozen=True, slots=True)
class GoldScore(AnswerScore):
    """The agreement on all pairs, and ``by_label`` on the pairs of each label."""

    by_label: dict[str, AnswerScore] = field(default_factory=dict)


def compare_answers(gold: Iterable[Pair], dropped: Set[str]) -> GoldScore:
    """Return the agreement of a method that ``dropped`` these documents.

    >>> gold = [Pair("a", "b", answer="copy"), Pair("a", "c", answer="different")]
    >>> compare_answers(gold, {"b", "c"}).dropped_wrongly
    1
    """
    gold = list(gold)
    labels = sorted({one.label for one in gold} - {""})
    by_label = {label: _compare([one for one in gold if one.label == label], dropped) for label in labels}
    return GoldScore(**asdict(_compare(gold, dropped)), by_label=by_label)


def _compare(gold: list[Pair], dropped: Set[str]) -> AnswerScore:
    different = [one.b in dropped for one in gold if one.answer == DIFFERENT]
    copies = [one.b in dropped for one in gold if one.answer == COPY]
    pairs, dropped_wrongly, kept_wrongly = len(different) + len(copies), sum(different), copies.count(False)
    return AnswerScore(
        pairs=pairs,
        agree=pairs - dropped_wrongly - kept_wrongly,
        different=len(different),
        dropped_wrongly=dropped_wrongly,
        copies=len(copies),
        kept_wrongly=kept_wrongly,
        unsure=len(gold) - pairs,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one corpus; ``parameters`` are those that differ from defaults.

    Counts are documents by label: of ``pos`` duplicates ``missed`` were kept, of ``neg`` different documents
    ``false_drops`` were dropped. ``precision``: the share of labelled drops that are duplicates, 1 without drops.
    ``recall``: the share of duplicates that were dropped, 1 without duplicates. ``f1``: their harmonic mean.
    ``ms_per_page``: CPU time of this process. ``bytes_per_page``: size of the state per document, dropped ones too.
    ``gold``: agreement with pairs that a person has read.
    """

    method: str
    parameters: dict[str, Any]
    documents: int
    missed: int
    pos: int
    false_drops: int
    neg: int
    false_per_10k: float
    precision: float
    recall: float
    f1: float
    reposts_dropped: int
    reposts: int
    templates_dropped: int
    templates: int
    ms_per_page: float
    bytes_per_page: float
    gold: GoldScore | None = None

    @property
    def labelled(self) -> int:
        """Labelled documents; 0 if only a person's pairs are known."""
        return self.pos + self.neg + self.reposts + self.templates

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, without ``gold`` and its labels where there are none."""
        data = asdict(self)
        if self.gold is None:
            del data["gold"]
        elif not self.gold.by_label:
            del data["gold"]["by_label"]
        return data


def score(
    counts: Mapping[tuple[str, bool], int],
    *,
    method: str,
    parameters: dict[str, Any],
    seconds: float,
    size: int,
    gold: GoldScore | None = None,
) -> Score:
    """Return the score from ``counts``: documents by label, dropped (True) and kept (False).

    ``seconds`` and ``size`` (bytes) cover all documents.
    """

    def both(label: str) -> tuple[int, int]:
        dropped = counts.get((label, True), 0)
        return dropped, dropped + counts.get((label, False), 0)

    (found, pos), (false, neg) = both(POS), both(NEG)
    (reposts_dropped, reposts), (templates_dropped, templates) = both(REPOST), both(TEMPLATE)
    documents = sum(counts.values())
    precision = found / (found + false) if found + false else 1.0
    recall = found / pos if pos else 1.0
    return Score(
        method=method,
        parameters=parameters,
        documents=documents,
        missed=pos - found,
        pos=pos,
        false_drops=false,
        neg=neg,
        false_per_10k=round(1e4 * false / max(1, neg), 1),
        precision=round(precision, 4),
        recall=round(recall, 4),
        f1=round(2 * precision * recall / (precision + recall), 4) if found else 0.0,
        reposts_dropped=reposts_dropped,
        reposts=reposts,
        templates_dropped=templates_dropped,
        templates=templates,
        ms_per_page=round(1e3 * seconds / max(1, documents), 3),
        bytes_per_page=round(size / max(1, documents), 1),
        gold=gold,
    )
