"""A crawl without Scrapy's engine: our pipeline and Scrapy's own feed exports, in this process, item by item."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import scrapy
from packaging.version import Version
from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem, NotConfigured
from scrapy.extension import ExtensionManager
from scrapy.extensions.feedexport import FeedExporter
from scrapy.statscollectors import StatsCollector
from scrapy.utils.reactor import install_reactor

from scrapy_neardup.crawl.pipeline import NearDupPipeline
from tests.build import article_text, article_url

if Version(scrapy.__version__) < Version("2.15"):  # it asks for a reactor, though a loop runs
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")


def article(family: int, version: int = 0, **more: Any) -> dict[str, Any]:
    """An item with a text of its own; versions of one family are near-duplicates of each other."""
    return {
        "url": article_url(family, version),
        "title": f"标题{family}",
        "text": article_text(family, version),
        **more,
    }


def crawl(items: Iterable[Mapping[str, Any]], later: Any = None, **settings: Any) -> dict[str, Any]:
    """What a spider that yields these items comes to, with ``later`` for a later pipeline; returns the stats."""
    return asyncio.run(_crawl(items, later, {"NEARDUP_KEEP": "nothing", **settings}))


@dataclass
class Result:
    """What came of a crawl: the items that came through, the stats; of a process also its log and exit code."""

    items: list[dict[str, Any]]
    stats: dict[str, Any]
    log: str = ""
    code: int = 0

    @property
    def urls(self) -> list[str]:
        return [item["url"] for item in self.items]

    @property
    def paths(self) -> list[str]:
        return ["/" + url.split("/", 3)[3] for url in self.urls]

    def count(self, stat: str) -> int:
        return int(self.stats.get(f"neardup/{stat}", 0))


def crawl_items(*items: Mapping[str, Any], **settings: Any) -> Result:
    came: list[dict[str, Any]] = []
    stats = crawl(items, came.append, **{"NEARDUP_KEEP": "evidence", **settings})
    return Result(came, stats)


async def _crawl(items: Iterable[Mapping[str, Any]], later: Any, settings: dict[str, Any]) -> dict[str, Any]:
    crawler = Crawler(Spider, settings)
    crawler.stats = StatsCollector(crawler)
    crawler.spider = spider = Spider.from_crawler(crawler, "articles")
    crawler.crawling = True
    extensions: list[FeedExporter] = []
    with suppress(NotConfigured):
        extensions.append(FeedExporter.from_crawler(crawler))
    crawler.extensions = cast(ExtensionManager, SimpleNamespace(middlewares=extensions))
    pipeline = NearDupPipeline.from_crawler(crawler)
    pipeline.open_spider()
    send = crawler.signals.send_catch_log
    send(signals.spider_opened, spider=spider)
    for item in items:
        await asyncio.get_running_loop().create_task(_one(item, pipeline, later, crawler))
    await crawler.signals.send_catch_log_async(signals.spider_closed, spider=spider, reason="finished")
    send(signals.engine_stopped)
    return dict(crawler.stats.get_stats())


async def _one(item: Mapping[str, Any], pipeline: NearDupPipeline, later: Any, crawler: Crawler) -> None:
    about = {"item": dict(item), "response": None, "spider": crawler.spider}
    send = crawler.signals.send_catch_log
    try:
        about["item"] = await pipeline.process_item(about["item"])
        if later is not None:
            later(about["item"])
    except DropItem as error:
        send(signals.item_dropped, exception=error, **about)
    except Exception:
        send(signals.item_error, failure=None, **about)
    else:
        send(signals.item_scraped, **about)
