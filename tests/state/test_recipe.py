"""When two recipes can be compared: tables of cases, and what is said of those that cannot."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged, StoreMismatch
from scrapy_neardup.judge.recipes import DECISIONS_KEY, decide, decisions_of
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.state.layout import FORMAT
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.recipe import check_recipe, fits, renamed, updated

OURS: dict[str, Any] = {
    "method": "m",
    "parameters": {"n": 5},
    "extractor": "reader 2",
    "segmenter": "cutter 1",
    "samples": {"extractor": "aa", "segmenter": "bb"},
}


def theirs(**changes: Any) -> dict[str, Any]:
    return {"format": FORMAT, "secret": "s", **OURS, **changes}


def without_samples(**changes: Any) -> dict[str, Any]:
    found = theirs(**changes)
    del found["samples"]
    return found


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (theirs(), ""),
        (theirs(extractor="reader 1"), ""),
        (theirs(extractor="reader 1", segmenter="blade 7"), ""),
        (without_samples(), ""),
        (theirs(parameters={"n": 5, "threshold": 0.5}), ""),
        (
            theirs(extractor="reader 1", samples={"extractor": "zz", "segmenter": "bb"}),
            "'reader 1' in the state and 'reader 2'",
        ),
        (
            theirs(samples={"extractor": "zz", "segmenter": "bb"}),
            "'reader 2' here, which reads the test samples differently",
        ),
        (without_samples(segmenter="cutter 2"), "segmenter is 'cutter 2' in the state and 'cutter 1' here."),
        (theirs(samples={"segmenter": "bb"}, extractor="shop.reader 3"), "extractor is 'shop.reader 3' in the state"),
        (theirs(parameters={"n": 6}), "parameters.n is 6 in the state and 5 here"),
        (theirs(parameters={}), "parameters.n is None in the state and 5 here"),
        (theirs(method="other"), "method is 'other' in the state and 'm' here"),
        (theirs(hash="x"), "hash is 'x' in the state and None here"),
    ],
)
def test_which_recipes_can_be_compared(written: dict[str, Any], said: str) -> None:
    packed = json.dumps(written).encode()
    assert fits(written, OURS) is not bool(said)
    if not said:
        assert check_recipe(packed, OURS, "there") == written
        return
    with pytest.raises(StoreMismatch) as refused:
        check_recipe(packed, OURS, "there", "--store")
    assert said in str(refused.value)
    assert "--store" in str(refused.value)


def test_own_extractors_and_other_formats_are_told_apart() -> None:
    own = {**OURS, "extractor": "shop.reader 3", "samples": {"segmenter": "bb"}}
    assert fits({"format": FORMAT, **own}, own)
    assert not fits({"format": FORMAT, **own, "extractor": "shop.reader 2"}, own)
    assert not fits({"format": FORMAT, **own, "extractor": "reader 2", "samples": OURS["samples"]}, own)
    for format in [1, 6, 8, None, "7", [7]]:
        with pytest.raises(StoreMismatch, match=f"format {re.escape(str(format))}, but this release uses format 7"):
            check_recipe(json.dumps(theirs(format=format)).encode(), OURS, "there")


def test_what_is_another_is_told_and_taken_on() -> None:
    old = theirs(extractor="reader 1", parameters={"n": 5, "threshold": 0.5})
    assert renamed(old, OURS) == {"extractor": ("reader 1", "reader 2")}
    assert updated(old, OURS) == {**old, "extractor": "reader 2"}
    assert updated(without_samples(), OURS) == theirs()


def test_a_state_names_the_tools_of_now_once_it_has_taken_them_on(tmp_path: Path) -> None:
    place = str(tmp_path / "state.sqlite")
    open_at(SQLite, place, {**OURS, "extractor": "reader 1"}).close()
    for _ in range(2):  # looking alone changes nothing
        looked = open_at(SQLite, place, OURS)
        assert looked.renamed == {"extractor": ("reader 1", "reader 2")}
        looked.close()
    store = open_at(SQLite, place, OURS)
    store.update_recipe(OURS)
    assert (store.renamed, store.recipe["extractor"]) == ({}, "reader 2")
    store.close()
    store = open_at(SQLite, place, None)
    assert (store.renamed, store.recipe["extractor"]) == ({}, "reader 2")
    store.close()


def test_decisions_are_remembered_and_what_changed_is_told(tmp_path: Path) -> None:
    place = str(tmp_path / "state.sqlite")
    store = open_at(SQLite, place, OURS)
    assert decisions_of(store) == {}
    assert decide(store, {"base": 0.5, "policy": ("drop", "tag")}) == {}
    assert decide(store, {"base": 0.5, "policy": ("drop", "tag")}) == {}
    store.close()
    store = open_at(SQLite, place, OURS)
    assert decide(store, {"base": 0.6, "policy": ("drop", "tag"), "more": 1}) == {"base": (0.5, 0.6)}
    assert decisions_of(store) == {"base": 0.6, "policy": ["drop", "tag"], "more": 1}
    store.close()


def test_rows_that_cannot_be_read_are_damage() -> None:
    store = memory_state(OURS)
    store.write(Changes({DECISIONS_KEY: b"7"}))
    with pytest.raises(StoreDamaged, match="cannot be read"):
        decisions_of(store)
