"""Which process reads a page, and what becomes of its answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_neardup.crawl.judge import AsyncPageReader, make_page_reader
from scrapy_neardup.crawl.visits import hold
from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.settings import AUTO, DEFAULT_FIELDS, Config
from tests.crawl.parts import Log, Patch, Pool, notes
from tests.crawl.project import UnreadableItem
from tests.page.pages import ARTICLE

URL = "http://river.example/ferry"
RISKY = ARTICLE + "<br>" * 9_000
READ = Page(URL, text="elsewhere")


class Desk:
    """What reads pages: "here" if it is read in this process."""

    def __init__(self, page_pool: Pool | None, risky_pool: Pool | None = None, **more: Any) -> None:
        self.notes = notes()
        self.source = PageSource(DEFAULT_FIELDS, HtmlReader(1_000_000, extractor=lambda html, url: "here"))
        pools: list[Any] = [page_pool, risky_pool]
        self.reader = AsyncPageReader(self.source, self.notes, page_pool=pools[0], risky_pool=pools[1], **more)

    def read(self, *html: str) -> list[str]:
        """The texts of pages that come at once, or why they are not read."""

        async def one(html: str) -> str:
            draft = self.source.prepare({"html": html}, None, URL)
            assert isinstance(draft, UnreadPage)
            begun = self.reader.begin(draft)
            page = await self.reader.read_quickly(draft, begun)
            if isinstance(page, UnreadPage):
                page = await self.reader.read_slowly(page, begun)
            return page.text or page.unread

        async def all_of_them() -> list[str]:
            return await asyncio.gather(*map(one, html))

        return asyncio.run(all_of_them())

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/{stat}", 0))


def test_without_workers_a_page_is_read_here_and_a_risky_page_by_its_own_worker() -> None:
    desk = Desk(None, risky_pool := Pool(READ))
    assert [*desk.read(ARTICLE, RISKY), desk.count("apart")] == ["here", "elsewhere", 1]
    assert [raw.content for raw in risky_pool.pages] == [RISKY]
    assert Desk(None).read(RISKY) == ["here"]


@pytest.mark.parametrize("delay", [0, 0.1], ids=["at once", "after others have overtaken it"])
@pytest.mark.parametrize(
    ("answer", "html", "text", "risky"),
    [
        (READ, ARTICLE, "elsewhere", 0),
        (ExtractionError("too_large", "why"), ARTICLE, "too_large", 0),
        (None, RISKY, "too_slow", 1),  # a worker gives it back
        (NoWorker("too_slow", "the process cannot be started: no memory."), ARTICLE, "here", 0),
        (NoWorker("too_slow", "the process cannot be started: no memory."), RISKY, "too_slow", 1),
    ],
)
def test_with_workers_a_page_is_read_there_and_if_none_can_start_here_after_one_warning(
    answer: Any, html: str, text: str, risky: int, delay: float, caplog: Log, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("scrapy_neardup.crawl.judge.PATIENCE", delay / 2 or 60)
    page_pool, risky_pool = Pool(answer, delay), Pool(ExtractionError("too_slow", "why"))
    desk = Desk(page_pool, risky_pool)
    assert desk.read(html, html) == [text] * 2
    is_off = isinstance(answer, NoWorker)
    assert (desk.read(ARTICLE) == ["here"]) is is_off
    assert (len(page_pool.pages), len(risky_pool.pages) >= 2 * risky) == (3 - is_off, True)
    assert sum("no memory." in line for line in caplog.messages) == is_off
    desk.reader.close()
    assert page_pool.is_closed
    assert risky_pool.is_closed


def test_by_default_workers_start_for_a_crawl_that_has_much_to_read() -> None:
    desk = Desk(pool := Pool(READ), start_after=3.0)
    assert desk.read(ARTICLE) == ["here"]
    pool.spent = 3.1
    assert desk.read(ARTICLE) == ["elsewhere"]
    assert 3.1 < desk.reader.spent < 4, "the seconds of all processes count"


@pytest.mark.parametrize(
    ("workers", "extractor", "size"),
    [(0, "", 0), (3, "", 3), (AUTO, "", 4), (3, "shop.own", 3), (AUTO, "shop.own", 0), (3, "__main__.own", 0)],
)
def test_auto_starts_workers_for_our_own_reader_alone(
    workers: int | str, extractor: str, size: int, monkeypatch: Patch, caplog: Log
) -> None:
    monkeypatch.setattr("scrapy_neardup.settings.default_size", lambda: 4)
    config = Config(workers=workers, extractor=extractor)
    pool = config.make_page_pool()
    assert (pool.size if pool is not None else 0) == size
    make_page_reader(Desk(None).source, config, notes()).close()
    assert any("a function of the started script" in line for line in caplog.messages) == extractor.startswith("__")


def test_an_item_that_cannot_be_read_is_held_like_a_small_one() -> None:
    slot = SimpleNamespace(active_size=0)
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(scraper=SimpleNamespace(slot=slot)))
    for item in ({"html": "x" * 30_000}, UnreadableItem("One.")):
        with hold(item, crawler):
            assert slot.active_size == (30_000 if isinstance(item, dict) else 10_000)
        assert slot.active_size == 0
