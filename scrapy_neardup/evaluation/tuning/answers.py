"""The file of labels: a drawn pair a line, with what a reader said of it."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.pair_lines import ANSWERS, COPY, SKIP, pair_lines
from scrapy_neardup.evaluation.tuning.estimates import Answer

_NEED = (
    'each line must be one JSON object as written by `scrapy neardup tune`: {"a": id, "b": id, "jaccard": 0.83, '
    '"containment": 0.91, "label": "copy", "stratum": "…", "stratum_size": 12}'
)


@dataclass(frozen=True, slots=True)
class Label:
    """What was said of the documents ``a`` and ``b``: one of ``ANSWERS``; and the stratum that they were drawn from."""

    a: str
    b: str
    said: str
    stratum: str
    size: int


class LabelFile:
    """Takes one answer after the other: each is on disk before the next pair is shown."""

    def __init__(self, path: Path) -> None:
        """``path``: what is there already is kept, and counts."""
        self.path = path
        if path.exists():
            _mend(path)
        self.labels = {(one.a, one.b): one for one in read_answers(path)} if path.exists() else {}

    def add(self, row: Mapping[str, Any], said: str) -> None:
        """Keep an answer; raises NearDupError where there is no place for it."""
        line = json.dumps({**row, "label": said}, ensure_ascii=False).encode("utf-8", "backslashreplace")
        try:
            with self.path.open("ab") as file:
                file.write(line + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise NearDupError(
                f"{self.path} cannot be written: {error.strerror or error}. Name another file with -o."
            ) from None
        self.labels[row["a"], row["b"]] = _label(row, said)


def _mend(path: Path) -> None:
    """End the last line, or take it off if a process was killed while it wrote it: that pair is asked about again."""
    last = path.read_bytes().rpartition(b"\n")[2]
    if not last:
        return
    try:
        json.loads(last)
    except ValueError:
        os.truncate(path, path.stat().st_size - len(last))
    else:
        with path.open("ab") as file:
            file.write(b"\n")


def read_answers(path: Path) -> list[Label]:
    """The labels of a file, of a pair that is there twice the last one; raises NearDupError for any other line."""
    if not path.is_file():
        raise NearDupError(f"The file of labels {path} does not exist. Name another one, or leave --labels out.")
    found: dict[tuple[str, str], Label] = {}
    for entry in pair_lines(path, _NEED):
        fields, said = entry.fields, entry.fields.get("label")
        size = fields.get("stratum_size")
        right = said in ANSWERS and isinstance(size, (int, float)) and size >= 1
        if not (right and "a" in fields and "b" in fields):
            raise NearDupError(f"{entry.place}: label or stratum_size is missing or wrong; {_NEED}.")
        one = _label(fields, str(said))
        found[one.a, one.b] = one
    return list(found.values())


def weighted(labels: Iterable[Label]) -> list[tuple[Label, Answer]]:
    """Those that are yes or no, each with how many pairs of its stratum it stands for."""
    told = [one for one in labels if one.said != SKIP]
    judged = Counter(one.stratum for one in told)
    return [(one, Answer(one.said == COPY, max(1.0, one.size / judged[one.stratum]))) for one in told]


def by_stratum(labels: Iterable[Label], where: Mapping[tuple[str, str], str]) -> dict[str, Sequence[Answer]]:
    """The answers by the stratum in which their pairs are now; ``where`` tells it by the ids of a pair.

    Pairs that it does not know, as they are no candidates any more, are left out.
    """
    found: dict[str, list[Answer]] = defaultdict(list)
    for label, answer in weighted(labels):
        stratum = where.get((label.a, label.b))
        if stratum is not None:
            found[stratum].append(answer)
    return dict(found)


def _label(fields: Mapping[str, Any], said: str) -> Label:
    return Label(str(fields["a"]), str(fields["b"]), said, str(fields.get("stratum")), int(fields["stratum_size"]))
