"""Parts of a crawl without Scrapy's engine: notes, and feeds that do what a test tells them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast
from unittest.mock import Mock

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.statscollectors import StatsCollector

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.page.extraction import PageContent
from scrapy_neardup.workers.pool import PendingAnswer

Log = pytest.LogCaptureFixture
Patch = pytest.MonkeyPatch


def notes() -> Notes:
    return Notes(StatsCollector(Crawler(Spider)))


class Pool:
    """In the place of a pool of workers: answers after a delay, which may depend on the page, as may the answer."""

    def __init__(self, answer: Any = None, delay: Any = 0) -> None:
        self.pages: list[PageContent] = []
        self.answer, self.delay = answer, delay
        self.spent, self.replaced, self.why_replaced = 0.0, 0, ""
        self.is_closed = False
        self.worker, self.busy_since = "free", 0.0

    def submit(self, content: PageContent) -> PendingAnswer:
        self.pages.append(content)
        reading = PendingAnswer(content)
        reading.begun = monotonic() if self.worker == "free" else 0.0
        self.busy_since = monotonic() if self.worker == "busy" else 0.0
        answer, delay = (one(content) if callable(one) else one for one in (self.answer, self.delay))
        asyncio.get_running_loop().call_later(delay, reading.set_result, answer)
        return reading

    def close(self) -> None:
        self.is_closed = True


@dataclass(eq=False)
class Slot:
    """A file of a feed as Scrapy's exporter holds it, which is its own storage."""

    itemcount: int = 0
    uri: str = "mem://feed"
    uri_template: str = "mem://feed"
    items: list[Any] = field(default_factory=list)
    answer: Callable[[], Any] = lambda: None
    accepts: Callable[[Any], bool] = lambda item: True
    writes: Callable[[Any], Any] = lambda item: None

    @property
    def storage(self) -> Slot:
        return self

    def open(self, spider: Any) -> Any:
        return None

    def store(self, file: Any) -> Any:
        return self.answer()

    def fails(self) -> Slot:
        self.answer = Mock(side_effect=OSError("no room"))
        return self


def store(slot: Slot, file: Any = None) -> None:
    """Store the file of a feed, as Scrapy does; the storage answers at once."""
    with suppress(StopIteration):
        slot.store(file).send(None)


@dataclass
class Exporter:
    """Scrapy's feed exports, as far as they are looked at; ``batch``: items after which a file makes way for the next.

    ``full``: those that did, and are still to be stored.
    """

    slots: list[Slot] = field(default_factory=list)
    batch: int = 0
    full: list[Slot] = field(default_factory=list)

    def item_scraped(self, item: Any, spider: Spider) -> None:
        slots = []
        for slot in self.slots:
            if slot.accepts(item):
                slot.writes(item)
                slot.items.append(item)
                slot.itemcount += 1
                if slot.itemcount == self.batch:
                    self.full.append(slot)
                    slot = Slot(accepts=slot.accepts)  # noqa: PLW2901 - as Scrapy does
            slots.append(slot)
        self.slots = slots

    def as_scrapys(self) -> FeedExporter:
        return cast(FeedExporter, self)
