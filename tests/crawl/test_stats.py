"""The stats of a crawl: each is either set or counted, and those of time and state are there while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import DropItem
from scrapy.statscollectors import StatsCollector

from scrapy_neardup.crawl import session, stats
from tests.crawl import engineless
from tests.crawl.engineless import article, crawl

#: The stats that a crawl sets, and those that it counts.
SET: set[str] = set()
COUNTED: set[str] = set()


class RecordingCollector(StatsCollector):
    def set_value(self, key: str, value: Any, *more: Any, **named: Any) -> None:
        SET.add(key)
        super().set_value(key, value, *more, **named)

    def inc_value(self, key: str, *more: Any, **named: Any) -> None:
        COUNTED.add(key)
        super().inc_value(key, *more, **named)


@pytest.fixture(autouse=True)
def _recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    SET.clear()
    COUNTED.clear()
    monkeypatch.setattr(engineless, "StatsCollector", RecordingCollector)


def lose_one(item: dict[str, Any]) -> None:
    if item["url"].endswith("/1"):
        raise DropItem("It has no price.")


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_stat_is_either_set_or_counted(tmp_path: Path, dry_run: bool) -> None:
    """Exporters of metrics refuse a stat that is both."""
    items = [article(1), article(1, 1), article(2), {"url": "https://a.example/empty", "text": ""}]
    crawl(items, lose_one, NEARDUP_STORE=f"sqlite:///{tmp_path}/state.sqlite", NEARDUP_DRY_RUN=dry_run)
    assert stats.STATE_BYTES in SET
    assert stats.PAGES in COUNTED
    assert {name for name in SET if name.startswith("neardup/")} <= set(stats.GAUGES)
    assert not COUNTED & {*SET, *stats.GAUGES}


def test_time_and_state_are_there_while_the_crawl_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_PAUSE", 0.001)
    seen: list[set[str]] = []
    crawl(
        [article(family) for family in range(1, 30)],
        lambda item: seen.append(set(SET)),
        NEARDUP_STORE=f"sqlite:///{tmp_path}/state.sqlite",
    )
    assert {stats.STATE_PAGES, stats.STATE_BYTES, stats.TIME_METHOD, stats.TIME_STORE} <= seen[-1]
