"""How an item finds its visit again, whatever other pipelines make of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from twisted.python.failure import Failure

from scrapy_neardup.crawl.middleware import NearDupSpiderMiddleware, visit_of
from scrapy_neardup.crawl.visits import Ticket, Tickets, Visit, end_ticket, use_ticket
from scrapy_neardup.page.source import PageResponse

URL = "http://a.example/1"


def in_a_chain(steps: Callable[[], Any]) -> Any:
    """Run what happens to one item, in a context of its own as Scrapy does."""
    return copy_context().run(steps)


def visit() -> Visit:
    return Visit(PageResponse(URL, b""))


def test_an_item_that_was_announced_has_its_visit_though_another_pipeline_replaces_it() -> None:
    tickets, item, own = Tickets(), {"a": 1}, visit()
    tickets.announce(item, own)

    def chain() -> Ticket:
        tickets.issue(item)
        return use_ticket()

    assert in_a_chain(chain).visit is own


def test_one_object_may_be_announced_for_several_visits_and_has_them_in_turn() -> None:
    tickets, item, visits = Tickets(), {"same": "object"}, [visit(), visit(), visit()]
    for one in visits:
        tickets.announce(item, one)

    def chain() -> Visit:
        tickets.issue(item)
        return use_ticket().visit

    assert [in_a_chain(chain) for _ in visits] == visits
    assert in_a_chain(chain) not in visits


def test_the_end_of_an_item_is_seen_once() -> None:
    def chain() -> list[Ticket | None]:
        return [use_ticket(), end_ticket(), end_ticket()]

    ticket, *ends = in_a_chain(chain)
    assert ends == [ticket, None]


def test_an_item_that_an_earlier_pipeline_drops_ends_without_a_page() -> None:
    tickets = Tickets()

    def chain() -> Ticket | None:
        tickets.issue({})
        return end_ticket()

    assert in_a_chain(chain).page is None
    assert in_a_chain(end_ticket) is None


def announced(response: Any, *output: Any) -> list[tuple[Any, Visit | None]]:
    """What comes of a callback's output, in its order, each with the visit as the first pipeline would find it."""
    middleware = NearDupSpiderMiddleware()

    async def result() -> AsyncIterator[Any]:
        for one in output:
            if isinstance(one, Exception):
                raise one
            yield one

    def chain(one: Any) -> Visit | None:
        middleware.tickets.issue(one)
        found = use_ticket().visit
        return found if found.served is not None else None

    found: list[tuple[Any, Visit | None]] = []

    async def collect() -> None:
        async for one in middleware.process_spider_output(response, result()):
            visit = in_a_chain(partial(chain, one))
            found.append((one, visit))
            several.append(visit.items.are_several if visit else None)

    several: list[bool | None] = []
    try:
        asyncio.run(collect())
    except ZeroDivisionError:
        found.append(("failed", None))
    told = sum(isinstance(one, (dict, Exception)) for one in output)
    assert {one for one in several if one is not None} <= {told > 1}, "it is known whether there might be more"
    return found


def test_all_items_of_a_response_share_one_visit_and_requests_have_none() -> None:
    response, request, one, other = HtmlResponse(URL, body=b"<p>"), Request(URL), {"n": 1}, {"n": 2}
    found = announced(response, one, request, None, other)
    (visit,) = {id(visit): visit for _, visit in found if visit}.values()
    assert found == [(request, None), (None, None), (one, visit), (other, visit)]
    assert visit.items.announced == 2


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("fails", [False, True])
def test_no_item_is_lost_whether_others_come_or_the_callback_fails(many: int, fails: bool) -> None:
    items = [{"n": number} for number in range(many)]
    found = announced(HtmlResponse(URL, body=b"<p>"), *items, *([ZeroDivisionError()] if fails else []))
    assert [one for one, _ in found] == [*items, *(["failed"] if fails else [])]


async def test_items_without_url_wait_until_another_one_has_the_url_of_the_response() -> None:
    """Else the first of them would be judged under that URL."""
    items = [{"text": "One."}, {"text": "Two.", "url": "http://a.example/2"}, {"text": "Three.", "url": URL}, {"n": 4}]
    middleware, claimed = NearDupSpiderMiddleware(), list[bool]()

    async def result() -> AsyncIterator[Any]:
        for item in items:
            yield item

    async for one in middleware.process_spider_output(HtmlResponse(URL, body=b"<p>"), result()):
        middleware.tickets.issue(one)
        claimed.append(use_ticket().visit.is_claimed)
    assert claimed == [True] * 4


def test_a_page_may_have_more_items_until_its_callback_has_ended() -> None:
    middleware, visits, complete = NearDupSpiderMiddleware(), list[Visit](), list[bool]()

    async def result() -> AsyncIterator[Any]:
        for number in range(3):
            yield {"url": f"http://a.example/{number}"}

    async def collect() -> None:
        async for one in middleware.process_spider_output(HtmlResponse(URL, body=b"<p>"), result()):
            middleware.tickets.issue(one)
            visits.append(use_ticket().visit)
            complete.append(visits[-1].items.is_complete)

    asyncio.run(collect())
    assert (complete, visits[0].items.is_complete) == ([False] * 3, True)


def test_the_item_of_an_errback_has_no_response() -> None:
    assert announced(Failure(OSError("refused")), {"n": 1}) == [({"n": 1}, None)]  # type: ignore[no-untyped-call]


def request(url: str = URL, **meta: Any) -> Request:
    return Request(url, meta=meta)


def test_a_visit_holds_what_has_to_be_known_of_a_response() -> None:
    for response, expected in [
        (HtmlResponse(URL, body=b"<p>"), Visit(PageResponse(URL, b"<p>"))),
        (Response(URL, body=b"%PDF"), Visit(PageResponse(URL, b"%PDF", is_text=False))),
        (
            HtmlResponse(URL, status=404, headers={"Content-Type": "text/html; charset=gbk"}),
            Visit(PageResponse(URL, b"", 404, "text/html; charset=gbk")),
        ),
        (
            HtmlResponse(URL, request=request("http://b.example/", redirect_urls=["http://c.example/"])),
            Visit(PageResponse(URL, b"", aliases=frozenset(("http://b.example/", "http://c.example/")))),
        ),
        (
            HtmlResponse(URL, request=request(neardup=False)),
            Visit(PageResponse(URL, b"", aliases=frozenset((URL,))), opted_out=True),
        ),
        (HtmlResponse(URL, request=request(neardup=0)), Visit(PageResponse(URL, b"", aliases=frozenset((URL,))))),
    ]:
        found = visit_of(response)
        assert (found.served, found.opted_out) == (expected.served, expected.opted_out)
        assert (found.pages, found.unnamed, found.items.announced) == ({}, 0, 0), response
