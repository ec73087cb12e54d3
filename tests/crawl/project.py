"""Spiders, items and pipelines for the crawl tests, as a user would write them. Run by ``run.py``."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pydantic
import scrapy
from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DropItem
from scrapy.extensions.feedexport import FileFeedStorage
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import is_asyncio_available

from scrapy_neardup.crawl import judge, visits
from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.server.engine import Redis
from tests.build import story


@dataclasses.dataclass
class UnsetItem:
    """Has no value in a field that its spider forgot."""

    url: str = dataclasses.field(init=False)
    text: str


@dataclasses.dataclass
class UnreadableItem(UnsetItem):
    """Its missing field cannot even be asked for."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


#: Classes of items, with a field for the tag but for the last one.
KINDS: dict[str, Any] = {
    "dict": dict,
    "dataclass": dataclasses.make_dataclass("DataclassItem", ["url", ("neardup", Any, None)]),
    "attrs": attrs.make_class("AttrsItem", {"url": attrs.field(), "neardup": attrs.field(default=None)}),
    "pydantic": pydantic.create_model("PydanticItem", url=(str, ...), neardup=(Any, None)),
    "Item": type("ScrapyItem", (scrapy.Item,), {"url": scrapy.Field(), "neardup": scrapy.Field()}),
    "untaggable": type("UntaggableItem", (scrapy.Item,), {"url": scrapy.Field()}),
}
FOOTER = """Printed and published by the Daybook at Heron Quay, and read by whoever waits for the noon ferry.
The editors answer letters on Fridays, in the order in which the postman has brought them up the hill.
Subscriptions are taken at the counter of the post office until noon, on market days until the bell rings twice.
Whoever finds an error in these pages may write to the readers' desk, and is thanked in the Saturday paper.
Lost umbrellas are kept for a month behind the counter, and then given to the crew of the harbour tug."""


class PathSpider(scrapy.Spider):
    """Yields given items, then requests each path and yields the items of its page, else one of the kinds in turn.

    Callbacks are sync and async in turn, unless ``in_order``: then all take as many steps. ``once``: nothing that was
    requested before. ``breaks``: so many items a page, then the callback fails.
    """

    name = "paths"
    base = ""
    paths: Sequence[str] = ()
    items: Sequence[dict[str, Any]] = ()
    kinds: Sequence[str] = ("dict",)
    optout: Sequence[str] = ()
    in_order = once = False
    breaks = 1_000

    async def start(self) -> Any:
        for item in self.items:
            yield item
        for place, path in enumerate(self.paths):
            yield scrapy.Request(
                self.base + path,
                callback=self.parse_async if place % 2 and not self.in_order else self.parse,
                errback=self.failed,
                priority=-place,
                dont_filter=not self.once,
                meta={"neardup": False} if path in self.optout else {},
                cb_kwargs={"kind": self.kinds[place % len(self.kinds)]},
            )

    def parse(self, response: Any, kind: str) -> Any:
        own = re.search("<!-- items (.*) -->", response.text)
        items = json.loads(own[1]) if own else [KINDS[kind](url=response.url)]
        yield from items[: self.breaks]
        if len(items) > self.breaks:
            raise ValueError("the page looks different")

    async def parse_async(self, response: Any, kind: str) -> Any:
        for item in self.parse(response, kind):
            yield item

    def failed(self, failure: Any) -> Any:
        yield {"url": failure.request.url, "from": "errback"}


class EagerFilter(RFPDupeFilter):
    """Writes each request down at once; Scrapy's own writes some hundred of them together."""

    def request_seen(self, request: scrapy.Request) -> bool:
        seen = super().request_seen(request)
        if self.file:
            self.file.flush()
        return seen


class LargeItemsSpider(PathSpider):
    """Yields items that bring pages of 200 kB, all at once."""

    count = 0

    async def start(self) -> Any:
        for number in range(self.count):
            html = f"<!-- takes 0.02 --><article>{f'Ferry number {number} sails. ' * 20}</article>"
            yield {"url": f"http://river.example/{number}", "html": html + " " * 200_000}


class ReplaceCopies:
    """An earlier pipeline that builds a new object of each item whose URL holds "copy"."""

    def process_item(self, item: Any) -> Any:
        own = ItemAdapter(item).asdict()
        return {**own, "was": type(item).__name__} if "/copy/" in own["url"] else item


class Fate:
    """A later pipeline that takes its time and loses items at random, by their path: a test that fails fails again."""

    async def process_item(self, item: Any) -> Any:
        fate = random.Random(item["url"].split("/", 3)[3])
        delay = fate.random() * 0.3
        if is_asyncio_available():
            await asyncio.sleep(delay)
        chosen = fate.choices(["ok", "drop", "fail"], [5, 2, 2])[0]
        if chosen == "drop":
            raise DropItem("not wanted", log_level="DEBUG")
        if chosen == "fail":
            raise ValueError("could not be stored")
        return item


class Batch:
    """A later pipeline that holds items until it has six of them."""

    def __init__(self) -> None:
        self.held = 0
        self.is_full = asyncio.Event()

    async def process_item(self, item: Any) -> Any:
        self.held += 1
        if self.held == 6:
            self.is_full.set()
        await self.is_full.wait()
        return item


class Passing:
    """A pipeline that knows its crawler, and passes every item."""

    def __init__(self, crawler: Any) -> None:
        raise NotImplementedError

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        return item


class Fails(Passing):
    """A pipeline that loses the items with this number."""

    def __init__(self, crawler: Any) -> None:
        self.number = crawler.settings.getint("FAILS")

    def process_item(self, item: Any) -> Any:
        if item["n"] == self.number:
            raise OSError("the dictionary does not answer")
        return item


class Kill(Passing):
    """Ends the process, as if by kill -9, when the n-th item has come through but nobody was told of it yet."""

    def __init__(self, crawler: Any) -> None:
        self.left = int(os.environ.get("KILL_AFTER", "0"))
        crawler.signals.connect(self.item_scraped, signals.item_scraped)

    def item_scraped(self) -> None:
        self.left -= 1
        if self.left == 0:
            os._exit(9)


class UnstorableFeed(FileFeedStorage):
    """A feed storage that takes items and cannot store them."""

    def store(self, file: Any) -> None:
        file.close()
        raise OSError("the bucket is gone")


class BreaksOff:
    """A post-processing plugin whose file ends badly: at the first write, or when it is closed."""

    def __init__(self, file: Any, feed_options: dict[str, Any]) -> None:
        self.file = file
        self.at_once = feed_options["at_once"]

    def write(self, data: bytes) -> int:
        if self.at_once:
            raise OSError("the cable was pulled")
        return int(self.file.write(data))

    def close(self) -> None:
        self.file.close()
        raise OSError("the cable was pulled")


class BreakStore:
    """Makes the state fail from the n-th item on."""

    def __init__(self) -> None:
        self.left = 4

    def process_item(self, item: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            Memory.write = Memory.get = Mock(side_effect=StoreError("The disk is full."))  # type: ignore[method-assign]
        return item


def half_broken_extractor(html: str, url: str) -> str | None:
    """Of pages whose URL holds "new" nothing but the footer."""
    return FOOTER if "new" in url else html


def slow_extractor(html: str, url: str) -> str | None:
    """Our own text of a page after as long as it asks for, and the process that reads it dies if it is to, once."""
    if found := re.search(r"<!-- begun (.+?) -->", html):
        Path(f"{found[1]}-{os.getpid()}").touch()
    if found := re.search(r"<!-- takes ([\d.]+) -->", html):
        time.sleep(float(found[1]))
    if (found := re.search(r"<!-- dies (.+?) -->", html)) and not Path(found[1]).exists():
        Path(found[1]).touch()
        os._exit(7)
    return html.partition("<article>")[2].partition("</article>")[0] or None


class Patient(Passing):
    """Before our pipeline: has pages wait for their turn however slow the machine is, and notes the order of items."""

    def __init__(self, crawler: Any) -> None:
        judge.PATIENCE = 60.0
        self.arrived: list[str] = []
        crawler.stats.set_value("arrived", self.arrived)

    def process_item(self, item: Any) -> Any:
        self.arrived.append(str({name: item[name] for name in item if name != "html"}))
        return item


class Hasty(Passing):
    """Has a server be gone that is silent for two seconds; else that takes five."""

    def __init__(self, crawler: Any) -> None:
        from scrapy_neardup.server import asynchronous, connection

        vars(connection)["SECONDS"] = vars(asynchronous)["SECONDS"] = 2.0
        asynchronous._LOOK = 0.5


class Held(Passing):
    """Before our pipeline: counts the items that are on their way, and how many were at once."""

    def __init__(self, crawler: Any) -> None:
        self.held = 0
        self.stats = crawler.stats
        crawler.signals.connect(self.ended, signals.item_scraped)
        crawler.signals.connect(self.ended, signals.item_dropped)

    def process_item(self, item: Any) -> Any:
        self.held += 1
        self.stats.max_value("held", self.held)
        return item

    def ended(self) -> None:
        self.held -= 1


# Three hosts that print the same articles, each in other words, in random order and without a network; for crawls on
# a server that are killed.


class Hosts:
    """A downloader middleware that answers in the place of the hosts."""

    def __init__(self) -> None:
        Redis.lease = float(os.environ["TEST_LEASE"])

    def process_request(self, request: Any, spider: Any = None) -> Any:
        host, _, family = request.url.removeprefix("http://").partition("/")
        body = "".join(f"<p>{line}</p>" for line in [*story(int(family), 10), f"{host}转载，编辑部。"])
        body = f"<html><head><title>标题{family}</title></head><body><article>{body}</article></body></html>"
        return HtmlResponse(request.url, body=body.encode(), request=request)


class HostsSpider(PathSpider):
    articles = 0

    async def start(self) -> Any:
        urls = [f"http://{host}.example/{family}" for host in "abc" for family in range(self.articles)]
        random.shuffle(urls)
        for url in urls:
            yield scrapy.Request(url, cb_kwargs={"kind": "dict"})


class SlowDatabase:
    """A later pipeline that takes its time, and notes which page of the state an item is."""

    async def process_item(self, item: Any) -> Any:
        ticket = visits._current.get()
        item["id"] = ticket.page.reservation.record.id if ticket and ticket.page and ticket.page.reservation else 0
        await asyncio.sleep(random.random() * 0.1)
        return item


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
