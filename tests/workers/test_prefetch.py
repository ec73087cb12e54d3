"""Records that are read ahead in workers: their order, their number, and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, cast

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, InputRecord, Malformed
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import PageContent
from scrapy_neardup.workers import prefetch
from scrapy_neardup.workers.prefetch import read_ahead


class Pool:
    """In the place of a pool of workers: answers at once, or on demand and the last page first."""

    def __init__(self, *, is_idle: bool = False) -> None:
        """``is_idle``: answers on demand."""
        self.is_idle = is_idle
        self.pages: list[tuple[PageContent, Future[Any]]] = []

    def submit(self, content: PageContent, on_start: Callable[[], None] = lambda: None) -> Future[Any]:
        self.pages.append((content, Future()))
        if not self.is_idle:
            self.answer_all()
        return self.pages[-1][1]

    def answer_all(self) -> None:
        for content, future in reversed(self.pages):
            if not future.done():
                future.set_result(Page(content.url))


def content_of(entry: Entry) -> PageContent | None:
    html = entry.fields.get("html")
    return PageContent(str(entry.number), html) if isinstance(html, str) else None


def entry(number: int, html: str | None = "<p>") -> Entry:
    return Entry("feed", number, "line", {"html": html})


def read(records: Iterable[InputRecord], pool: Pool, **more: int) -> Iterator[tuple[int, str | None]]:
    """The number of each record, and the URL of the page that a worker read."""
    for record, answer in read_ahead(records, content_of, cast(Any, pool), **more):
        yield record.number, answer.url if isinstance(answer, Page) else None


def test_records_keep_their_order_whichever_page_is_read_first() -> None:
    pool = Pool(is_idle=True)

    def records() -> Iterator[InputRecord]:
        yield from (entry(1), entry(2, None), Malformed("feed", 3, "line", "no JSON"), entry(4))
        pool.answer_all()

    assert [*read(records(), pool)] == [(1, "1"), (2, None), (3, None), (4, "4")]


@pytest.mark.parametrize(("html", "most"), [("<p>", 64), ("x" * 100, 10)])
def test_the_pages_that_are_read_ahead_have_bounds(html: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_MOST_BYTES", 1_000)
    pool = Pool()
    for place, found in enumerate(read((entry(number, html) for number in range(200)), pool)):
        assert found == (place, str(place))
        assert len(pool.pages) <= place + most
    assert len(pool.pages) == 200


def test_the_first_pages_are_not_worth_a_process() -> None:
    expected = [(0, None), (1, None), (2, None), (3, "3"), (4, "4")]
    assert [*read(map(entry, range(5)), Pool(), first_pages=3)] == expected

    def records() -> Iterator[InputRecord]:
        yield from map(entry, range(3))
        raise NearDupError("the file ends in the middle")

    found = read(records(), Pool())
    assert [next(found) for _ in range(3)] == [(0, "0"), (1, "1"), (2, "2")]
    with pytest.raises(NearDupError):
        next(found)
