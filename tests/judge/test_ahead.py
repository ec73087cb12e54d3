"""Records whose pages are read ahead: in their order, not too many at once, and an error where it would be anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import cast

import pytest

from scrapy_neardup.errors import ExtractionError, NearDupError
from scrapy_neardup.inputs import Entry, InputRecord, Malformed
from scrapy_neardup.judge import prefetch
from scrapy_neardup.judge.fingerprint_tasks import Answer as Made
from scrapy_neardup.judge.fingerprint_tasks import Prepared, Preparing, Texts
from scrapy_neardup.judge.page_tasks import Readers, ReadPage
from scrapy_neardup.judge.prefetch import Prefetcher, ReadAhead
from scrapy_neardup.judge.speculation import Boilerplate
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.page.apart import MayTakeLong, NoReader
from scrapy_neardup.page.pool import Answered, Pool
from scrapy_neardup.page.response import PageContent


class Asked:
    """In the place of a pool: answers when it is told to, the last page first."""

    def __init__(self, *, at_once: bool = False, prepared: Prepared | None = None) -> None:
        self.waiting: list[tuple[PageContent, Answered[ReadPage | Page | MayTakeLong]]] = []
        self.at_once = at_once
        self.prepared = prepared

    def ask(
        self,
        raw: PageContent,
        answered: Answered[ReadPage | Page | MayTakeLong],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self.waiting.append((raw, answered))
        if self.at_once:
            self.answer()

    def answer(self) -> None:
        while self.waiting:
            raw, answered = self.waiting.pop()
            page = Page(raw.url, text="read")
            answered(ReadPage(page, self.prepared) if self.prepared is not None else page, 0.0)

    def as_pool(self) -> Readers:
        return cast(Readers, self)


class Groups:
    """The same for texts: of each page is said that it is too large, by its URL, or nothing of all of them."""

    workers = 2

    def __init__(self, *, there: bool = True) -> None:
        self.there = there
        self.asked: list[list[str]] = []

    def ask(self, texts: Texts, answered: Answered[Made], begun: Callable[[], None]) -> None:
        self.asked.append([page.url for page in texts.pages])
        if self.there:
            answered([ExtractionError("too_large", page.url) for page in texts.pages], 0.0)
        else:
            answered(NoReader("too_slow", "no memory"), 0.0)

    def preparing(self) -> Preparing:
        return Preparing(cast(Pool[Texts, Made], self))


def coming(entry: Entry) -> PageContent | Page | None:
    html, text = entry.fields.get("html"), entry.fields.get("text")
    if isinstance(text, str):
        return Page(str(entry.number), text=text)
    return PageContent(str(entry.number), html) if isinstance(html, str) else None


def entry(number: int, html: str | None = "<p>", text: str | None = None) -> Entry:
    return Entry("feed", number, "line", {"html": html, "text": text})


def told(found: tuple[InputRecord, ReadAhead]) -> tuple[int, str | None]:
    record, (answer, _, ready) = found
    if ready is not None:
        return record.number, str(ready)
    return record.number, answer.url if isinstance(answer, Page) else None


def read(records: Iterable[InputRecord], pool: Asked, *, after: int = 0) -> Iterator[tuple[InputRecord, ReadAhead]]:
    return Prefetcher(coming, pool.as_pool(), None, after=after).read(records)


def test_records_keep_their_order_whichever_page_is_read_first() -> None:
    pool = Asked()

    def records() -> Iterator[InputRecord]:
        yield from (entry(1), entry(2, None), Malformed("feed", 3, "line", "no JSON"), entry(4))
        pool.answer()

    assert list(map(told, read(records(), pool))) == [(1, "1"), (2, None), (3, None), (4, "4")]


@pytest.mark.parametrize(("html", "most"), [("<p>", 64), ("x" * 100, 10)])
def test_no_more_than_so_many_and_so_much_is_read_ahead(html: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "_MOST_BYTES", 1_000)
    pool, taken = Asked(at_once=True), []

    def records() -> Iterator[InputRecord]:
        for number in range(200):
            taken.append(number)
            yield entry(number, html)

    for place, found in enumerate(read(records(), pool)):
        assert told(found) == (place, str(place))
        assert len(taken) <= place + most
    assert len(taken) == 200


def test_an_error_comes_behind_the_records_before_it() -> None:
    def records() -> Iterator[InputRecord]:
        yield from map(entry, range(3))
        raise NearDupError("the file ends in the middle")

    found = read(records(), Asked(at_once=True))
    assert [told(next(found)) for _ in range(3)] == [(0, "0"), (1, "1"), (2, "2")]
    with pytest.raises(NearDupError, match="in the middle"):
        next(found)


def test_a_few_pages_are_not_worth_a_process() -> None:
    found = read(map(entry, range(5)), Asked(at_once=True), after=3)
    assert list(map(told, found)) == [(0, None), (1, None), (2, None), (3, "3"), (4, "4")]


def test_what_is_read_ahead_comes_with_its_fingerprint_if_there_is_one() -> None:
    prepared = Prepared(Fingerprint((), b""), (), b"", sited=False, known=Boilerplate())
    [(_, (answer, page, ready))] = read([entry(1)], Asked(at_once=True, prepared=prepared))
    assert isinstance(answer, Page)
    assert (answer.url, page, ready) == ("1", None, prepared)


def test_texts_are_sent_in_groups_and_each_gets_its_own_answer() -> None:
    groups, pool = Groups(), Asked(at_once=True)
    records = [entry(n, text=None if n % 10 == 3 else "渡口") for n in range(100)]
    found = list(Prefetcher(coming, pool.as_pool(), groups.preparing()).read(records))
    assert list(map(told, found)) == [(n, str(n)) for n in range(100)]
    assert all(page is not None for _, (answer, page, _) in found if answer is None)
    assert [len(group) for group in groups.asked] == [16] * 5 + [10]


def test_a_group_is_sent_when_it_is_large_or_its_first_is_wanted() -> None:
    groups = Groups()
    records = [entry(n, text="渡" * (60_000 if n < 4 else 1)) for n in range(6)]
    assert list(map(told, Prefetcher(coming, None, groups.preparing()).read(records))) == [
        (n, str(n)) for n in range(6)
    ]
    assert groups.asked == [["0", "1"], ["2", "3"], ["4", "5"]]


def test_no_more_texts_are_read_ahead_than_keep_the_processes_at_work() -> None:
    taken = []

    def records() -> Iterator[InputRecord]:
        for number in range(300):
            taken.append(number)
            yield entry(number, text="渡口")

    for place, _ in enumerate(Prefetcher(coming, None, Groups().preparing()).read(records())):
        assert len(taken) <= place + 80
    assert len(taken) == 300


def test_texts_of_which_nobody_says_anything_are_left_to_whoever_judges_them() -> None:
    groups = Groups(there=False)
    records = [entry(n, text="渡口") for n in range(200)]
    found = list(Prefetcher(coming, None, groups.preparing()).read(records))
    assert [(record.number, ready) for record, (_, _, ready) in found] == [(n, None) for n in range(200)]
    assert len(groups.asked) == 5, "where no process can be started, none is asked any more"


def test_the_first_texts_are_not_worth_a_process() -> None:
    groups = Groups()
    records = [entry(n, text="渡口") for n in range(5)]
    found = Prefetcher(coming, None, groups.preparing(), after_characters=5).read(records)
    assert list(map(told, found)) == [(0, None), (1, None), (2, None), (3, "3"), (4, "4")]


def test_groups_that_are_judged_before_a_process_has_begun_are_wanted_no_more() -> None:
    sent: list[Texts] = []

    class Starting(Groups):
        def ask(self, texts: Texts, answered: Answered[Made], begun: Callable[[], None]) -> None:
            sent.append(texts)

    records = Prefetcher(coming, None, Starting().preparing()).read(entry(number, None, "船") for number in range(100))
    for number in range(33):
        assert told(next(records)) == (number, None)
    assert [texts.are_wanted() for texts in sent] == [False, False, *[True] * (len(sent) - 2)]
