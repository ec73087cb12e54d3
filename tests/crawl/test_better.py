"""NEARDUP_KEEP_POLICY in real crawls: what passes, what is told of it, and what the next crawl makes of it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.build import story
from tests.crawl.engineless import Passed, crawl_items

TEXT = story(60, 20)


def item(host: str, *more: str) -> dict[str, Any]:
    return {
        "url": f"http://{host}.example/1",
        "title": "渡口清晨开航",
        "text": "\n".join([*TEXT, f"{host}供稿。", *more]),
    }


WIRE, PAPER, BLOG = item("wire"), item("paper"), item("blog")
POLICY = '["paper.example"]'


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/state"


def own(store: str, *items: dict[str, Any], **settings: Any) -> Passed:
    return crawl_items(*items, NEARDUP_STORE=store, NEARDUP_KEEP_POLICY=POLICY, **settings)


def test_a_better_copy_passes_tagged_and_is_known_from_then_on(store: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    result = own(store, WIRE, PAPER, BLOG)
    assert result.urls == [WIRE["url"], PAPER["url"]]
    tag = result.items[1]["neardup"]
    assert (tag["verdict"], tag["kind"], tag["supersedes"]) == ("better", "near", WIRE["url"])
    assert "neardup" not in result.items[0]
    assert [result.count(kind) for kind in ("pages", "unique", "better", "duplicate")] == [3, 1, 1, 1]
    assert "3 pages: 1 unique, 1 duplicate, 0 unchanged, 0 updated, 1 better, 0 unjudged." in caplog.text
    assert f"better (near): {PAPER['url']} supersedes {WIRE['url']} (similarity " in caplog.text
    assert f"{BLOG['url']} is a copy of {PAPER['url']} (similarity " in caplog.text
    again = own(store, WIRE, PAPER, BLOG, item("late"), DROP_DUPLICATES=False)
    tags = [one["neardup"] for one in again.items]
    assert [one["verdict"] for one in tags] == ["unchanged", "unchanged", "duplicate", "duplicate"]
    assert {(one["original"], one["similar_id"]) for one in tags} == {(PAPER["url"], tag["similar_id"])}
