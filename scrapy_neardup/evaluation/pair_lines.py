"""Files that say something of pairs of documents: JSON lines, or a table."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.documents import json_lines
from scrapy_neardup.evaluation.feed import told_format
from scrapy_neardup.inputs import Entry, read_input

#: What a reader says of a pair; where it is to be skipped, nothing is known of it.
COPY, DIFFERENT, SKIP = ANSWERS = ("copy", "different", "skip")


def pair_lines(path: Path, need: str) -> Iterator[Entry]:
    """Every pair of a file of JSON lines, or of a table in CSV, in which numbers and answers are told by their looks.

    ``need`` says in the NearDupError for anything else what must be there.
    """
    if told_format(path) in ("jsonl", "text"):
        yield from json_lines(path, need)
        return
    for entry in read_input(str(path)):
        if not isinstance(entry, Entry):
            raise NearDupError(f"{entry.place} is {entry.why}; {need}.")
        fields = {name: value if name in ("a", "b") else _told(value) for name, value in entry.fields.items()}
        yield replace(entry, fields=fields)


def pair_ends(entry: Entry, known: Container[str], need: str) -> tuple[str, str]:
    """The ids of both documents; raises NearDupError for one that is not ``known``, or if they are the same.

    They may be written as numbers, as an integer may be an id.
    """
    one, other = (str(entry.fields.get(end)) for end in ("a", "b"))
    for id in (one, other):
        if id not in known:
            raise NearDupError(f"{entry.place}: no document has the id {id!r}; {need} of this corpus.")
    if one == other:
        raise NearDupError(f"{entry.place}: a and b are the same document; {need}.")
    return one, other


def _told(value: Any) -> Any:
    """What a cell of a table holds: a number, true, false, nothing, or a text.

    >>> _told("0.83"), _told("True"), _told(""), _told("copy")
    (0.83, True, None, 'copy')
    """
    known = {"true": True, "false": False, "": None}
    text = str(value).strip()
    if text.lower() in known:
        return known[text.lower()]
    try:
        return float(text)
    except ValueError:
        return value
