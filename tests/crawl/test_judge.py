"""From an item and its visit to a page: what is shared, what waits, and what passes whatever goes wrong."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_neardup.crawl.judge import AsyncPageReader, Judge
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.crawl.visits import JudgedPage, Visit
from scrapy_neardup.errors import ExtractionError, StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.page.extraction import Answer, HtmlReader, PageContent
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from tests.build import article_text, article_url, make_detector
from tests.crawl.parts import Log, Patch, Pool, notes
from tests.crawl.project import UnreadableItem, UnsetItem

READER = HtmlReader(5_000_000, extractor=lambda html, url: html)


class Court:
    """A judge of one crawl on a state, which is empty unless it is given."""

    def __init__(self, wait: float = 5.0, *, store: PageStore | None = None, pools: Any = (), **fields: str) -> None:
        self.notes = notes()
        self.detector: Detector = make_detector(store or memory_state({}))
        source = PageSource({**DEFAULT_FIELDS, **fields}, READER, bodies=self.detector.bodies)
        page_pool, risky_pool = pools or (None, None)
        reader = AsyncPageReader(source, self.notes, page_pool=page_pool, risky_pool=risky_pool)
        watch = SiteWatch(self.notes, {})
        self.judge = Judge(source, reader, self.detector, self.notes, watch, wait=wait)

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/{stat}", 0))

    def pages(self, *asked: tuple[Any, Visit]) -> list[JudgedPage]:
        """The pages of items that come one after the other."""

        async def run() -> list[JudgedPage]:
            return [await self.judge.judge(item, visit) for item, visit in asked]

        return asyncio.run(run())

    def kinds(self, *asked: tuple[Any, Visit]) -> list[str]:
        return [page.verdict.headline for page in self.pages(*asked)]

    def keep(self, *pages: JudgedPage) -> None:
        """The items came through."""
        for reservation in dict.fromkeys(page.reservation for page in pages):
            if reservation is not None and self.detector.store.record(reservation.record.id) is None:
                self.detector.commit(reservation, sealed=True)


def visit(family: int, version: int = 0, *, items: int = 1) -> Visit:
    body = article_text(family, version).encode()
    served = PageResponse(article_url(family, version), body, content_type="text/html; charset=utf-8")
    return Visit(served, announced=items)


def own(family: int, version: int = 0) -> dict[str, str]:
    """An item with its content."""
    return {"url": article_url(family, version), "text": article_text(family, version)}


def reservation(page: JudgedPage) -> Reservation:
    assert page.reservation is not None
    return page.reservation


def test_items_of_one_response_without_content_share_a_page_unless_it_was_lost() -> None:
    court, one = Court(), visit(1)
    first, second, other = court.pages(({"n": 1}, one), ({"n": 2}, one), ({"n": 1}, visit(2)))
    assert first is second
    assert other is not first
    assert court.count("pages") == 2
    first.is_rolled_back = True
    court.detector.release(reservation(first))
    (third,) = court.pages(({"n": 3}, one))
    assert third is not first
    assert (third.verdict.outcome, third.is_failed) == (Outcome.UNIQUE, False)
    third.is_rolled_back = third.is_failed = True
    court.detector.release(reservation(third))
    (fourth,) = court.pages(({"n": 4}, one))
    assert fourth.is_failed, "the item that failed has to come again, and all others with it"


def test_items_that_come_while_their_page_is_being_judged_wait_for_it() -> None:
    court, one, other = Court(), visit(1), visit(1, 1)

    async def run() -> list[JudgedPage]:
        before = reservation(await court.judge.judge({}, one))
        asked = [asyncio.create_task(court.judge.judge({"n": n}, other)) for n in range(3)]
        await asyncio.sleep(0.05)
        await asyncio.wait_for(court.judge.judge({}, visit(2)), 2)  # they hold up no other page
        assert not any(task.done() for task in asked), "the first is in flight"
        court.detector.commit(before, sealed=True)
        return await asyncio.gather(*asked)

    pages = asyncio.run(run())
    assert pages[0] is pages[1] is pages[2]
    assert pages[0].verdict.outcome is Outcome.DUPLICATE
    assert (court.count("waited"), court.count("pages")) == (1, 3)


def test_items_with_content_and_no_url_are_numbered_and_without_response_known_by_their_content() -> None:
    court, one, base = Court(wait=0), visit(1), article_url(1)
    items: list[dict[str, Any]] = [{"text": article_text(family)} for family in (2, 3, 4, 5)]
    items.insert(2, {"n": 1})
    one.urls.add(f"{base}#3")
    names = [page.verdict.url for page in court.pages(*((item, one) for item in items))]
    assert names == [base, f"{base}#2", base, f"{base}#4", f"{base}#5"], "another item has #3"
    court = Court(wait=0)
    first, again, other = (page.verdict.url for page in court.pages(*((items[n], Visit()) for n in (0, 0, 1))))
    assert first == again != other
    assert first.startswith("text:")


def test_an_item_with_its_text_is_judged_though_its_response_is_no_html() -> None:
    served = [PageResponse(article_url(1, n), b"{}", content_type="application/json") for n in range(2)]
    first, second = ((own(1, number), Visit(one)) for number, one in enumerate(served))
    court = Court()
    court.keep(*court.pages(first))
    assert court.kinds(second) == ["duplicate (near)"]


def test_the_row_of_a_listing_with_the_url_of_another_page_is_not_judged_by_the_listing() -> None:
    court, listing = Court(), visit(1)
    assert court.kinds(*(({"url": article_url(n)}, listing) for n in (9, 8))) == ["unjudged (other_page)"] * 2


# Rows: several items of one response, without content and without a URL.

RUNG = "渡口清晨开航第一班船是空的老人们站在岸边看着它慢慢地驶向对岸谁也没有说话直到汽笛响了三声"


def test_the_rows_of_a_listing_are_judged_by_what_they_hold_and_not_by_the_page(caplog: Log) -> None:
    court, first, second = Court(), visit(1, items=3), visit(1, 1, items=2)
    asked = [({"n": "一"}, first), ({"n": "二"}, first), ({"n": RUNG + "甲"}, first), ({"n": "三"}, second)]
    pages = court.pages(*asked, ({"n": RUNG + "乙"}, second))
    assert [page.verdict.headline for page in pages] == ["unjudged (listing)"] * 5
    assert len({page.verdict.url for page in pages}) == 5
    assert caplog.text.count("give them the page's URL") == 1


def test_a_row_that_says_enough_is_unchanged_wherever_it_stands() -> None:
    court, row = Court(), {"headline": RUNG, "rank": 1}
    (first,) = court.pages((row, visit(1, items=2)))
    court.keep(first)
    again, other = court.pages((row, visit(2, items=2)), ({**row, "rank": 2}, visit(2, items=2)))
    found = [page.verdict.headline for page in (first, again, other)]
    assert found == ["unjudged (listing)", "unchanged", "unjudged (listing)"]
    assert first.verdict.url == again.verdict.url


def test_a_row_that_says_little_passes_however_often_it_comes_in_one_crawl_and_is_unchanged_in_the_next() -> None:
    court, row = Court(), {"rank": "1", "score": "3:0"}
    first, twin = court.pages(*((row, visit(1, items=2)) for _ in range(2)))
    assert twin.reservation is None, "the first one of them counts for all"
    assert (twin.verdict.headline, court.count("waited")) == ("unjudged (listing)", 0)
    court.keep(first)
    assert court.kinds((row, visit(1, items=2))) == ["unjudged (listing)"]
    later = Court(store=court.detector.store)
    assert later.kinds((row, visit(1, items=2))) == ["unchanged"]
    assert later.kinds((row, visit(2, items=2))) == ["unjudged (listing)"], "another page's may mean something else"


def test_rows_that_cannot_be_told_apart_for_certain_pass_every_time() -> None:
    court, row = Court(), {"n": RUNG, "of": object()}
    for _ in range(2):
        pages = court.pages(*((one, visit(1, items=2)) for one in (row, row, "?")))
        assert [page.verdict.headline for page in pages] == ["unjudged (listing)"] * 3
        assert [page.reservation for page in pages] == [None] * 3


def test_items_that_carry_the_url_of_their_page_or_bring_content_are_no_rows() -> None:
    court, one = Court(wait=0), visit(1, items=5)
    record, image = {"url": article_url(1)}, {"url": article_url(1), "src": "1.png"}
    pages = court.pages((record, one), (image, one), (own(2), one), ({"src": "2.png"}, one))
    assert pages[0] is pages[1]
    assert [page.verdict.headline for page in pages[1:]] == ["unique", "unique", "unjudged (listing)"]


def test_a_field_that_was_named_makes_the_items_of_a_page_different_articles() -> None:
    court, one, url = Court(wait=0, part="headline"), visit(1, items=4), article_url(1)
    pages = court.pages(
        ({"headline": "Ferry "}, one),
        ({"headline": "ferry", "image": "1.png"}, one),
        ({"headline": "Bridge", "url": url}, one),
        ({"headline": "Tea", "text": article_text(2)}, one),
        ({"url": url}, one),
    )
    assert [page.verdict.url for page in pages] == [
        f"{url}{part}" for part in ("#ferry", "#ferry", "#bridge", "#tea", "")
    ]
    assert pages[0] is pages[1]
    assert [page.verdict.outcome.value for page in pages[2:]] == ["unjudged", "unique", "unique"]


def test_a_part_that_says_enough_is_updated_when_anything_in_it_has_changed() -> None:
    court, row = Court(part="headline"), {"headline": "Ferry", "lead": RUNG}
    found = []
    for item in (row, row, {**row, "price": 1}, {**row, "price": 1}):
        (page,) = court.pages((item, visit(1, items=2)))
        court.keep(page)
        found.append(page.verdict.headline)
        assert page.verdict.url == f"{article_url(1)}#ferry"
    assert found == ["unjudged (listing)", "unchanged", "updated", "unchanged"]


# Pages in flight


def test_a_page_that_gave_up_another_is_known_from_then_on_and_the_next_one_waits_for_it() -> None:
    court = Court(wait=0.05)

    async def run() -> list[str]:
        slow = await court.judge.judge(own(1), visit(1))
        hasty = [asyncio.create_task(court.judge.judge(own(1, version), visit(1, version))) for version in (1, 1, 2)]
        (first,), waiting = await asyncio.wait(hasty, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) == 2
        court.keep(first.result(), slow)
        return [one.verdict.headline for one in (first.result(), *await asyncio.gather(*hasty))]

    first, *others = asyncio.run(run())
    assert first == "unjudged (in_flight)"
    assert sorted(others) == ["duplicate (near)", "unchanged", "unjudged (in_flight)"]
    assert court.kinds((own(1, 1), visit(1, 1)), (own(1), visit(1))) == ["unchanged", "unchanged"]


@pytest.mark.parametrize("turns", [1, -1], ids=["first comes first", "second comes first"])
def test_a_page_that_gave_up_its_other_version_is_one_page(turns: int) -> None:
    court = Court(wait=0.05)
    later = {**own(1), "text": article_text(1) + "编辑部更正：此前的报道有误。"}
    pages = court.pages((own(1), visit(1)), (later, visit(1)))[::turns]
    assert max(pages, key=lambda one: one.verdict.id).verdict.headline == "unjudged (in_flight)"
    court.keep(*pages)
    assert [record.id for record in court.detector.store.records()] == [pages[-1].verdict.id]


def test_a_page_waits_for_each_one_that_comes_to_stand_before_it() -> None:
    """Each that is lost makes way for the next of those that wait."""
    court = Court()

    async def run() -> list[str]:
        waiting = {asyncio.create_task(court.judge.judge({}, visit(1, version))) for version in range(4)}
        kinds = []
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                kinds.append(task.result().verdict.outcome.value)
                court.detector.release(reservation(task.result()))
        return kinds

    assert asyncio.run(run()) == ["unique"] * 4


@pytest.mark.parametrize(
    ("delays", "patience", "worker", "order"),
    [
        ([0.2, 0.0, 0.1, 0.05, 0.0], 60.0, "free", [0, 1, 2, 3, 4]),
        ([0.2, -1, 0.1, -1, 0.0], 60.0, "free", [0, 2, 4]),
        ([0.9, 0.1, 0.0, 1.3, 0.0], 0.3, "free", [1, 2, 4, 0, 3]),
        ([0.5, 0.0], 0.3, "starts", [0, 1]),
        ([0.9, 0.0], 0.05, "starts", [1, 0]),
        ([1.1, 0.8, 0.0], 0.3, "busy", [2, 1, 0]),
    ],
    ids=[
        "first is read last",
        "one that fails holds up nobody",
        "one that takes long is overtaken",
        "a worker starts",
        "a worker starts for long",
        "those that wait for slow pages hold up nobody",
    ],
)
def test_pages_are_judged_in_the_order_in_which_they_came_unless_one_takes_long(
    delays: list[float], patience: float, worker: str, order: list[int], monkeypatch: Patch
) -> None:
    monkeypatch.setattr("scrapy_neardup.crawl.judge.PATIENCE", patience)

    def delay(content: PageContent) -> float:
        return delays[int(content.url.rpartition("/")[2])]

    def answer(content: PageContent) -> Answer:
        if delay(content) < 0:
            return ExtractionError("method_failed", "why")
        return Page(content.url, text=article_text(int(content.url.rpartition("/")[2])))

    pool = Pool(answer, lambda content: abs(delay(content)))
    pool.worker = worker
    assert judged_in_order(Court(pools=(pool, None)), len(delays)) == order


def test_no_worker_reads_a_page_that_is_known_by_its_bytes_and_none_is_known_once_the_state_has_failed() -> None:
    court = Court(pools=(pool := Pool(lambda content: Page(content.url, text=article_text(1))), None))
    court.keep(*court.pages(({}, visit(1))))
    assert (court.kinds(({}, visit(1))), court.count("same_bytes"), len(pool.pages)) == (["unchanged"], 1, 1)
    court.notes.report(StoreError("The disk is full."))
    assert court.kinds(({}, visit(1))) == ["unjudged (store_failed)"]


def test_pages_that_take_long_are_read_in_the_order_in_which_they_came() -> None:
    risky_pool = Pool(lambda content: Page(content.url, text=article_text(int(content.url[-1]))))
    pool = Pool(None, lambda content: 0.1 - 0.03 * int(content.url[-1]))
    assert judged_in_order(Court(pools=(pool, risky_pool)), 3) == [0, 1, 2]
    assert [content.url[-1] for content in risky_pool.pages] == ["0", "1", "2"]


def judged_in_order(court: Court, many: int) -> list[int]:
    """The numbers of pages that come at once, as they are judged."""

    async def run() -> list[JudgedPage]:
        items = ({"url": f"http://a.example/{number}", "html": "<p>"} for number in range(many))
        return await asyncio.gather(*(court.judge.judge(item, Visit()) for item in items))

    found = {page.verdict.id: number for number, page in enumerate(asyncio.run(run())) if page.reservation}
    return [found[id] for id in sorted(found)]


# Whatever goes wrong


@pytest.mark.parametrize(
    ("error", "reason", "errors", "tracebacks"),
    [(StoreError("The disk is full."), "store_failed", 1, 0), (ZeroDivisionError(), "method_failed", 2, 1)],
)
def test_after_an_error_of_the_state_or_of_a_method_every_item_passes(
    error: Exception, reason: str, errors: int, tracebacks: int, monkeypatch: Patch, caplog: Log
) -> None:
    """Once the state has failed nothing is judged and nothing waits."""
    court = Court()

    monkeypatch.setattr(court.detector, "check", Mock(side_effect=error))
    assert court.kinds(({}, visit(1)), ({}, visit(2))) == [f"unjudged ({reason})"] * 2
    monkeypatch.undo()
    assert court.notes.state_failed is (court.kinds(({}, visit(3))) == ["unjudged (store_failed)"])
    assert court.notes.state_failed is (reason == "store_failed")
    assert (court.count("errors"), caplog.text.count("Traceback")) == (errors, tracebacks)
    assert caplog.text.count("From here on every item passes unjudged.") == court.notes.state_failed


def test_an_item_whose_fields_are_missing_or_cannot_be_read_passes() -> None:
    court = Court()
    (first,) = court.pages((UnsetItem(article_text(1)), visit(2)))
    court.keep(first)
    assert (first.verdict.headline, first.verdict.url) == ("unique", article_url(2))
    found = court.kinds((UnsetItem(article_text(1)), visit(3)), (UnreadableItem(article_text(1)), visit(4)))
    assert found == ["duplicate (identical)", "unjudged (method_failed)"]
    assert court.count("errors") == 1


@pytest.mark.parametrize(
    ("body", "more", "reason"),
    [
        (b"", {"status": 500}, "http_error"),
        (b"%PDF-1.7", {}, "not_html"),
        (b"{}", {"content_type": "application/json"}, "not_html"),
        (b"<p>short</p>", {}, "too_short"),
        (b"", {}, "no_text"),
    ],
)
def test_a_page_that_cannot_be_judged_passes_with_its_reason_and_the_first_is_logged(
    body: bytes, more: dict[str, Any], reason: str, caplog: Log
) -> None:
    court = Court()
    visits = [Visit(PageResponse(article_url(1, version), body, **more)) for version in range(2)]
    assert court.kinds(*(({}, one) for one in visits)) == [f"unjudged ({reason})"] * 2
    assert court.count(f"unjudged/{reason}") == 2
    assert caplog.text.count("Further cases") == 1
    assert "`" not in caplog.text
