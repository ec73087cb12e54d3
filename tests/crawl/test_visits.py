"""How an item finds its visit again, whatever other pipelines make of it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import CloseSpider
from scrapy.http import HtmlResponse, Response
from twisted.python.failure import Failure

from scrapy_neardup.crawl.visits import NearDupSpiderMiddleware, Visit, end_ticket, use_ticket, visit_of
from scrapy_neardup.page.source import PageResponse
from tests.crawl.project import UnreadableItem, UnsetItem

URL = "http://a.example/1"


def in_a_chain(*steps: Callable[[], Any]) -> list[Any]:
    """Run what happens to one item, in a context of its own as Scrapy does."""
    return copy_context().run(lambda: [step() for step in steps])


def test_an_object_that_was_announced_for_several_visits_has_them_in_turn() -> None:
    """Though another pipeline may replace it between the steps."""
    middleware, item, visits = (
        NearDupSpiderMiddleware(),
        {"same": "object"},
        [Visit(PageResponse(URL, b"")) for _ in range(3)],
    )
    for one in visits:
        middleware.announce(item, one)
    found = [in_a_chain(partial(middleware.issue, item), use_ticket)[1].visit for _ in range(4)]
    assert found[:3] == visits
    assert found[3] not in visits


def test_the_end_of_an_item_is_seen_once_also_if_an_earlier_pipeline_drops_it() -> None:
    ticket, *ends = in_a_chain(use_ticket, end_ticket, end_ticket)
    assert ends == [ticket, None]
    _, dropped = in_a_chain(partial(NearDupSpiderMiddleware().issue, {}), end_ticket)
    assert dropped.page is None
    assert in_a_chain(end_ticket) == [None]


Found = list[tuple[Any, Visit | None]]


async def output_of(response: Any, *output: Any, middleware: NearDupSpiderMiddleware | None = None) -> Found:
    """What comes of a callback's output, in its order, each with the visit as the first pipeline would find it."""
    middleware, found = middleware or NearDupSpiderMiddleware(), Found()

    async def result() -> AsyncIterator[Any]:
        for one in output:
            if isinstance(one, Exception):
                raise one
            yield one

    try:
        async for one in middleware.process_spider_output(response, result()):
            _, ticket = in_a_chain(partial(middleware.issue, one), use_ticket)
            visit = ticket.visit if ticket.visit.served is not None else None
            found.append((one, visit))
            if visit is not None:
                many = sum(one is not None and not isinstance(one, Request) for one in output)
                assert visit.has_several == (many > 1), "it is known whether there might be more"
                assert visit.is_claimed == any(isinstance(one, dict) and one.get("url") == URL for one in output)
    except (ZeroDivisionError, CloseSpider):
        found.append(("failed", None))
    return found


async def test_all_items_of_a_response_share_one_visit_and_requests_have_none() -> None:
    request, one, other = Request(URL), {"n": 1}, {"n": 2}
    found = await output_of(HtmlResponse(URL, body=b"<p>"), one, request, None, other)
    (visit,) = {id(visit): visit for _, visit in found if visit}.values()
    assert found == [(request, None), (None, None), (one, visit), (other, visit)]
    assert visit.announced == 2


@pytest.mark.parametrize("many", [1, 2, 4])
@pytest.mark.parametrize("fails", [False, True])
async def test_no_item_is_lost_if_others_come_or_cannot_be_read_or_the_callback_fails(many: int, fails: bool) -> None:
    items: list[Any] = [{"n": 0}, UnsetItem("One."), UnreadableItem("Two."), {"n": 3}][:many]
    found = await output_of(HtmlResponse(URL, body=b"<p>"), *items, *([ZeroDivisionError()] if fails else []))
    assert [one for one, _ in found] == [*items, *(["failed"] if fails else [])]


@pytest.mark.parametrize(("before", "many"), [([], 1), ([1], 1), ([1], 2), ([2, 1], 1)])
async def test_close_spider_is_no_failure_if_each_response_gave_one_item(before: list[int], many: int) -> None:
    """Otherwise more items of the page might have come, such as the comments of an article."""
    middleware, page, fails = NearDupSpiderMiddleware(), HtmlResponse(URL, body=b"<p>"), (before, many) != ([1], 1)
    for number in before:
        await output_of(page, *range(number), middleware=middleware)
    found = await output_of(page, *({"n": n} for n in range(many)), CloseSpider("enough"), middleware=middleware)
    assert [visit.is_failed for _, visit in found if visit] == [fails] * many


async def test_items_without_url_wait_until_another_one_has_the_url_of_the_response() -> None:
    """Else the first of them would be judged under that URL."""
    items = [{"text": "One."}, {"text": "Two.", "url": "http://a.example/2"}, {"text": "Three.", "url": URL}, {"n": 4}]
    assert len(await output_of(HtmlResponse(URL, body=b"<p>"), *items)) == 4


async def test_of_a_long_listing_at_most_a_thousand_items_are_held() -> None:
    sent = list[int]()

    async def result() -> AsyncIterator[Any]:
        for number in range(1_100):
            sent.append(number)
            yield {"n": number}

    await anext(NearDupSpiderMiddleware().process_spider_output(HtmlResponse(URL, body=b"<p>"), result()))
    assert len(sent) == 1_001, "items without URL wait for one that has the URL of the response"


async def test_the_item_of_an_errback_has_no_response() -> None:
    failure = Failure(OSError("refused"))  # type: ignore[no-untyped-call]
    assert await output_of(failure, {"n": 1}) == [({"n": 1}, None)]


def request(url: str = URL, **meta: Any) -> Request:
    return Request(url, meta=meta)


BOTH = frozenset(("http://b.example/", "http://c.example/"))
GBK = "text/html; charset=gbk"


@pytest.mark.parametrize(
    ("response", "served", "opted_out"),
    [
        (HtmlResponse(URL, body=b"<p>"), PageResponse(URL, b"<p>"), False),
        (Response(URL, body=b"%PDF"), PageResponse(URL, b"%PDF", is_text=False), False),
        (HtmlResponse(URL, status=404, headers={"Content-Type": GBK}), PageResponse(URL, b"", 404, GBK), False),
        (
            HtmlResponse(URL, request=request("http://b.example/", redirect_urls=["http://c.example/"])),
            PageResponse(URL, b"", aliases=BOTH),
            False,
        ),
        *(
            (HtmlResponse(URL, request=request(neardup=value)), PageResponse(URL, b"", aliases=frozenset((URL,))), out)
            for value, out in ((False, True), (0, False))
        ),
    ],
)
def test_a_visit_knows_what_matters_of_a_response(response: Response, served: PageResponse, opted_out: bool) -> None:
    found = visit_of(response)
    assert (found.served, found.opted_out) == (served, opted_out)
    assert (found.pages, found.unnamed, found.announced) == ({}, 0, 0)


def test_a_response_whose_callback_failed_leaves_memory_without_the_garbage_collector() -> None:
    async def callback() -> AsyncIterator[Any]:
        yield {"title": "one"}
        raise ValueError

    async def process(response: Response) -> None:
        middleware = NearDupSpiderMiddleware()
        with suppress(ValueError):
            async for item in middleware.process_spider_output(response, callback()):
                middleware.issue(item)

    def lose() -> weakref.ref[Response]:
        response = HtmlResponse(URL, body=b"x", request=Request(URL))
        copy_context().run(asyncio.run, process(response))
        return weakref.ref(response)

    gc.collect()
    gc.disable()
    try:
        assert lose()() is None
    finally:
        gc.enable()
