"""A crawl that does not begin, or does not end as it should; its stats."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.statscollectors import StatsCollector

from scrapy_neardup import Addon, NearDupPipeline
from scrapy_neardup.crawl import session, stats
from scrapy_neardup.crawl.judge import AsyncPageReader
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.lock import is_held
from scrapy_neardup.settings import Config
from scrapy_neardup.state import opening
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.urls import STORES
from tests.crawl import engineless
from tests.crawl.engineless import article, crawl
from tests.crawl.parts import Log, Patch

FAILURES = [ValueError("no"), StoreError("no"), FileNotFoundError("no")]


def test_add_on_and_pipeline_in_each_others_place_are_refused() -> None:
    """Scrapy takes both for components that have nothing to do, and every copy would pass."""
    with pytest.raises(SettingsError, match="ITEM_PIPELINES names"):
        Addon().open_spider()
    with pytest.raises(SettingsError, match="ADDONS names"):
        NearDupPipeline(Crawler(Spider), Config()).update_settings({})


def crawled(place: Path) -> dict[str, Any]:
    return crawl([article(1), article(2)], NEARDUP_STORE=f"sqlite://{place}")


def is_let_go(place: Path) -> bool:
    """Whether nobody holds the state any more, in this process or by its lock."""
    return (str(place), False) not in opening._open_stores and not is_held(Path(f"{place}.lock"))


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("SiteWatch", KeyboardInterrupt()),
        *zip(("log_opening", "make_page_reader", "Judge"), FAILURES, strict=True),
        ("Delivery", StoreError("no")),
    ],
)
def test_a_crawl_that_fails_behind_the_opening_lets_go_of_the_state(
    tmp_path: Path, monkeypatch: Patch, step: str, error: BaseException
) -> None:
    place = tmp_path / "state"
    with monkeypatch.context() as patched:
        patched.setattr(session, step, Mock(side_effect=error))
        with pytest.raises(type(error)):
            crawled(place)
    assert is_let_go(place)
    assert crawled(place)["neardup/unique"] == 2


@pytest.mark.parametrize(
    ("where", "step", "error"),
    [
        (Detector, "trim", FAILURES[0]),
        (Detector, "end", FAILURES[1]),
        (STORES["sqlite"], "size", FAILURES[2]),
        (AsyncPageReader, "close", FAILURES[0]),
        (session, "log_unsealed", FAILURES[1]),
        (session.Session, "_remember_counts", FAILURES[2]),
    ],
)
def test_a_crawl_ends_in_all_other_steps_where_one_fails(
    tmp_path: Path, monkeypatch: Patch, caplog: Log, where: Any, step: str, error: Exception
) -> None:
    place = tmp_path / "state"
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as patched:
        patched.setattr(where, step, Mock(side_effect=error))
        if step == "log_unsealed":
            patched.setattr(Detector, "end", lambda _: 2)
        numbers = crawled(place)
    assert is_let_go(place)
    closing = [record for record in caplog.records if record.levelno == logging.INFO and "2 unique" in record.message]
    assert len(closing) == 1
    assert numbers["neardup/errors"] == 1
    assert numbers["neardup/time/store"] >= 0
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    store = open_store(f"sqlite://{place}", None)
    assert store.pages == 2
    opening.close_store(store)


def test_the_end_of_a_crawl_leaves_a_state_alone_that_has_failed(monkeypatch: Patch) -> None:
    used: list[str] = []
    monkeypatch.setattr(Detector, "check", Mock(side_effect=StoreError("The disk is full.")))
    monkeypatch.setattr(Detector, "trim", lambda _: used.append("trim"))
    monkeypatch.setattr(Detector, "end", lambda _: used.append("end"))
    numbers = crawl([article(1)], NEARDUP_STORE="memory:", NEARDUP_ON_STORE_ERROR="pass")
    assert (numbers["neardup/errors"], used) == (1, [])


class Recording(StatsCollector):
    """Remembers which stats are set, and which are counted."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.was_set, self.counted = set[str](), set[str]()

    def set_value(self, key: str, *more: Any, **named: Any) -> None:
        self.was_set.add(key)
        super().set_value(key, *more, **named)

    def inc_value(self, key: str, *more: Any, **named: Any) -> None:
        self.counted.add(key)
        super().inc_value(key, *more, **named)


@pytest.fixture
def recorded(monkeypatch: Patch) -> Recording:
    recorded = Recording(Crawler(Spider))
    monkeypatch.setattr(engineless, "StatsCollector", lambda crawler: recorded)
    return recorded


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_stat_is_either_set_or_counted(tmp_path: Path, dry_run: bool, recorded: Recording) -> None:
    """Exporters of metrics refuse a stat that is both."""

    def lose_one(item: dict[str, Any]) -> None:
        if item["url"].endswith("/1"):
            raise DropItem("It has no price.")

    items = [article(1), article(1, 1), article(2), {"url": "https://a.example/empty", "text": ""}]
    crawl(items, lose_one, NEARDUP_STORE=f"sqlite:///{tmp_path}/state.sqlite", NEARDUP_DRY_RUN=dry_run)
    assert stats.STATE_BYTES in recorded.was_set
    assert stats.PAGES in recorded.counted
    assert {name for name in recorded.was_set if name.startswith("neardup/")} <= set(stats.GAUGES)
    sources = "".join(path.read_text("utf-8") for path in Path(session.__file__).parent.glob("*.py"))
    names = re.findall(r"set_value\(stats\.(\w+)", sources)
    assert {getattr(stats, name) for name in names} == set(stats.GAUGES), "also those that this crawl does not set"
    assert not recorded.counted & {*recorded.was_set, *stats.GAUGES}


def test_time_and_state_are_there_while_the_crawl_runs(tmp_path: Path, monkeypatch: Patch, recorded: Recording) -> None:
    monkeypatch.setattr(session, "_PAUSE", 0.001)
    seen: list[set[str]] = []
    crawl(
        [article(family) for family in range(1, 30)],
        lambda item: seen.append(set(recorded.was_set)),
        NEARDUP_STORE=f"sqlite:///{tmp_path}/state.sqlite",
    )
    assert {stats.STATE_PAGES, stats.STATE_BYTES, stats.TIME_METHOD, stats.TIME_STORE} <= seen[-1]
