"""The list of dropped pages: each with its crawl, the last ones, and no drop is believed without its record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.inspect.pages import drops_of, list_dropped
from scrapy_neardup.judge import lists
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from tests.build import answer, make_detector, outcome, page, story

TEXT = story(1, 40)
FIRST = page("first", TEXT, "标题甲", site="a.example")
COPY = page("copy", [*TEXT[1:], "本站转载。"], "标题甲", site="b.example")
SECOND = page("b", story(5, 30), "标题丁")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PageStore]:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    yield store
    store.close()


def crawl(store: PageStore) -> Detector:
    return make_detector(store, keep=Keep.EVIDENCE)


def about(store: PageStore, generation: int = 0) -> list[tuple[str, str | None, str | None, str | None]]:
    listed = list_dropped(store, generation)
    return [(one["url"], one["original"], one["title"], one["kind"]) for one in listed]


def test_each_crawl_lists_its_drops_also_those_of_an_earlier_crawl(store: PageStore) -> None:
    before = time.time()
    first, second, third = crawl(store), crawl(store), crawl(store)
    for detector in (first, second):
        answer(detector, FIRST)
        assert outcome(detector, COPY) is Outcome.DUPLICATE
    assert outcome(third, FIRST) is Outcome.UNCHANGED
    expected = [(COPY.url, FIRST.url, COPY.title, "near")]
    for detector, found in ((first, expected), (second, expected), (third, [])):
        assert about(store, detector.generation) == found
    drops = list(drops_of(store))
    assert [one.generation for one in drops] == [first.generation, second.generation]
    assert all(before <= one.id / 1e9 <= time.time() and 0.8 < one.similarity < 1 for one in drops)
    answer(first, replace(FIRST, text=SECOND.text))  # an original that is updated is named by its URL
    assert about(store) == expected * 2
    store.forget([record.id for record in store.records()])
    assert about(store) == []
    assert set(check(store).counts) <= {"left over"}


def test_a_copy_and_its_drop_are_written_in_one_batch(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = crawl(store)
    answer(detector, FIRST)
    answer(detector, COPY)
    writes: list[set[bytes]] = []
    write = store.kv.write

    def noting(changes: Changes, *, sync: bool) -> None:
        writes.append({key[:1] for key in changes.puts} - {b"m", b"q"})
        write(changes, sync=sync)

    monkeypatch.setattr(store.kv, "write", noting)
    answer(detector, COPY)
    answer(detector, replace(COPY, url="http://new.example/"))
    assert writes == [{b"u", b"d"}, {b"u", b"d", b"r", b"e"}]


def test_the_oldest_of_too_many_go(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_MOST", 7)
    monkeypatch.setattr(lists, "_STEP", 3)
    one, other = crawl(store), crawl(store)
    answer(one, FIRST)
    urls = [f"http://{number}.example/" for number in range(25)]
    for number, url in enumerate(urls):
        answer(other if number % 2 else one, Page(url, COPY.title, text=COPY.text, site=url))
        assert sum(1 for _ in store.rows(b"d")) <= 7 + 3
    left = [found["url"] for found in list_dropped(store)]
    assert left[-3:] == urls[-6::2][-3:], "of two crawls those of the later one stay longer"
    assert set(check(store).counts) <= {"left over"}
