"""What a state remembers of feeds: little, whatever the number of crawls, and none of it is taken on trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.repair import repair
from scrapy_neardup.maintenance.tables import Delivery, deliveries, overwritten, remember, settle
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import feed_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def test_the_pages_of_one_crawl_are_one_span() -> None:
    feed = Delivery("a")
    feed.stored((11, 15, 5), crawl=10)
    feed.stored((16, 19, 3), crawl=10)
    feed.stored((14, 30, 3), crawl=10)
    feed.stored((41, 42, 2), crawl=40)
    assert feed.held == [(11, 30, 11), (41, 42, 2)]
    feed.overwritten(known=False)
    feed.stored((51, 51, 1), crawl=50)
    feed.overwritten(known=True)
    assert (feed.held, feed.gone) == ([], [(11, 30, 11), (41, 42, 2)])


def test_of_many_crawls_the_oldest_spans_become_one() -> None:
    feed = Delivery("a")
    for crawl in range(0, 1000, 10):
        feed.stored((crawl + 1, crawl + 5, 5), crawl)
    assert len(feed.held) == 16
    assert feed.held[0] == (1, 845, 425)
    assert feed.held[-1] == (991, 995, 5)


def test_what_was_written_down_is_read_again(store: PageStore) -> None:
    for feed in (Delivery("a", [(1, 2, 2)], [(3, 2**63, 1)]), Delivery("茶\udce9", [], [])):
        remember(store, feed)
        assert feed in list(deliveries(store))
    assert check(store).problems == []


def test_of_too_many_feeds_the_oldest_are_not_remembered(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.maintenance.tables._FEEDS", 3)
    for number in range(6):
        monkeypatch.setattr("time.time", lambda now=number: now)
        remember(store, Delivery(str(number)))
        remember(store, Delivery(str(number), [(1, 1, 1)]))
    assert sorted(one.feed for one in deliveries(store)) == ["3", "4", "5"]


def test_what_was_overwritten_goes_with_its_copies_and_is_settled_then(store: PageStore) -> None:
    for id, original in ((1, 1), (2, 2), (3, 3), (4, 2), (5, 5)):
        store.add(Record(id, f"http://a/{id}", original, 1.0 if id == original else 0.9))
    remember(store, Delivery("a", [(5, 5, 1)], [(2, 3, 2)]))
    found = overwritten(store)
    assert (sorted(found.ids), found.originals, found.with_originals) == ([2, 3, 4], 2, 1)
    settle(store)
    assert [(one.held, one.gone) for one in deliveries(store)] == [([(5, 5, 1)], [])]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (feed_key("a"), b"", "cannot be read"),
        (feed_key("a"), b"[]", "cannot be read"),
        (feed_key("a"), b'{"feed": "a", "held": [[1, 2]], "gone": [], "when": 1}', "cannot be read"),
        (feed_key("a"), b'{"feed": "b", "held": [], "gone": [], "when": 1}', "is that of another one"),
        (b"f", b'{"feed": "b", "held": [], "gone": [], "when": 1}', "is that of another one"),
    ],
)
def test_a_row_that_cannot_be_one_is_told_of_and_left_out_of_a_mended_copy(
    tmp_path: Path, key: bytes, value: bytes, said: str
) -> None:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    remember(store, Delivery("whole", [(1, 2, 2)]))
    store.write(Changes({key: value}))
    with pytest.raises(StoreDamaged, match=said):
        list(deliveries(store))
    assert dict(check(store).counts) == {"broken feed": 1}
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    mended = open_at(SQLite, str(tmp_path / "mended"), {})
    assert [one.feed for one in deliveries(mended)] == ["whole"]
    mended.close()
