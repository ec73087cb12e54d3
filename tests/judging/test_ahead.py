"""Records whose pages are read ahead: in their order, not too many at once, and an error where it would be anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import Entry, InputRecord, Malformed
from scrapy_neardup.judging import ahead
from scrapy_neardup.judging.ahead import read_ahead
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer
from scrapy_neardup.page.pool import Answered, Pool
from scrapy_neardup.page.raw import Raw


class Asked:
    """In the place of a pool: answers when it is told to, the last page first."""

    def __init__(self, *, at_once: bool = False) -> None:
        self.waiting: list[tuple[Raw, Answered]] = []
        self.at_once = at_once

    def ask(self, raw: Raw, answered: Answered, begun: Callable[[], None] = lambda: None) -> None:
        self.waiting.append((raw, answered))
        if self.at_once:
            self.answer()

    def answer(self) -> None:
        while self.waiting:
            raw, answered = self.waiting.pop()
            answered(Page(raw.url, text="read"), 0.0)

    def as_pool(self) -> Pool:
        return cast(Pool, self)


def raw(entry: Entry) -> Raw | None:
    html = entry.fields.get("html")
    return Raw(str(entry.number), html) if isinstance(html, str) else None


def entry(number: int, html: str | None = "<p>") -> Entry:
    return Entry("feed", number, "line", {"html": html})


def told(found: tuple[InputRecord, Answer | None]) -> tuple[int, str | None]:
    record, answer = found
    return record.number, answer.url if isinstance(answer, Page) else None


def test_records_keep_their_order_whichever_page_is_read_first() -> None:
    pool = Asked()

    def records() -> Iterator[InputRecord]:
        yield from (entry(1), entry(2, None), Malformed("feed", 3, "line", "no JSON"), entry(4))
        pool.answer()

    assert list(map(told, read_ahead(records(), raw, pool.as_pool()))) == [(1, "1"), (2, None), (3, None), (4, "4")]


@pytest.mark.parametrize(("html", "most"), [("<p>", 64), ("x" * 100, 10)])
def test_no_more_than_so_many_and_so_much_is_read_ahead(html: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_MOST_BYTES", 1_000)
    pool, taken = Asked(at_once=True), []

    def records() -> Iterator[InputRecord]:
        for number in range(200):
            taken.append(number)
            yield entry(number, html)

    for place, found in enumerate(read_ahead(records(), raw, pool.as_pool())):
        assert told(found) == (place, str(place))
        assert len(taken) <= place + most
    assert len(taken) == 200


def test_an_error_comes_behind_the_records_before_it() -> None:
    def records() -> Iterator[InputRecord]:
        yield from map(entry, range(3))
        raise NearDupError("the file ends in the middle")

    coming = read_ahead(records(), raw, Asked(at_once=True).as_pool())
    assert [told(next(coming)) for _ in range(3)] == [(0, "0"), (1, "1"), (2, "2")]
    with pytest.raises(NearDupError, match="in the middle"):
        next(coming)


def test_a_few_pages_are_not_worth_a_process() -> None:
    coming = read_ahead(map(entry, range(5)), raw, Asked(at_once=True).as_pool(), after=3)
    assert list(map(told, coming)) == [(0, None), (1, None), (2, None), (3, "3"), (4, "4")]
