"""Pages are read here or by workers, and judged in the order in which they came, but for one that takes long."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl import turns
from scrapy_neardup.crawl.turns import AsyncPageReader, Backlog, Turn, make_page_reader
from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, HtmlReader, PageContent
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.settings import AUTO, DEFAULT_FIELDS, Config
from tests.crawl.parts import notes
from tests.crawl.project import UnreadableItem
from tests.page.pages import ARTICLE

pytestmark = pytest.mark.skipif(
    Version(scrapy.__version__) < Version("2.15"), reason="older versions of Scrapy wait with a reactor alone"
)


Queue = OrderedDict[Turn, None]


def overtaken_in(seconds: float) -> float:
    """The deadline of a page that a worker begins to read now."""
    return monotonic() + seconds


async def _judged(queue: Queue, delays: Sequence[float], patience: float) -> list[int]:
    """The pages by their turns, as they are judged; each takes so long to be read."""
    order: list[int] = []

    async def one(number: int, turn: Turn, delay: float) -> None:
        try:
            turn.deadline = overtaken_in(patience)
            await asyncio.sleep(delay)
            if delay < 0:
                raise ValueError
            await turn.comes()
            order.append(number)
        finally:
            turn.leave()

    tasks = [one(number, Turn(queue), delay) for number, delay in enumerate(delays)]
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(queue) == 0
    return order


@pytest.mark.parametrize(
    ("patience", "delays", "order"),
    [
        (60.0, [0.2, 0.0, 0.1, 0.05, 0.0], [0, 1, 2, 3, 4]),
        (60.0, [0.2, *[0.0] * 3_000], list(range(3_001))),
        (60.0, [-1, 0.1, -1, 0.0], [1, 3]),
        (0.2, [2.0, 0.1, 0.0, 2.2, 0.0], [1, 2, 4, 0, 3]),
        (math.inf, [0.7, 0.0], [0, 1]),
    ],
    ids=[
        "the first is read last",
        "many wait for one",
        "one that fails leaves the queue",
        "one that takes long is overtaken",
        "one that waits for a process is not overtaken",
    ],
)
def test_pages_are_judged_in_the_order_in_which_they_came(
    patience: float, delays: list[float], order: list[int]
) -> None:
    assert asyncio.run(_judged(OrderedDict(), delays, patience)) == order


def test_the_next_page_need_not_look_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE", 60.0)
    judged = _judged(OrderedDict(), [0.02, 0.0, 0.0], math.inf)
    assert asyncio.run(asyncio.wait_for(judged, 10)) == [0, 1, 2]


def test_one_that_was_read_is_not_overtaken_though_the_loop_was_held_up() -> None:
    queue: Queue = OrderedDict()
    first, second = Turn(queue), Turn(queue)
    first.deadline = overtaken_in(0.1)

    async def run() -> bool:
        waiting = asyncio.create_task(second.comes())
        await asyncio.sleep(0.02)
        first.deadline = math.inf  # a thread sets it, and the loop learns of it later
        await asyncio.sleep(0.4)
        is_waiting = not waiting.done()
        first.leave()
        await waiting
        return is_waiting

    assert asyncio.run(run())


def test_an_item_that_cannot_be_read_is_held_like_a_small_one() -> None:
    slot = SimpleNamespace(active_size=0)
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(scraper=SimpleNamespace(slot=slot)))
    for item in ({"html": "x" * 30_000}, UnreadableItem("One.")):
        with Backlog(crawler).hold(item):
            assert slot.active_size == (30_000 if isinstance(item, dict) else 10_000)
        assert slot.active_size == 0


# Which process reads a page

URL = "http://river.example/ferry"
RISKY = ARTICLE + "<br>" * 9_000


class Pool:
    """In the place of a pool of workers: gives one answer to every page, from a thread."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.pages: list[PageContent] = []
        self.answer = answer
        self.replaced, self.why_replaced = 0, ""
        self.is_closed = False

    def submit(self, content: PageContent, on_start: Callable[[], None]) -> Future[Answer]:
        self.pages.append(content)
        future: Future[Answer] = Future()
        Thread(target=self._run, args=[on_start, future]).start()
        return future

    def _run(self, on_start: Callable[[], None], future: Future[Answer]) -> None:
        on_start()
        future.set_result(self.answer)

    def close(self) -> None:
        self.is_closed = True


class Desk:
    """What reads pages: "here" if it is read in this process."""

    def __init__(self, page_pool: Pool | None, risky_pool: Pool | None = None, **more: Any) -> None:
        self.notes = notes()
        self.source = PageSource(DEFAULT_FIELDS, HtmlReader(1_000_000, extractor=lambda html, url: "here"))
        pools: list[Any] = [page_pool, risky_pool]
        self.reader = AsyncPageReader(self.source, self.notes, page_pool=pools[0], risky_pool=pools[1], **more)

    def draft(self, html: str, url: str = URL) -> UnreadPage:
        draft = self.source.prepare({"html": html}, None, url)
        assert isinstance(draft, UnreadPage)
        return draft

    def read(self, html: str = ARTICLE) -> str:
        page = asyncio.run(self.reader.read(self.draft(html), Turn(OrderedDict())))
        return page.text or page.unread

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/{stat}", 0))


READ = Page(URL, text="elsewhere")


def test_without_workers_a_page_is_read_here_and_a_risky_page_by_its_own_worker() -> None:
    risky_pool = Pool(READ)
    desk = Desk(None, risky_pool)
    assert [desk.read(), desk.read(RISKY), desk.count("apart")] == ["here", "elsewhere", 1]
    assert [raw.content for raw in risky_pool.pages] == [RISKY]


def test_with_workers_a_page_is_read_there_and_only_the_seconds_of_reading_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    submitted, started, finished = 0.0, 10.0, 12.0
    monkeypatch.setattr(turns, "perf_counter", iter([submitted, started, finished]).__next__)
    desk = Desk(Pool(READ))
    assert desk.read() == "elsewhere"
    assert desk.reader.spent == 2.0


def test_a_page_that_a_worker_has_read_is_not_overtaken_while_the_loop_is_held_up() -> None:
    begun, turn, desk = list[float](), Turn(OrderedDict()), Desk(pool := Pool(READ))
    run = pool._run

    def note(on_start: Callable[[], None], future: Future[Answer]) -> None:
        def start() -> None:
            on_start()
            begun.append(turn.deadline)

        run(start, future)

    pool._run = note  # type: ignore[method-assign]
    asyncio.run(desk.reader.read(desk.draft(ARTICLE), turn))
    assert begun[0] < turn.deadline == math.inf


def test_a_page_that_a_worker_gives_back_is_read_by_the_worker_for_risky_pages() -> None:
    page_pool, risky_pool = Pool(None), Pool(ExtractionError("too_slow", "why"))
    assert Desk(page_pool, risky_pool).read(RISKY) == "too_slow"
    assert [len(page_pool.pages), len(risky_pool.pages)] == [1, 1]


def test_risky_pages_are_read_in_the_order_in_which_they_came() -> None:
    page_pool, risky_pool = Pool(), Pool(READ)
    desk, queue = Desk(page_pool, risky_pool), Queue()
    waiting: list[tuple[PageContent, Future[Answer]]] = []

    def submit(content: PageContent, on_start: Callable[[], None]) -> Future[Answer]:
        waiting.append((content, Future()))
        return waiting[-1][1]

    page_pool.submit = submit  # type: ignore[method-assign]

    async def run() -> None:
        drafts = [desk.draft(f"{RISKY}{number}", f"{URL}/{number}") for number in range(3)]
        tasks = [asyncio.create_task(desk.reader.read(draft, Turn(queue))) for draft in drafts]
        await asyncio.sleep(0.01)
        for _, future in reversed(waiting):
            future.set_result(None)
            await asyncio.sleep(0.01)
        await asyncio.gather(*tasks)

    asyncio.run(run())
    assert [raw.url for raw in risky_pool.pages] == [f"{URL}/{number}" for number in range(3)]


def test_by_default_workers_start_for_a_crawl_that_has_much_to_read() -> None:
    desk = Desk(Pool(READ), start_after=3.0)
    assert desk.read() == "here"
    desk.reader.spent = 3.1
    assert desk.read() == "elsewhere"


def test_if_no_worker_can_start_all_pages_are_read_here_after_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(NoWorker("too_slow", "the process cannot be started: no memory."))
    desk, queue = Desk(pool), Queue()

    async def read_two() -> list[str]:
        reads = await asyncio.gather(*(desk.reader.read(desk.draft(ARTICLE), Turn(queue)) for _ in range(2)))
        return [page.text for page in reads]

    assert asyncio.run(read_two()) == ["here", "here"]
    assert desk.read() == "here"
    assert len(pool.pages) == 2, "the third page is not sent"
    [warning] = [line for line in caplog.messages if "NEARDUP_WORKERS" in line]
    assert "the process cannot be started: no memory." in warning
    desk.reader.close()
    assert pool.is_closed


def test_replaced_workers_are_counted_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    pool = Pool(READ)
    desk = Desk(pool)
    for pool.replaced in range(4):
        pool.why_replaced = "died"
        desk.read()
    assert desk.count("workers/replaced") == 3
    assert len([line for line in caplog.messages if "A worker that reads pages died" in line]) == 1


@pytest.mark.parametrize(
    ("workers", "extractor", "size"),
    [(0, "", 0), (3, "", 3), (AUTO, "", 4), (3, "shop.own", 3), (AUTO, "shop.own", 0), (3, "__main__.own", 0)],
)
def test_auto_starts_workers_for_our_own_reader_alone(
    workers: int | str, extractor: str, size: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("scrapy_neardup.settings.default_size", lambda: 4)
    config = Config(workers=workers, extractor=extractor)
    pool = config.make_page_pool()
    assert (pool.size if pool is not None else 0) == size
    make_page_reader(Desk(None).source, config, notes()).close()
    assert any("a function of the started script" in line for line in caplog.messages) == extractor.startswith(
        "__main__"
    )
