"""Where the page of a draft is read: here or elsewhere, and what becomes of one that nobody can read there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl.turns import AsyncPageReader, Turns, make_page_reader
from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer, MayTakeLong, NoReader
from scrapy_neardup.page.pool import Answered
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.source import PageSource, ReadTask
from scrapy_neardup.settings import AUTO, DEFAULT_FIELDS, Config
from tests.crawl.parts import notes
from tests.page.pages import ARTICLE

pytestmark = pytest.mark.skipif(
    Version(scrapy.__version__) < Version("2.15"), reason="older versions of Scrapy wait with a reactor alone"
)

URL = "http://river.example/ferry"
RISKY = ARTICLE + "<br>" * 9_000


class Answers:
    """In the place of a pool: says one thing of every page, from a thread."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.asked: list[PageContent] = []
        self.answer = answer
        self.replaced, self.why = 0, ""
        self.closed = False

    def ask(
        self, raw: PageContent, answered: Answered[Page | MayTakeLong], begun: Callable[[], None] = lambda: None
    ) -> None:
        self.asked.append(raw)
        assert self.answer is not None
        Thread(target=answered, args=[self.answer, 2.0]).start()

    def close(self) -> None:
        self.closed = True


class Desk:
    """What reads pages: "here" if it is read in this process."""

    def __init__(self, workers: Answers | None, apart: Answers | None = None, **more: Any) -> None:
        self.notes = notes()
        self.source = PageSource(DEFAULT_FIELDS, 1_000_000, lambda html, url: "here")
        pools: list[Any] = [workers, apart]
        self.aside = AsyncPageReader(self.source, self.notes, workers=pools[0], apart=pools[1], **more)

    def read(self, html: str = ARTICLE) -> str:
        draft = self.source.prepare({"html": html}, None, URL)
        assert isinstance(draft, ReadTask)
        page = asyncio.run(self.aside.read(draft, Turns().join())).page
        return page.text or page.unread

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/{stat}", 0))


READ = Page(URL, text="elsewhere")


def test_without_workers_it_is_read_here_and_apart_if_it_may_take_long() -> None:
    apart = Answers(READ)
    desk = Desk(None, apart)
    assert [desk.read(), desk.read(RISKY), desk.count("apart")] == ["here", "elsewhere", 1]
    assert [raw.content for raw in apart.asked] == [RISKY]


def test_with_workers_it_is_read_there_and_the_seconds_count() -> None:
    desk = Desk(Answers(READ))
    assert desk.read() == "elsewhere"
    assert desk.aside.spent == 2.0


def test_what_a_worker_gives_back_is_read_apart() -> None:
    workers, apart = Answers(MayTakeLong(RISKY)), Answers(ExtractionError("too_slow", "why"))
    assert Desk(workers, apart).read(RISKY) == "too_slow"
    assert [len(workers.asked), len(apart.asked)] == [1, 1]


def test_one_that_was_too_much_before_is_not_read_again_whoever_is_asked_for_that() -> None:
    async def is_unchanged(url: str, mark: int) -> bool:
        await asyncio.sleep(0)
        return known == {(url, mark)}

    known = set[tuple[str, int]]()
    apart = Answers(ExtractionError("too_slow", "why"))
    desk = Desk(None, apart, is_unchanged=is_unchanged)
    assert [desk.read(RISKY), len(apart.asked)] == ["too_slow", 1]
    draft = desk.source.prepare({"html": RISKY}, None, URL)
    assert isinstance(draft, ReadTask)
    known.add((URL, desk.source.hash_html(draft)))
    assert [desk.read(RISKY), len(apart.asked)] == ["too_slow", 1]
    assert [desk.read(f"{RISKY}<p>More."), len(apart.asked)] == ["too_slow", 2]


def test_such_pages_are_read_in_the_order_in_which_they_came() -> None:
    workers, apart = Answers(), Answers(READ)
    desk, turns = Desk(workers, apart), Turns()
    waiting: list[tuple[PageContent, Answered[Page | MayTakeLong]]] = []
    workers.ask = lambda raw, answered, begun=lambda: None: waiting.append((raw, answered))  # type: ignore[method-assign]

    async def run() -> None:
        drafts = [desk.source.prepare({"html": f"{RISKY}{n}"}, None, f"{URL}/{n}") for n in range(3)]
        reads = [desk.aside.read(draft, turns.join()) for draft in drafts if isinstance(draft, ReadTask)]
        tasks = [asyncio.create_task(one) for one in reads]
        await asyncio.sleep(0.01)
        for raw, answered in reversed(waiting):
            answered(MayTakeLong(str(raw.content)), 0.0)
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert [raw.url for raw in apart.asked] == [f"{URL}/{n}" for n in range(3)]


def test_workers_that_nobody_asked_for_are_started_for_a_crawl_that_has_much_to_read() -> None:
    desk = Desk(Answers(READ), after=3.0)
    assert desk.read() == "here"
    desk.aside.spent = 3.1
    assert desk.read() == "elsewhere"


def test_where_none_can_be_started_all_pages_are_read_here_and_it_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workers = Answers(NoReader("too_slow", "the process cannot be started: no memory."))
    desk = Desk(workers)
    assert [desk.read(), desk.read()] == ["here", "here"]
    assert len(workers.asked) == 1
    [line] = [line for line in caplog.messages if "NEARDUP_WORKERS" in line]
    assert "because the process cannot be started: no memory." in line
    desk.aside.close()
    assert workers.closed


def test_replaced_processes_are_counted_and_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    workers = Answers(READ)
    desk = Desk(workers)
    for workers.replaced in range(4):
        workers.why = "died"
        desk.read()
    assert desk.count("workers/replaced") == 3
    assert len([line for line in caplog.messages if "A worker that reads pages died" in line]) == 1


@pytest.mark.parametrize(
    ("workers", "extractor", "found"),
    [(0, "", 0), (3, "", 3), (AUTO, "", 4), (3, "shop.own", 3), (AUTO, "shop.own", 0), (3, "__main__.own", 0)],
)
def test_auto_is_for_our_own_reader_alone(
    workers: int | str, extractor: str, found: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("scrapy_neardup.settings.workers_by_machine", lambda: 4)
    config = Config(workers=workers, extractor=extractor)
    pools = [config.make_readers(None), config.make_readers(OPEN)]
    assert [pool.workers if pool is not None else 0 for pool in pools] == [found] * 2
    make_page_reader(Desk(None).source, config, notes()).close()
    assert any("a function of the started script" in line for line in caplog.messages) == extractor.startswith(
        "__main__"
    )
