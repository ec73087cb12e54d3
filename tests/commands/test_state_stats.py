"""``scrapy neardup stats``: the numbers of a state."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from scrapy_neardup.state.evidence import Keep
from tests.build import KINDS, PEAR, make_state, open_state, read_records, state_url
from tests.cli import run


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
