"""Labels in files: what a line may hold, and which line is named if it cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.labels import Label, read_labels
from tests.lab.corpus import lines

PLACES = {id: place for place, id in enumerate("abcdefgh")}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "labels.jsonl"
    path.write_text(lines(rows), encoding="utf-8")
    return path


def test_a_label_is_turned_by_the_order_of_documents_and_the_last_line_counts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"a": "b", "b": "a", "drop": "no", "jaccard": 0.5},
        {"a": "a", "b": "c", "drop": "unsure", "label": None},
        {"a": "a", "b": "b", "drop": "yes", "label": "repost"},
    )
    assert read_labels(path, PLACES) == [Label("a", "b", True), Label("a", "c", None)]
    table = tmp_path / "labels.csv"
    table.write_text("a,b,drop\na,b,yes\na,c,unsure\n")
    assert read_labels(table, PLACES) == [Label("a", "b", True), Label("a", "c", None)]


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    right = {"a": "a", "b": "b", "drop": "yes"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"b": "z"}, "no document has the id 'z'.* the feed of a dry run, or the field of the ids with --id"),
        ({"b": None}, "a and b must name two documents"),
        ({"b": "a"}, "a and b are the same document"),
        ({"drop": "perhaps"}, "drop must be one of yes, no, unsure, not 'perhaps'"),
        ({"drop": ["no"]}, r"drop must be one of yes, no, unsure, not \['no'\]"),
    ]
    for wrong, said in cases:
        with pytest.raises(NearDupError, match=rf"labels\.jsonl, line 2: {said}; each line must be"):
            read_labels(write(tmp_path, right, {**right, **wrong}), PLACES)
    (tmp_path / "labels.jsonl").write_text(lines([right]) + "yes\n")
    with pytest.raises(NearDupError, match=r"labels\.jsonl, line 2 is not JSON.*; each line must be"):
        read_labels(tmp_path / "labels.jsonl", PLACES)
    with pytest.raises(NearDupError, match=r"gone\.jsonl with labels does not exist"):
        read_labels(tmp_path / "gone.jsonl", PLACES)
