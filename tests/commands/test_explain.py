"""``scrapy neardup explain``, ``stats`` and ``report``: pages of every sort, the file, and refusals."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.record import Keep, Record
from tests.build import EDITED, EXCERPT, KINDS, PEAR, judge_pages, make_state, open_state, read_records, state_url
from tests.cli import Invoke, run

WINTER = """\
The orchard is closed for the winter and its shop has moved into the old mill. Two hundred young trees were planted \
along the brook on the last weekend of October. Whoever adopts one of them gets a crate of its first pears in three \
years. """


@pytest.mark.parametrize("typed", [f"{PEAR}/", "https://[half/", "", "://", "https://a.example/\udcff"])
def test_an_unknown_url_is_named(sqlite: str, invoke: Invoke, typed: str) -> None:
    done = invoke("explain", typed, PEAR, "--store", sqlite, "--json")
    first, second = done.data["pages"]
    assert (done.code, first, second["found"]) == (1, {"url": typed, "found": False}, True)
    assert "is not in the state at " in invoke("explain", typed, "--store", sqlite).out


def test_a_copy_whose_original_is_gone_says_so(sqlite: str, invoke: Invoke) -> None:
    with open_state(sqlite) as store:
        assert judge_pages(store, [(PEAR, "A new page", WINTER)]) == ["updated"]
    copy, excerpt = invoke("explain", EDITED, EXCERPT, "--store", sqlite, "--json").data["pages"]
    assert (copy["original"], copy["original_is_gone"], copy["group_size"]) == (None, True, 2)
    assert (excerpt["kind"], excerpt["like"]) == ("excerpt", None)


def test_a_state_without_evidence_says_so(tmp_path: Path, invoke: Invoke) -> None:
    state = make_state("sqlite", tmp_path, keep=Keep.NOTHING)
    copy, excerpt = invoke("explain", EDITED, EXCERPT, "--store", state, "--json").data["pages"]
    assert [copy[name] for name in ("verdict", "kind", "title", "characters", "evidence")] == [
        *("duplicate", None, None, None, False)
    ]
    assert (excerpt["verdict"], excerpt["near_miss"]) == ("unique", None)
    said = [invoke("explain", one, "--store", state).out for one in (EDITED, EXCERPT)]
    assert ["NEARDUP_KEEP" in one for one in said] == [True, False]
    found = invoke("stats", "--store", state, "--json").data
    assert (found["kinds"], found["originals_like_others"]) == ({"unknown": 2}, {})


def test_the_newest_pages_of_a_large_group_are_listed(state: str, invoke: Invoke) -> None:
    original = read_records(state)[PEAR].id
    with open_state(state) as store:
        for n in range(30):
            store.add(Record(store.new_id(), f"https://many.example/{n}", original, 0.9))
    for limit, many in (([], 20), (["--limit", "3"], 3), (["--limit", "0"], 33)):
        [page] = invoke("explain", EDITED, "--store", state, "--json", *limit).data["pages"]
        assert (page["group_size"], len(page["group"])) == (33, many)
        assert page["group"][0]["url"] == "https://many.example/29"
    said = invoke("explain", PEAR, "--store", state, "--limit", "2").out
    assert "33 pages, the newest 2 of them:" in said
    assert "copy 0.90 https://many.example/28\n" in said


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_state_has_statistics(tmp_path: Path, invoke: Invoke, kind: str) -> None:
    state = state_url(kind, tmp_path / "state")
    with open_state(state):
        pass
    said = invoke("stats", "--store", state).out
    assert re.search(r"^pages +0$", said, re.MULTILINE)
    assert "first seen" not in said
    found = invoke("stats", "--store", state, "--json").data
    assert [found[name] for name in ("pages", "groups", "largest_group", "sites", "top_sites")] == [0, 0, 0, 0, []]
    assert (found["first_seen"], found["last_seen"], found["bytes_per_page"]) == (None, None, None)


def test_a_text_without_a_url_is_of_no_site(invoke: Invoke, tmp_path: Path) -> None:
    with open_state(state := state_url("sqlite", tmp_path / "texts")) as store:
        judge_pages(store, [("text:0123456789abcdef", "", WINTER)])
    found = invoke("stats", "--store", state, "--json").data
    assert (found["pages"], found["sites"], found["top_sites"]) == (1, 0, [])


# Reports


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the file is written where the command is run."""
    monkeypatch.chdir(tmp_path)


def test_the_language_is_that_of_the_setting(sqlite: str, invoke: Invoke) -> None:
    for language, settings, said in (
        ("en", {}, "report.html: 8 pages, 2 copies in 1 group ("),
        ("zh", {"NEARDUP_LANG": "zh"}, "report.html：8 个网页，2 个副本，分为 1 组（"),
    ):
        assert invoke("report", "--store", sqlite, **settings).out.startswith(said)
        assert Path("report.html").read_text(encoding="utf-8").partition('lang="')[2][:2] == language


@pytest.mark.parametrize("kind", KINDS)
def test_json_holds_the_whole_report(tmp_path: Path, kind: str, invoke: Invoke) -> None:
    url = make_state(kind, tmp_path)
    with open_state(url) as store:
        expected = json.loads(json.dumps(asdict(gather(store))))
    found = invoke("report", "--store", url, "--json").data
    expected["totals"].pop("bytes"), found["totals"].pop("bytes")  # of LevelDB that changes with its log
    assert found == expected
    assert found["totals"]["kinds"] == {"identical": 1, "retitled": 1}
    assert not list(tmp_path.glob("*.html"))


def test_a_failed_report_leaves_the_earlier_file(tmp_path: Path, sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("report.html").write_text("the one of before")
    monkeypatch.setattr(Path, "replace", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(NearDupError, match="make room"):
        run("report", "--store", sqlite)
    assert Path("report.html").read_text() == "the one of before"
    assert not list(tmp_path.glob(".part*"))


def test_a_missing_library_is_named_before_the_state_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(NearDupError, match=r"Run: pip install 'scrapy-neardup\[report\]'"):
        run("report", "--store", state_url("sqlite", tmp_path / "none"))
    assert run("report", "--store", make_state("sqlite", tmp_path), "--json") == 0, "it draws nothing"
