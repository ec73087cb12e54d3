"""What somebody has said of a page by hand counts for more than what the method says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.repair import repair
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.layout import judgement_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import kind
from tests.judge.test_delivered import COPY, FIRST, THIRD, crawl


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def keep(store: PageStore, of: Page) -> None:
    write_manual_verdicts(store, ManualVerdict(of.url, ManualKind.KEEP, FIRST.url, 7))


def call_a_copy(store: PageStore, of: Page, other: Page) -> None:
    write_manual_verdicts(store, ManualVerdict(of.url, ManualKind.COPY, other.url, 7))


def test_the_last_one_counts_and_all_are_told(store: PageStore) -> None:
    odd = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 4)
    keep(store, COPY)
    call_a_copy(store, COPY, FIRST)
    write_manual_verdicts(store, odd)
    assert {one.url: one.kind for one in manual_verdicts(store)} == {
        COPY.url: ManualKind.COPY,
        odd.url: ManualKind.KEEP,
    }
    assert find_manual_verdict(store, odd.url) == odd
    assert kind(crawl(store, drops=True), THIRD) is Kind.UNIQUE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"["),
        (None, json.dumps([COPY.url, "burn", "", 1]).encode()),
        (None, json.dumps([COPY.url, "keep", ""]).encode()),
        (None, json.dumps(["http://else.example/", "keep", "", 1]).encode()),
        (b"n", json.dumps([COPY.url, "keep", "", 1]).encode()),
    ],
    ids=["no JSON", "no such judgement", "no time", "another page", "another key"],
)
def test_a_row_that_is_none_of_a_judgement_is_told_of_and_left_behind_by_repair(
    tmp_path: Path, key: bytes | None, value: bytes
) -> None:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    keep(store, FIRST)
    store.write(Changes({key or judgement_key(COPY.url, store.hashes): value}))
    with pytest.raises(StoreDamaged, match="manual verdict"):
        list(manual_verdicts(store))
    found = check(store)
    assert (dict(found.counts), found.rows["judgement"]) == ({"broken judgement": 1}, 2)
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    mended = open_at(SQLite, str(tmp_path / "mended"), {})
    assert [one.url for one in manual_verdicts(mended)] == [FIRST.url]
    mended.close()
