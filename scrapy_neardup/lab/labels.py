"""Labels: pairs of documents that a person has read, in JSON lines or a table.

Similarity is no label. Two pages may fill in one form, and a copy may have a new lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input

#: Answers to the question: would a publisher who wants each article once drop the later page?
DROP = {"yes": True, "no": False, "unsure": None}
_NEED = 'each line must be one JSON object such as {"a": id of the earlier, "b": id of the later, "drop": "yes"}'


@dataclass(frozen=True, slots=True)
class Label:
    """Two documents by name, ``a`` before ``b``, and whether ``b`` is a copy; None if the reader is unsure."""

    a: str
    b: str
    is_copy: bool | None

    @property
    def drop(self) -> str:
        """The answer as in a file."""
        return next(answer for answer, is_copy in DROP.items() if is_copy is self.is_copy)


def read_labels(path: Path, places: Mapping[str, int]) -> list[Label]:
    """Return the labels of a file; the last line of a pair counts.

    ``places``: of the documents by name; the earlier one of a pair becomes ``a``. Raises NearDupError that names the
    line.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with labels does not exist. Name a file with --pairs; {_NEED}.")
    labels = {}
    for record in read_input(str(path)):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} is {record.why}; {_NEED}.")
        try:
            label = _parse(record.fields, places)
        except ValueError as error:
            raise NearDupError(f"{record.place}: {error}; {_NEED}.") from None
        labels[label.a, label.b] = label
    return list(labels.values())


def _parse(fields: Mapping[str, Any], places: Mapping[str, int]) -> Label:
    """Return the label with the earlier document first. Raises ValueError."""
    a, b, drop = (fields.get(name) for name in ("a", "b", "drop"))
    if a is None or b is None:
        raise ValueError("a and b must name two documents")
    if not isinstance(drop, str) or drop not in DROP:
        raise ValueError(f"drop must be one of {', '.join(DROP)}, not {drop!r}")
    for name in (str(a), str(b)):
        if name not in places:
            raise ValueError(
                f"no document has the id {name!r}. Name documents that also hold the dropped pages, such as the feed "
                "of a dry run, or the field of the ids with --id"
            )
    if str(a) == str(b):
        raise ValueError("a and b are the same document")
    earlier, later = sorted((str(a), str(b)), key=places.__getitem__)
    return Label(earlier, later, DROP[drop])
