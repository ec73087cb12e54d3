"""``scrapy neardup groups``: JSON lines, and what a terminal is shown."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.cli import groups
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.state.record import Record
from tests.build import BREAD, EDITED, KINDS, PAGES, PEAR, SAME, judge_pages, make_state, open_state, read_records
from tests.cli import run

#: A second copy of the bakery and its original are a group of two.
BREAD_AGAIN = "https://mirror.example/bread"


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url = make_state(request.param, tmp_path)
    with open_state(url) as store:
        assert judge_pages(store, [(BREAD_AGAIN, *PAGES[1][1:])]) == ["duplicate (identical)"]
    return url


def found(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "sizes"),
    [
        ([], [3, 2]),
        (["--min", "3"], [3]),
        (["--min", "1"], [3, 2, 1, 1, 1]),
        (["--limit", "1"], [3]),
        (["--limit", "0", "--json"], [3, 2]),
    ],
)
def test_sizes_and_limits(
    state: str, capsys: pytest.CaptureFixture[str], arguments: list[str], sizes: list[int]
) -> None:
    assert run("groups", "--store", state, *arguments) == 0
    lines = found(capsys.readouterr().out)
    assert [line["size"] for line in lines] == sizes == [len(line["pages"]) for line in lines]


def test_a_file_is_written_all_or_nothing(
    state: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(data: object, **options: object) -> str:
        raise OSError("No space left on device")

    target = tmp_path / "groups.jsonl"
    target.write_text("before")
    run("groups", "--store", state)
    printed = capsys.readouterr().out
    assert run("groups", "--store", state, "-o", target) == 0
    assert capsys.readouterr().out == ""
    assert target.read_text(encoding="utf-8") == printed
    with pytest.raises(NearDupError, match="cannot be written"):
        run("groups", "--store", state, "-o", tmp_path / "none" / "groups.jsonl")
    target.write_text("before")
    monkeypatch.setattr(groups, "as_json", full)
    with pytest.raises(NearDupError, match="No space left"):
        run("groups", "--store", state, "-o", target)
    assert target.read_text() == "before"
    assert sorted(file.name for file in tmp_path.iterdir() if "groups" in file.name) == ["groups.jsonl"]


def test_copies_whose_original_is_gone_are_a_group(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_state(state) as store:
        store.forget([read_records(state)[PEAR].id, read_records(state)[BREAD].id])
    assert run("groups", "--store", state) == 0
    [group] = found(capsys.readouterr().out)
    assert (group["original"], group["first_seen"], group["size"]) == (None, None, 2)
    assert [one["url"] for one in group["pages"]] == [EDITED, SAME]


def test_a_terminal_is_shown_a_listing(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("groups", "--store", state, "--limit", "1") == 0
    said = capsys.readouterr().out
    assert f"original        {PEAR}" in said
    assert said.endswith("2 groups, 1 not shown; --limit 0 shows all.\n")
    assert run("groups", "--store", state, "--json") == 0
    assert len(found(capsys.readouterr().out)) == 2
    with open_state(state) as store:
        store.forget([read_records(state)[PEAR].id])
    assert run("groups", "--store", state) == 0
    said = capsys.readouterr().out
    assert "  (the original is no longer in the state: updated or forgotten)\n" in said
    assert said.endswith("\n2 groups.\n")


def test_large_groups_are_cut_on_a_terminal_alone(
    state: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_state(state) as store:
        original = read_records(state)[PEAR].id
        for n in range(20):
            store.add(Record(store.new_id(), f"https://many.example/{n}", original, 0.9))
    assert run("groups", "--store", state, "--limit", "1") == 0
    assert len(found(capsys.readouterr().out)[0]["pages"]) == 23
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("groups", "--store", state, "--limit", "1") == 0
    said = capsys.readouterr().out
    assert "  (and 13 more)\n" in said
    assert "0.90 copy       https://many.example/6\n" in said
    assert "many.example/7" not in said
