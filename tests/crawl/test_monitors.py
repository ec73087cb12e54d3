"""The monitors for Spidermon, run by Spidermon itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.statscollectors import StatsCollector

from tests.crawl.conftest import Crawl, Site
from tests.crawl.parts import Log

extensions = pytest.importorskip("spidermon.contrib.scrapy.extensions", reason="Spidermon is not installed.")

pytestmark = pytest.mark.filterwarnings("ignore:Spider.log")
SETTINGS = {
    "SPIDERMON_ENABLED": True,
    "SPIDERMON_ENGINE_STOP_MONITORS": ["scrapy_neardup.crawl.monitors.NearDupMonitors"],
}
OUTCOME = re.compile(r"Near-duplicates/test_(\w+)\.\.\. (\w+)")


@pytest.mark.parametrize(
    ("stats", "settings", "failed"),
    [
        ({}, {}, []),
        ({"pages": 10, "duplicate": 4}, {}, []),
        ({"pages": 10, "duplicate": 4}, {"DUPLICATE_RATE": (0.1, 0.3)}, ["duplicate_rate"]),
        ({"pages": 10, "duplicate": 4}, {"DUPLICATE_RATE": "0.5,1"}, ["duplicate_rate"]),
        ({"pages": 10, "duplicate": 4}, {"DUPLICATE_RATE": (0.3, 0.5)}, []),
        ({"suspicious_drops/titles": 1, "suspicious_drops/jump": 1}, {}, ["suspicious_drops"]),
        ({"suspicious_drops/titles": 1, "suspicious_drops/jump": 1}, {"MAX_SUSPICIOUS_DROPS": 2}, []),
        ({"suspicious_drops/minor_updates": 1}, {}, ["suspicious_drops"]),
        ({"rolled_back": 1}, {}, ["rolled_back"]),
        ({"unsealed": 3, "errors": 1}, {"MAX_UNSEALED": "2"}, ["errors", "unsealed"]),
        ({"server_gone": 1}, {}, ["server_gone"]),
        ({"lost_by_server": 1}, {"MAX_SERVER_GONE": 1}, []),
    ],
)
def test_a_monitor_fails_beyond_its_limit(
    caplog: Log, stats: dict[str, int], settings: dict[str, Any], failed: list[str]
) -> None:
    crawler = Crawler(Spider, {**SETTINGS, **{f"SPIDERMON_NEARDUP_{name}": one for name, one in settings.items()}})
    crawler.stats = StatsCollector(crawler)
    crawler.stats.set_stats({"finish_reason": "finished", **{f"neardup/{name}": one for name, one in stats.items()}})
    crawler.spider = Spider.from_crawler(crawler, "articles")
    extension = extensions.Spidermon.from_crawler(crawler)  # signals hold no reference to it
    with caplog.at_level("INFO"):
        crawler.signals.send_catch_log(signals.engine_stopped)
    assert extension is not None
    outcomes = OUTCOME.findall(caplog.text)
    assert len({name for name, _ in outcomes}) == 6
    assert [name for name, outcome in outcomes if outcome in ("FAIL", "ERROR")] == failed


@pytest.mark.slow
def test_it_sees_what_becomes_of_a_feed_at_the_end_of_a_crawl(crawl: Crawl, news: Site, tmp_path: Path) -> None:
    result = crawl(
        ["/bridge-zh", "/tea-zh"],
        **SETTINGS,
        EXTENSIONS={"spidermon.contrib.scrapy.extensions.Spidermon": 500},
        FEEDS={f"broken://{tmp_path}/feed.jsonl": {"format": "jsonlines"}},
        FEED_STORAGES={"broken": "tests.crawl.project.UnstorableFeed"},
        NEARDUP_STORE=f"sqlite://{tmp_path}/state",
    )
    assert result.count("unsealed") == 2
    assert {name for name, outcome in OUTCOME.findall(result.log) if outcome == "FAIL"} == {"unsealed"}
