"""One whole crawl of three hosts that print the same articles, for tests that kill it.

    python -m tests.crawl.killed_crawl STATE FOLDER ARTICLES

Each host prints each article in words of its own. The pages come in random order, without a network. A feed of twenty
items is there, under a name of its own in FOLDER, once it is stored whole.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path
from typing import Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.http import HtmlResponse

from scrapy_neardup.crawl import visits
from scrapy_neardup.server.engine import Redis
from tests.build import story

#: A tenth of what they are in a crawl.
LEASE, WAIT = 6.0, 1.0
FEED = {"format": "jsonlines", "batch_item_count": 20}


class WholeFeed(FileFeedStorage):
    """A feed that is there once it is stored."""

    def __init__(self, uri: str, **more: Any) -> None:
        super().__init__(uri.replace("whole://", "file://"), **more)

    def open(self, spider: Any) -> Any:
        Path(self.path).parent.mkdir(exist_ok=True)
        return Path(f"{self.path}.part").open("wb")

    def store(self, file: Any) -> None:
        file.close()
        Path(f"{self.path}.part").rename(self.path)


class Hosts:
    """Answers in the place of the three hosts."""

    def process_request(self, request: Any, spider: Any = None) -> Any:
        host, _, family = request.url.removeprefix("http://").partition("/")
        body = "".join(f"<p>{line}</p>" for line in [*story(int(family), 10), f"{host}转载，编辑部。"])
        body = f"<html><head><title>标题{family}</title></head><body><article>{body}</article></body></html>"
        return HtmlResponse(request.url, body=body.encode(), request=request)


class Database:
    """A later pipeline that takes its time, and notes which page of the state an item is."""

    async def process_item(self, item: Any, spider: Any = None) -> Any:
        ticket = visits._current.get()
        item["id"] = ticket.page.reservation.record.id if ticket and ticket.page and ticket.page.reservation else 0
        await asyncio.sleep(random.random() * 0.1)
        return item


class News(scrapy.Spider):
    name = "news"
    articles = 0

    async def start(self) -> Any:
        urls = [f"http://{host}.example/{family}" for host in "abc" for family in range(self.articles)]
        random.shuffle(urls)
        for url in urls:
            yield scrapy.Request(url)

    def parse(self, response: Any) -> Any:
        yield {"url": response.url, "family": int(response.url.rpartition("/")[2])}


def main(state: str, folder: str, articles: int) -> None:
    Redis.lease = LEASE
    process = AsyncCrawlerProcess(
        {
            "ADDONS": {"scrapy_neardup.Addon": 500},
            "NEARDUP_STORE": state,
            "NEARDUP_WAIT": WAIT,
            "DOWNLOADER_MIDDLEWARES": {Hosts: 10},
            "ITEM_PIPELINES": {Database: 900},
            "FEEDS": {f"whole://{folder}/{os.getpid()}-%(batch_id)d.jsonl": FEED},
            "FEED_STORAGES": {"whole": WholeFeed},
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "INFO",
        }
    )
    process.crawl(News, articles=articles)
    process.start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
