"""A page is dropped wrongly, found in the list of what was dropped, and put back: the whole story, by crawls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli import run as run_command
from tests.crawl.conftest import Site
from tests.crawl.engineless import article, crawl_items
from tests.crawl.pages import html
from tests.crawl.test_two_runs import PLYVEL

SCHEMES = ["sqlite", *(["leveldb"] if PLYVEL else [])]
LOST = ["/near", "/same"]
PATHS = ["/port", "/tea", *LOST]


@pytest.fixture
def alike(site: Site) -> Site:
    """Two originals, and a copy of each."""
    site.content |= {
        "/port": html("port-zh"),
        "/tea": html("tea-zh"),
        "/near": html("port-zh", "本文由衡津港务通讯供稿，转载时略有增补，图片从略。"),
        "/same": html("tea-zh"),
    }
    return site


def listed(state: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the last crawl dropped."""
    capsys.readouterr()
    assert run_command("dropped", "--last", "--json", "--store", state) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def put_back(state: str) -> None:
    """All that the last crawl dropped."""
    assert run_command("keep", "--last", "--store", state) == 0


def test_what_was_dropped_wrongly_is_listed_and_put_back_also_in_a_state_that_was_brought_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, elsewhere = f"{SCHEMES[-1]}://{tmp_path}/state", f"{SCHEMES[0]}://{tmp_path}/elsewhere"
    port, tea, near = article(1), article(2), article(1, 1)
    lost = [near, {**tea, "url": "http://again.example/tea"}]
    pages = [port, tea, *lost]
    first, again = (crawl_items(*pages, NEARDUP_STORE=state) for _ in range(2))
    assert (first.count("duplicate"), again.count("duplicate"), again.items) == (2, 2, [])

    told = listed(state, capsys)
    assert [one["url"] for one in told] == [one["url"] for one in lost], "though the first crawl did so too"
    assert [one["kind"] for one in told] == ["near", "identical"]
    assert [one["original"] for one in told] == [port["url"], tea["url"]]
    assert {one["crawl"] for one in told} == {"articles"}
    assert all(one["title"] and one["when"] and one["similarity"] > 0.8 for one in told)

    put_back(state)
    assert run_command("export", "-o", tmp_path / "state.gz", "--store", state) == 0
    assert run_command("merge", tmp_path / "state.gz", "--store", elsewhere) == 0
    for place in (state, elsewhere):
        third, fourth = (crawl_items(*pages, NEARDUP_STORE=place) for _ in range(2))
        assert third.items == lost, "exactly these"
        assert (third.count("by_hand"), third.count("unique")) == (2, 2)
        assert (fourth.items, fourth.count("unchanged")) == ([], 4)
        assert listed(place, capsys) == []

    edited = {**near, "text": near["text"] + "图片从略，文字照旧。"}
    new = {**edited, "url": "http://new.example/"}
    last = crawl_items(port, tea, edited, lost[1], new, NEARDUP_STORE=state)
    assert (last.items, last.count("updated")) == ([edited], 1)
    [found] = listed(state, capsys)
    assert (found["url"], found["original"]) == (new["url"], edited["url"]), "an original of its own"
