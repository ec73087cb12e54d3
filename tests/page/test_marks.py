"""Marks: the same item has the same one, in every process, and no two items share one."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from scrapy_neardup.page.item import hash_item

NOW = datetime(2026, 5, 1, tzinfo=timezone.utc)
ITEMS: list[dict[str, Any]] = [
    {"a": 1},
    {"a": "1"},
    {"a": 1.5},
    {"a": True},
    {"a": None},
    {"a": [1]},
    {"a": {"b": 1}},
    {"a": b"1"},
    {"a": Decimal(1)},
    {"a": NOW},
    {"a": NOW.date()},
    {"b": 1},
    {"a": 1, "b": 1},
    {"a": "half \ud800"},
]


def test_items_that_differ_in_anything_have_other_marks() -> None:
    marks = [hash_item(item) for item in ITEMS]
    assert len(set(marks)) == len(ITEMS)
    assert all(marks)
    assert marks == [hash_item(dict(item)) for item in ITEMS]


def test_a_mark_is_the_same_in_every_process() -> None:
    code = "from scrapy_neardup.page.item import hash_item; print(hash_item({'b': ['x', 2], 'a': 'é'}))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert told == {f"{hash_item({'a': 'é', 'b': ['x', 2]})}\n"}


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value", [object(), {1, 2}, CIRCLE, DEEP, {1: 2, "a": 3}], ids=["object", "set", "circle", "deep", "keys"]
)
def test_what_cannot_be_told_apart_for_certain_has_none(value: object) -> None:
    assert hash_item({"a": value}) == 0


def test_neither_has_an_item_that_holds_nothing() -> None:
    assert hash_item({}) == 0
