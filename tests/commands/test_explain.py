"""``scrapy neardup explain`` and ``stats``: pages of every sort, and pages that are not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_neardup.state.record import Keep, Record
from tests.build import EDITED, EXCERPT, KINDS, PEAR, judge_pages, make_state, open_state, read_records, state_url
from tests.cli import Invoke

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
