"""From an item and its visit to a page: what is shared, what waits, and what passes whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
import scrapy
from packaging.version import Version

from scrapy_neardup.crawl.judge import Judge
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.crawl.turns import AsyncPageReader, Event
from scrapy_neardup.crawl.visits import JudgedPage, ResponseItems, Visit
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import memory_state
from tests.build import article_text, article_url, make_detector
from tests.crawl.parts import notes, outage

pytestmark = pytest.mark.skipif(
    Version(scrapy.__version__) < Version("2.15"), reason="older versions of Scrapy wait with a reactor alone"
)

READER = HtmlReader(5_000_000, extractor=lambda html, url: html)


class Court:
    """A judge on an empty state."""

    def __init__(self, wait: float = 5.0, *, reader: AsyncPageReader | None = None, **fields: str) -> None:
        self.notes = notes()
        self.outage = outage(self.notes)
        self.detector: Detector = make_detector(memory_state({}))
        source = PageSource({**DEFAULT_FIELDS, **fields}, READER)
        reader = reader or AsyncPageReader(source, self.notes, risky_pool=None)
        self.judge = Judge(
            source,
            reader,
            self.detector,
            self.notes,
            self.outage,
            SiteWatch(self.notes, {}),
            wait=wait,
        )

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/{stat}", 0))

    def pages(self, *asked: tuple[Any, Visit]) -> list[JudgedPage]:
        """The pages of items that come one after the other."""

        async def run() -> list[JudgedPage]:
            return [await self.judge.judge(item, visit) for item, visit in asked]

        return asyncio.run(run())

    def kinds(self, *asked: tuple[Any, Visit]) -> list[str]:
        return [page.verdict.headline for page in self.pages(*asked)]


def visit(family: int, version: int = 0, *, items: int = 1) -> Visit:
    served = PageResponse(
        article_url(family, version), article_text(family, version).encode(), content_type="text/html; charset=utf-8"
    )
    return Visit(served, items=ResponseItems(announced=items))


def own(family: int, version: int = 0) -> dict[str, str]:
    """An item with its content."""
    return {"url": article_url(family, version), "text": article_text(family, version)}


def reservation(page: JudgedPage) -> Reservation:
    assert page.reservation is not None
    return page.reservation


def test_items_of_one_response_without_content_share_a_case() -> None:
    court, one = Court(), visit(1)
    first, second, other = court.pages(({"n": 1}, one), ({"n": 2}, one), ({"n": 1}, visit(2)))
    assert first is second
    assert other is not first
    assert court.count("pages") == 2


def test_items_that_come_while_their_page_is_being_judged_wait_for_its_case() -> None:
    court, one, other = Court(), visit(1), visit(1, 1)

    async def run() -> list[JudgedPage]:
        before = reservation(await court.judge.judge({}, one))
        asked = [asyncio.create_task(court.judge.judge({"n": n}, other)) for n in range(3)]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in asked), "the first is on its way"
        court.detector.commit(before, sealed=True)
        return await asyncio.gather(*asked)

    pages = asyncio.run(run())
    assert pages[0] is pages[1] is pages[2]
    assert pages[0].verdict.kind is Kind.DUPLICATE
    assert (court.count("waited"), court.count("pages")) == (1, 2)


def test_a_page_that_was_lost_is_judged_anew_for_the_next_item_of_its_response() -> None:
    court, one = Court(), visit(1)
    (first,) = court.pages(({"n": 1}, one))
    first.is_lost = True
    court.detector.release(reservation(first))
    (second,) = court.pages(({"n": 2}, one))
    assert second is not first
    assert second.verdict.kind is Kind.UNIQUE


def test_items_with_content_and_no_url_are_numbered_and_those_without_content_do_not_disturb_that() -> None:
    court, one = Court(wait=0), visit(1)
    items = [
        {"text": article_text(2)},
        {"text": article_text(3)},
        {"n": 1},
        {"text": article_text(4)},
        {"text": article_text(5)},
    ]
    names = [page.verdict.url for page in court.pages(*((item, one) for item in items))]
    base = article_url(1)
    assert names == [base, f"{base}#2", base, f"{base}#3", f"{base}#4"]


def test_an_item_without_url_and_response_is_known_by_its_content() -> None:
    court = Court(wait=0)
    pages = court.pages(*(({"text": article_text(1)}, Visit()) for _ in range(2)), ({"text": article_text(2)}, Visit()))
    names = [page.verdict.url for page in pages]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("text:")


def test_an_item_with_its_text_is_judged_though_its_response_is_no_html() -> None:
    served = [PageResponse(article_url(1, n), b"{}", content_type="application/json") for n in range(2)]
    asked = [(own(1, number), Visit(one)) for number, one in enumerate(served)]
    court = Court()
    kept(court, *court.pages(asked[0]))
    assert court.kinds(asked[1]) == ["duplicate (near)"]


def test_the_row_of_a_listing_is_not_judged_by_the_listing() -> None:
    court, listing = Court(), visit(1)
    assert (
        court.kinds(({"url": article_url(9)}, listing), ({"url": article_url(8)}, listing))
        == ["unjudged (other_page)"] * 2
    )


# Rows: several items of one response, without content and without a URL.

RUNG = "渡口清晨开航第一班船是空的老人们站在岸边看着它慢慢地驶向对岸谁也没有说话直到汽笛响了三声"


def kept(court: Court, *pages: JudgedPage) -> None:
    """The items came through."""
    for reservation in dict.fromkeys(page.reservation for page in pages):
        if reservation is not None and court.detector.store.record(reservation.record.id) is None:
            court.detector.commit(reservation, sealed=True)


def test_the_rows_of_a_listing_are_judged_by_what_they_hold_and_not_by_the_page(
    caplog: pytest.LogCaptureFixture,
) -> None:
    court, first, second = Court(), visit(1, items=3), visit(1, 1, items=2)
    asked = [({"n": "一"}, first), ({"n": "二"}, first), ({"n": RUNG + "甲"}, first), ({"n": "三"}, second)]
    pages = court.pages(*asked, ({"n": RUNG + "乙"}, second))
    assert [page.verdict.headline for page in pages] == ["unjudged (listing)"] * 5
    assert len({page.verdict.url for page in pages}) == 5
    assert caplog.text.count("give them the page's URL") == 1


def test_a_row_that_says_enough_is_unchanged_wherever_it_stands() -> None:
    court, row = Court(), {"headline": RUNG, "rank": 1}
    (first,) = court.pages((row, visit(1, items=2)))
    kept(court, first)
    again, other = court.pages((row, visit(2, items=2)), ({**row, "rank": 2}, visit(2, items=2)))
    found = [page.verdict.headline for page in (first, again, other)]
    assert found == ["unjudged (listing)", "unchanged", "unjudged (listing)"]
    assert first.verdict.url == again.verdict.url


def test_a_row_that_says_little_passes_however_often_it_comes_in_one_crawl_and_is_unchanged_in_the_next() -> None:
    court, row = Court(), {"rank": "1", "score": "3:0"}
    first, twin = court.pages(*((row, visit(1, items=2)) for _ in range(2)))
    assert twin.reservation is None, "the first one of them counts for all"
    assert (twin.verdict.headline, court.count("waited")) == ("unjudged (listing)", 0)
    kept(court, first)
    (third,) = court.pages((row, visit(1, items=2)))
    assert third.verdict.headline == "unjudged (listing)"
    court.detector = make_detector(court.detector.store)
    source = PageSource(DEFAULT_FIELDS, READER)
    reader = AsyncPageReader(source, court.notes, risky_pool=None)
    court.judge = Judge(source, reader, court.detector, court.notes, court.outage, SiteWatch(court.notes, {}), wait=5.0)
    assert court.kinds((row, visit(1, items=2))) == ["unchanged"]
    assert court.kinds((row, visit(2, items=2))) == ["unjudged (listing)"], "another page's may mean something else"


def test_rows_that_cannot_be_told_apart_for_certain_pass_every_time() -> None:
    court = Court()
    for _ in range(2):
        pages = court.pages(
            *(({"n": RUNG, "of": object()}, visit(1, items=2)) for _ in range(2)), ("?", visit(1, items=2))
        )
        assert [page.verdict.headline for page in pages] == ["unjudged (listing)"] * 3
        assert [page.reservation for page in pages] == [None] * 3


def test_items_that_carry_the_url_of_their_page_or_bring_content_are_no_rows() -> None:
    court, one = Court(wait=0), visit(1, items=5)
    record, image = {"url": article_url(1)}, {"url": article_url(1), "src": "1.png"}
    pages = court.pages((record, one), (image, one), (own(2), one), ({"src": "2.png"}, one))
    assert pages[0] is pages[1]
    assert [page.verdict.headline for page in pages[1:]] == ["unique", "unique", "unjudged (listing)"]


def test_a_field_that_was_named_makes_the_items_of_a_page_different_articles() -> None:
    court, one = Court(wait=0, part="headline"), visit(1, items=4)
    pages = court.pages(
        ({"headline": "Ferry "}, one),
        ({"headline": "ferry", "image": "1.png"}, one),
        ({"headline": "Bridge", "url": article_url(1)}, one),
        ({"headline": "Tea", "text": article_text(2)}, one),
        ({"url": article_url(1)}, one),
    )
    assert [page.verdict.url for page in pages] == [
        f"{article_url(1)}{part}" for part in ("#ferry", "#ferry", "#bridge", "#tea", "")
    ]
    assert pages[0] is pages[1]
    assert [page.verdict.kind.value for page in pages[2:]] == ["unjudged", "unique", "unique"]


def test_a_part_that_says_enough_is_updated_when_anything_in_it_has_changed() -> None:
    court, row = Court(part="headline"), {"headline": "Ferry", "lead": RUNG}
    for item, expected in (
        (row, "unjudged (listing)"),
        (row, "unchanged"),
        ({**row, "price": 1}, "updated"),
        ({**row, "price": 1}, "unchanged"),
    ):
        (page,) = court.pages((item, visit(1, items=2)))
        kept(court, page)
        assert page.verdict.headline == expected
        assert page.verdict.url == f"{article_url(1)}#ferry"


def test_a_page_waits_no_longer_than_it_is_told_to() -> None:
    court = Court(wait=0.05)
    assert court.kinds(({}, visit(1)), ({}, visit(1, 1))) == ["unique", "unjudged (in_flight)"]
    assert court.count("waited") == 1


def test_a_page_that_gave_up_another_is_known_from_then_on_and_the_next_one_waits_for_it() -> None:
    court = Court(wait=0.05)

    async def run() -> list[str]:
        slow = await court.judge.judge(own(1), visit(1))
        hasty = [asyncio.create_task(court.judge.judge(own(1, version), visit(1, version))) for version in (1, 1, 2)]
        (first,), waiting = await asyncio.wait(hasty, return_when=asyncio.FIRST_COMPLETED)
        assert len(waiting) == 2
        kept(court, first.result())
        kept(court, slow)
        return [one.verdict.headline for one in (first.result(), *await asyncio.gather(*hasty))]

    kinds = asyncio.run(run())
    assert (kinds[0], sorted(kinds[1:])) == (
        "unjudged (in_flight)",
        ["duplicate (near)", "unchanged", "unjudged (in_flight)"],
    )
    assert court.kinds((own(1, 1), visit(1, 1)), (own(1), visit(1))) == ["unchanged", "unchanged"]


def test_a_page_that_gave_up_its_other_version_is_one_page() -> None:
    court = Court(wait=0.05)
    later = {**own(1), "text": article_text(1) + "编辑部更正：此前的报道有误。"}
    first, second = court.pages((own(1), visit(1)), (later, visit(1)))
    assert second.verdict.headline == "unjudged (in_flight)"
    kept(court, first, second)
    assert [record.id for record in court.detector.store.records()] == [reservation(second).record.id]


def test_a_page_waits_for_each_one_that_comes_to_stand_before_it() -> None:
    """Each that is lost makes way for the next of those that wait."""
    court = Court()

    async def run() -> list[str]:
        asked = [asyncio.create_task(court.judge.judge({}, visit(1, version))) for version in range(4)]
        kinds = []
        for _ in asked:
            done: set[asyncio.Task[JudgedPage]] = set()
            while not done:
                await asyncio.sleep(0.01)
                done = {task for task in asked if task.done()}
            asked = [task for task in asked if task not in done]
            for task in done:
                kinds.append(task.result().verdict.kind.value)
                court.detector.release(reservation(task.result()))
        return kinds

    assert asyncio.run(run()) == ["unique"] * 4


def test_once_the_state_has_failed_nothing_is_judged_and_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    court = Court()

    def fail(page: Page, given_up: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(court.detector, "check", fail)
    assert court.kinds(({}, visit(1))) == ["unjudged (store_failed)"]
    assert court.outage.happened
    monkeypatch.undo()
    assert court.kinds(({}, visit(2))) == ["unjudged (store_failed)"]
    assert court.count("errors") == 1


def test_a_page_that_no_one_foresaw_passes_with_a_traceback_that_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    court = Court()

    def fail(page: Page, given_up: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(court.detector, "check", fail)
    assert court.kinds(({}, visit(1)), ({}, visit(2))) == ["unjudged (method_failed)"] * 2
    assert court.count("errors") == 2
    assert caplog.text.count("Traceback") == 1


@pytest.mark.parametrize("happens", [True, False])
def test_an_event_wakes_all_who_wait_and_those_who_come_later_at_once(happens: bool) -> None:
    async def run() -> list[bool]:
        event = Event()
        waiting: list[Awaitable[bool]] = [asyncio.ensure_future(event.wait(0.05)) for _ in range(3)]
        await asyncio.sleep(0)
        if happens:
            event.happen()
            event.happen()
        found = [*await asyncio.gather(*waiting), await event.wait(0)]
        event.happen()  # too late: it disturbs nobody
        return found

    assert asyncio.run(run()) == [happens] * 4


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
def test_a_page_that_cannot_be_judged_passes_with_its_reason_and_the_first_is_told(
    body: bytes, more: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    court = Court()
    visits = [Visit(PageResponse(article_url(1, version), body, **more)) for version in range(2)]
    assert court.kinds(*(({}, one) for one in visits)) == [f"unjudged ({reason})"] * 2
    assert court.count(f"unjudged/{reason}") == 2
    assert caplog.text.count("Further cases") == 1
