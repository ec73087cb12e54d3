"""Pairs that were read by hand, and how far the verdicts of a method agree with the reader.

Classes that are made from similarity are not the truth: what two pages share may be a form. A reader answers another
question: would a publisher who wants each article once drop the later page? ``drop`` says yes, no, or unsure, which
counts for nothing. In its place there may be a ``verdict`` (which sort of pair it is, see ``VERDICTS``), or else the
``label`` that `scrapy neardup tune` and `judgements` write.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.pair_lines import COPY, DIFFERENT, SKIP, pair_ends, pair_lines
from scrapy_neardup.inputs import Entry

#: The answers of each field, in the order in which the fields are asked; None: the reader is unsure.
DROP = {"yes": True, "no": False, "unsure": None}
VERDICTS = {"repost": True, "reissue": True, "extended": True, "template": False, "sharedcode": False, "unsure": None}
LABELS = {COPY: True, DIFFERENT: False, SKIP: None}
_FIELDS: Mapping[str, Mapping[str, bool | None]] = {"drop": DROP, "verdict": VERDICTS, "label": LABELS}

_NEED = 'each line must be one JSON object: {"a": id of the earlier, "b": id of the later, "drop": "yes", "label": "…"}'


@dataclass(frozen=True, slots=True)
class Gold:
    """What a reader said of two documents, by their ids; ``drop`` is None where he is unsure.

    ``label`` is any word for the sort of pair, empty where none is given.
    """

    earlier: str
    later: str
    drop: bool | None
    label: str = ""

    @property
    def answer(self) -> str:
        """What was said, as one of ``DROP``."""
        return next(name for name, drop in DROP.items() if drop is self.drop)


@dataclass(frozen=True, slots=True)
class GoldScore:
    """How far verdicts agree with a reader, in pairs: of ``different`` ones so many were dropped, of ``copies`` kept.

    ``unsure`` pairs are in none of these. ``by_label``: the same for the pairs of each label.
    """

    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int
    by_label: dict[str, GoldScore] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """All of which the reader is sure."""
        return self.different + self.copies

    @property
    def agree(self) -> int:
        """Of these, how many the verdict agrees with."""
        return self.pairs - self.dropped_wrongly - self.kept_wrongly

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        labels = {label: one.as_dict() for label, one in self.by_label.items()}
        return {
            "pairs": self.pairs,
            "agree": self.agree,
            "different": self.different,
            "dropped_wrongly": self.dropped_wrongly,
            "copies": self.copies,
            "kept_wrongly": self.kept_wrongly,
            "unsure": self.unsure,
            **({"by_label": labels} if labels else {}),
        }


def agreement(gold: Iterable[Gold], dropped: Set[str]) -> GoldScore:
    """The agreement of a method that has ``dropped`` these documents, for whatever original.

    >>> agreement([Gold("a", "b", True), Gold("a", "c", False)], {"b", "c"}).as_dict()["dropped_wrongly"]
    1
    """
    gold = list(gold)
    labels = sorted({one.label for one in gold} - {""})
    of_each = {label: _agreement([one for one in gold if one.label == label], dropped) for label in labels}
    return _agreement(gold, dropped, of_each)


def _agreement(gold: list[Gold], dropped: Set[str], by_label: dict[str, GoldScore] | None = None) -> GoldScore:
    different = [one.later in dropped for one in gold if one.drop is False]
    copies = [one.later in dropped for one in gold if one.drop]
    unsure = len(gold) - len(different) - len(copies)
    return GoldScore(len(different), sum(different), len(copies), copies.count(False), unsure, by_label or {})


def read_gold(path: Path, order: Mapping[str, int], names: Container[str] | None = None) -> list[Gold]:
    """The pairs of a file, of one that is there twice the last; ``order``: the place of each document in the stream.

    ``names``: those of the corpus. Lines that say in ``corpus`` that they are of another one are left out then.
    Raises NearDupError that names file and line for anything that cannot be read.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with the pairs read by a person does not exist. Put it there; {_NEED}.")
    found: dict[tuple[str, str], Gold] = {}
    for entry in pair_lines(path, _NEED):
        corpus = entry.fields.get("corpus")
        if names is not None and corpus is not None and corpus not in names:
            continue
        earlier, later = sorted(pair_ends(entry, order, _NEED), key=order.__getitem__)
        found[earlier, later] = Gold(earlier, later, *_answer(entry))
    return list(found.values())


def _answer(entry: Entry) -> tuple[bool | None, str]:
    """What the reader said, and the label of the pair."""
    name = next((name for name in _FIELDS if entry.fields.get(name) is not None), "drop")
    said, label = entry.fields.get(name), entry.fields.get("label")
    answers = _FIELDS[name]
    if not isinstance(said, str) or said not in answers:
        raise NearDupError(f"{entry.place}: {name} must be one of {', '.join(answers)}, not {said!r}; {_NEED}.")
    if label is not None and not isinstance(label, (str, int, float)):
        raise NearDupError(f"{entry.place}: label must be a text, not {label!r}; {_NEED}.")
    return answers[said], "" if name == "label" else said if name == "verdict" and label is None else str(label or "")
