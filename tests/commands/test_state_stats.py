"""``scrapy neardup stats``: the numbers of a state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.methods import make_method
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.layout import FORMAT
from scrapy_neardup.state.recipe import Secret
from tests.build import KINDS, PEAR, make_state, open_state, read_records, set_last_seen, state_url
from tests.cli import run


@pytest.mark.parametrize("kind", KINDS)
def test_json_holds_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    state = make_state(kind, tmp_path)
    with open_state(state) as store:
        set_last_seen(store, {PEAR: 4_000_000_000})
        size, location = store.size(), store.location
    assert run("stats", "--store", state, "--json", "--limit", "1") == 0
    found = json.loads(capsys.readouterr().out)
    first_seen, room, each = found.pop("first_seen"), found.pop("bytes"), found.pop("bytes_per_page")
    assert len(first_seen) == len(found.pop("as_of")) == 25
    assert room == pytest.approx(size, rel=0.5)
    assert each == pytest.approx(room / 8, abs=0.1)
    assert found == {
        "store": location,
        "backend": kind,
        "in_use": False,
        "unsealed": 0,
        "pages": 8,
        "originals": 5,
        "copies": 2,
        "rows": 0,
        "unjudged": 1,
        "kinds": {"retitled": 1, "identical": 1},
        "originals_like_others": {"excerpt": 1, "same_title": 1},
        "witnesses": 1,
        "better": 0,
        "copies_without_original": 0,
        "judged_by_hand": {},
        "groups": 1,
        "largest_group": 3,
        "sites": 5,
        "top_sites": [{"name": "town.example", "pages": 3, "copies": 0}],
        "dropped_sites": [],
        "last_seen": "2096-10-02T07:06:40+00:00",
        "recipe": {
            **state_recipe(make_method("cascade", {}), None),
            "format": FORMAT,
            "secret": Secret(bytes(range(32))).name,
        },
        "decisions": {},
    }


def test_without_evidence_the_kinds_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("sqlite", tmp_path, keep=Keep.NOTHING)
    assert run("stats", "--store", state, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["kinds"], found["originals_like_others"]) == ({"unknown": 2}, {})


def test_copies_whose_original_is_gone_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("sqlite", tmp_path)
    with open_state(state) as store:
        store.forget([read_records(state)[PEAR].id])
    assert run("stats", "--store", state) == 0
    said = capsys.readouterr().out
    assert "| - copies without an original (updated or forgotten) |       2 |" in said
    assert "1 of two or more pages; the largest has 2\n" in said


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_state(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    state = state_url(kind, tmp_path / "state")
    with open_state(state):
        pass
    assert run("stats", "--store", state) == 0
    said = capsys.readouterr().out
    assert "first seen    (nothing)" in said
    assert re.search(r"\| pages +\| +0 \| +0\.0% \|", said)
    assert run("stats", "--store", state, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[name] for name in ("pages", "groups", "largest_group", "sites", "top_sites")] == [0, 0, 0, 0, []]
    assert (found["first_seen"], found["last_seen"], found["bytes_per_page"]) == (None, None, None)
