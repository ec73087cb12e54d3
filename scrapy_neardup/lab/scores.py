"""Figures from verdicts: missed copies, wrong drops, and cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.lab.labels import NEG, POS, REPOST, TEMPLATE, GoldScore


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one corpus; ``parameters`` are those that differ from defaults.

    Counts are documents by label: of ``pos`` duplicates ``missed`` were kept, of ``neg`` different documents
    ``false_drops`` were dropped. ``ms_per_page``: CPU time of this process. ``bytes_per_page``: size of the state per
    document, dropped ones too. ``gold``: agreement with pairs that a person has read.
    """

    method: str
    parameters: dict[str, Any]
    documents: int
    missed: int
    pos: int
    false_drops: int
    neg: int
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

    @property
    def false_per_10k(self) -> float:
        """Drops per 10,000 documents that differ from all earlier ones."""
        return 1e4 * self.false_drops / max(1, self.neg)

    @property
    def precision(self) -> float:
        """The share of labelled drops that are duplicates; 1 without drops."""
        dropped = self.pos - self.missed + self.false_drops
        return (self.pos - self.missed) / dropped if dropped else 1.0

    @property
    def recall(self) -> float:
        """The share of duplicates that were dropped; 1 without duplicates."""
        return (self.pos - self.missed) / self.pos if self.pos else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        if self.missed == self.pos:
            return 0.0
        return 2 * self.precision * self.recall / (self.precision + self.recall)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, rounded to significant digits."""
        return {
            "method": self.method,
            "parameters": self.parameters,
            "documents": self.documents,
            "missed": self.missed,
            "pos": self.pos,
            "false_drops": self.false_drops,
            "neg": self.neg,
            "false_per_10k": round(self.false_per_10k, 1),
            "precision": round(self.precision, 4),
            "recall": round(self.recall, 4),
            "f1": round(self.f1, 4),
            "reposts_dropped": self.reposts_dropped,
            "reposts": self.reposts,
            "templates_dropped": self.templates_dropped,
            "templates": self.templates,
            "ms_per_page": round(self.ms_per_page, 3),
            "bytes_per_page": round(self.bytes_per_page, 1),
            **({"gold": self.gold.as_dict()} if self.gold else {}),
        }


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
    return Score(
        method=method,
        parameters=parameters,
        documents=documents,
        missed=pos - found,
        pos=pos,
        false_drops=false,
        neg=neg,
        reposts_dropped=reposts_dropped,
        reposts=reposts,
        templates_dropped=templates_dropped,
        templates=templates,
        ms_per_page=1e3 * seconds / max(1, documents),
        bytes_per_page=size / max(1, documents),
        gold=gold,
    )
