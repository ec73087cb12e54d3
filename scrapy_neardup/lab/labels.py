"""Labels: pairs of documents that a person has read, in JSON lines or a table.

Similarity is no label. Two pages may fill in one form, and a copy may have a new lead.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, find_format, read_input

#: Answers to the question: would a publisher who wants each article once drop the later page?
DROP = {"yes": True, "no": False, "unsure": None}
_NEED = 'each line must be one JSON object such as {"a": id of the earlier, "b": id of the later, "drop": "yes"}'


@dataclass(frozen=True, slots=True)
class Label:
    """Two documents by name, ``a`` before ``b``, and whether ``b`` is a copy; None if the reader is unsure.

    ``sort``: any word for pairs of this sort.
    """

    a: str
    b: str
    is_copy: bool | None
    sort: str = ""

    @property
    def drop(self) -> str:
        """The answer as in a file."""
        return next(answer for answer, is_copy in DROP.items() if is_copy is self.is_copy)

    def agrees(self, *, dropped: bool) -> bool | None:
        """Whether the reader agrees that the later page was ``dropped`` or not; None for an unsure one."""
        return None if self.is_copy is None else self.is_copy == dropped


def read_labels(path: Path, places: Mapping[str, int], corpora: Container[str]) -> list[Label]:
    """Return the labels of a file; the last line of a pair counts.

    ``places``: of the documents by name; the earlier one of a pair becomes ``a``. ``corpora``: names of the corpus; a
    line for another one is skipped. Raises NearDupError that names the line.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with labels does not exist. Name a file with --pairs; {_NEED}.")
    format = find_format(str(path), default="jsonl")
    labels = {}
    for record in read_input(str(path), "jsonl" if format == "text" else format):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} is {record.why}; {_NEED}.")
        corpus = record.fields.get("corpus")
        if corpus and corpus not in corpora:
            continue
        try:
            label = _turn(_parse(record.fields), places)
        except ValueError as error:
            raise NearDupError(f"{record.place}: {error}; {_NEED}.") from None
        labels[label.a, label.b] = label
    return list(labels.values())


def _parse(fields: Mapping[str, Any]) -> Label:
    a, b, drop, sort = (fields.get(name) for name in ("a", "b", "drop", "label"))
    if a is None or b is None:
        raise ValueError("a and b must name two documents")
    if not isinstance(drop, str) or drop not in DROP:
        raise ValueError(f"drop must be one of {', '.join(DROP)}, not {drop!r}")
    if not isinstance(sort, (str, int, float, type(None))):
        raise ValueError(f"label must be a text, not {sort!r}")
    return Label(str(a), str(b), DROP[drop], str(sort or ""))


def _turn(label: Label, places: Mapping[str, int]) -> Label:
    """Return the label with the earlier document first. Raises ValueError for an unknown document."""
    for name in (label.a, label.b):
        if name not in places:
            raise ValueError(
                f"no document has the id {name!r}. Name documents that also hold the dropped pages, such as the feed "
                "of a dry run, or the field of the ids with --id"
            )
    if label.a == label.b:
        raise ValueError("a and b are the same document")
    a, b = sorted((label.a, label.b), key=places.__getitem__)
    return replace(label, a=a, b=b)
