"""``scrapy neardup explain``: what is told of pages of every sort, and of those that are not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.state.evidence import Keep
from tests.build import (
    BREAD,
    EDITED,
    EXCERPT,
    PEAR,
    SAME,
    SHORT,
    judge_pages,
    make_state,
    open_state,
)
from tests.cli import mask, run


def test_of_a_page_that_passed_the_nearest_original_is_named_and_what_decides(
    sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explain", PEAR, EDITED, EXCERPT, BREAD, SHORT, "--store", sqlite, "--json") == 0
    original, copy, excerpt, alone, short = json.loads(capsys.readouterr().out)["pages"]
    assert [one["nearest"] for one in (copy, short, alone)] == [None] * 3
    assert [bool(one["passed"]) for one in (copy, short, alone)] == [False, False, True]
    assert (excerpt["nearest"]["url"], excerpt["nearest"]["came_first"]) == (PEAR, True)
    assert excerpt["nearest"]["is_copy"] is False
    assert excerpt["nearest"]["decision"]
    assert excerpt["nearest"]["containment"] > 0.9
    assert (original["nearest"]["url"], original["nearest"]["came_first"]) == (EXCERPT, False)
    assert original["site"] == {"name": "orchard.example", "pages": 1, "forms": 0.0}
    # What would be dropped under the policy of the project is told so.
    assert run("explain", EXCERPT, "--store", sqlite, "--json", NEARDUP_POLICY={"excerpt": "drop"}) == 0
    assert json.loads(capsys.readouterr().out)["pages"][0]["nearest"]["is_copy"] is True


def test_a_state_of_another_method_than_the_settings_is_asked_by_its_own(
    sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("explain", EXCERPT, "--store", sqlite, "--json", NEARDUP_METHOD="simhash") == 0
    assert json.loads(capsys.readouterr().out)["pages"][0]["nearest"]["url"] == PEAR


@pytest.mark.parametrize(
    ("typed", "there"),
    [
        ("https://orchard.example/pears/", PEAR),
        ("http://mirror.example/p/7", EDITED),
    ],
)
def test_urls_that_are_written_nearly_alike_are_named(
    sqlite: str, capsys: pytest.CaptureFixture[str], typed: str, there: str
) -> None:
    assert run("explain", typed, "--store", sqlite) == 1
    assert (
        mask(capsys.readouterr().out, sqlite)
        == f"{typed}\n  is not in the state at STATE. Similar URLs:\n    {there}\n"
    )
    assert run("explain", typed, PEAR, "--store", sqlite, "--json") == 1
    first, second = json.loads(capsys.readouterr().out)["pages"]
    assert first == {"url": typed, "found": False, "near": [there]}
    assert second["found"]


@pytest.mark.parametrize(
    "typed", ["https://[half/", "https://a.example:port/", "", "://", "https://nowhere.example/\udcff"]
)
def test_a_url_that_is_like_none_is_just_not_there(sqlite: str, capsys: pytest.CaptureFixture[str], typed: str) -> None:
    assert run("explain", typed, "--store", sqlite) == 1
    assert "is not in the state at STATE. Write the URL as crawled." in mask(capsys.readouterr().out, sqlite)


def test_only_the_newest_pages_of_a_group_are_listed(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", PEAR, "--store", sqlite, "--limit", "1") == 0
    said = mask(capsys.readouterr().out, sqlite)
    assert said.endswith(f"ID, 3 pages, the newest 1 of them:\n                TIME  identical   {SAME}\n")


def test_a_copy_whose_original_is_gone(sqlite: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_state(sqlite) as store:
        assert judge_pages(store, [(PEAR, "A new page", "".join(f"{one}. " for one in reversed(BAKERY_LIKE)))]) == [
            "updated"
        ]
    assert run("explain", EDITED, "--store", sqlite) == 0
    said = mask(capsys.readouterr().out, sqlite)
    assert "  original      ID, no longer in the state (updated or forgotten)\n" in said
    assert "  group         ID, 2 pages:\n" in said
    assert run("explain", EDITED, "--store", sqlite, "--json") == 0
    [page] = json.loads(capsys.readouterr().out)["pages"]
    assert (page["original"], page["original_is_gone"]) == (None, True)
    assert run("explain", EXCERPT, "--store", sqlite) == 0
    assert "  like          an excerpt of a page no longer in the state\n" in capsys.readouterr().out


BAKERY_LIKE = [
    "The orchard is closed for the winter and its shop has moved into the old mill",
    "Two hundred young trees were planted along the brook on the last weekend of October",
    "Whoever adopts one of them gets a crate of its first pears in three years",
]


def test_a_state_without_evidence_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = make_state("sqlite", tmp_path, keep=Keep.NOTHING)
    assert run("explain", EDITED, EXCERPT, "--store", state) == 0
    copy, excerpt = mask(capsys.readouterr().out, state).split("\n\n")
    assert '  evidence      not kept (NEARDUP_KEEP was "nothing")' in copy
    assert "  verdict       duplicate\n" in copy
    assert "  similarity    0.NNNN\n" in copy
    assert "TIME  copy        https://mirror.example/p/8\n" in copy
    assert "title" not in copy
    seen = "  first seen    TIME\n  last seen     TIME\n"
    assert excerpt.startswith(f"{EXCERPT}\n  verdict       unique\n{seen}  nearest now   {PEAR}\n")
