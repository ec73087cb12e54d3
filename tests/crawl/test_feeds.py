"""Pages are sealed as feeds are stored, fail, are refilled and closed, without a crawl."""

from __future__ import annotations

import asyncio
import errno
import tracemalloc
from array import array
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_neardup.crawl.feeds import FeedWatch, NotWritten, PagesAwaitingFeeds
from tests.crawl.parts import Exporter, Slot

SPIDER = Spider("any")


class Watched:
    """A watch on the feeds of an exporter, and what it has sealed."""

    def __init__(self, *slots: Slot) -> None:
        self.sealed: list[int] = []
        self.exporter = Exporter(list(slots))
        self.watch = FeedWatch(self.exporter.as_scrapys(), self.sealed.extend)

    def export(self, *ids: int) -> None:
        """Items of these pages come through, and go into whatever feeds are open."""
        for id in ids:
            self.watch.add(id, self.watch.export(id, SPIDER))


def test_a_feed_that_fails_later_seals_nothing() -> None:
    watched = Watched(slot := Slot())
    waiting = slot.later()
    watched.export(1)
    outcome: Deferred[None] = slot.store(None)
    told: list[Failure] = []
    outcome.addErrback(told.append)
    waiting.errback(OSError("no room"))
    assert isinstance(told[0].value, OSError)
    assert watched.sealed == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_storage_that_is_awaited_seals_when_it_is_done(fails: bool) -> None:
    async def store() -> None:
        await asyncio.sleep(0)
        if fails:
            raise OSError("no room")

    watched = Watched(slot := Slot(answer=store))
    watched.export(1)

    async def run() -> None:
        await slot.store(None)

    if fails:
        with pytest.raises(OSError, match="no room"):
            asyncio.run(run())
    else:
        asyncio.run(run())
    assert watched.sealed == ([] if fails else [1])


def test_a_full_batch_seals_its_own_pages_also_if_it_is_stored_while_the_last_item_is_written() -> None:
    watched = Watched(slot := Slot())
    watched.exporter.batch = 2
    watched.export(1)
    feeds = watched.watch.export(2, SPIDER)
    assert watched.exporter.full == [slot]
    slot.store(None)
    assert watched.sealed == [1]
    watched.watch.add(2, feeds)
    assert watched.sealed == [1, 2]


@pytest.mark.parametrize("file_of", [lambda path: path.open("wb"), lambda path: object()], ids=["a file", "no file"])
def test_the_file_reaches_the_disk_before_its_storage_has_it(
    tmp_path: Path, file_of: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    monkeypatch.setattr("os.fsync", lambda number: order.append("disk"))
    watched = Watched(slot := Slot(answer=lambda: order.append("storage")))
    watched.export(1)
    file = file_of(tmp_path / "feed")
    slot.store(file)
    assert order == (["disk", "storage"] if hasattr(file, "fileno") else ["storage"])
    if hasattr(file, "close"):
        file.close()


@pytest.mark.parametrize(("error", "fails"), [(errno.EINVAL, False), (errno.ENOSPC, True), (errno.EIO, True)])
def test_a_feed_that_cannot_be_brought_to_the_disk_is_not_stored_and_one_that_has_no_disk_is(
    tmp_path: Path, error: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sync(number: int) -> None:
        raise OSError(error, "no sync")

    monkeypatch.setattr("os.fsync", sync)
    watched = Watched(slot := Slot())
    watched.export(1)
    with (tmp_path / "feed").open("wb") as file, pytest.raises(OSError, match="no sync") if fails else nullcontext():
        slot.store(file)
    assert watched.sealed == ([] if fails else [1])


@pytest.mark.parametrize("late", [False, True], ids=["it fails first", "it fails last"])
def test_pages_of_a_feed_that_fails_are_counted(late: bool) -> None:
    watched = Watched(good := Slot(uri="mem://good"), bad := Slot(uri="mem://bad").fails())
    watched.export(1, 2, 3)
    for slot in (good, bad) if late else (bad, good):
        if slot is bad:
            with pytest.raises(OSError, match="no room"):
                slot.store(None)
        else:
            slot.store(None)
    assert watched.sealed == []
    assert watched.watch.unstored() == ["mem://bad"]


def test_the_batch_that_fails_is_named_and_its_pages_are_not_held_any_longer() -> None:
    watched = Watched()
    for id in range(1, 4):
        slot = Slot(uri=f"mem://batch-{id}", uri_template="mem://batch-%(batch_id)d")
        watched.exporter.slots = [slot.fails() if id == 2 else slot]
        watched.export(id)
        with pytest.raises(OSError, match="no room") if id == 2 else nullcontext():
            slot.store(None)
    assert watched.sealed == [1, 3]
    assert len(watched.watch._waiting) == 0
    assert watched.watch.unstored() == ["mem://batch-2"]


def test_a_page_whose_first_feed_failed_is_not_sealed_by_the_feed_of_a_later_item() -> None:
    watched = Watched(bad := Slot(uri="mem://bad").fails())
    first = watched.watch.export(1, SPIDER)
    watched.watch.add(1, first)
    with pytest.raises(OSError, match="no room"):
        bad.store(None)
    watched.exporter.slots = [good := Slot(uri="mem://good")]
    watched.watch.add(1, watched.watch.export(1, SPIDER), first)
    good.store(None)
    assert watched.sealed == []


def test_each_feed_has_its_turn_though_one_before_it_cannot_write_the_item() -> None:
    def write(item: int) -> None:
        if item == 1:
            raise TypeError("cannot be serialised")

    watched = Watched(full := Slot(uri="mem://full"), Slot(uri="mem://bad", writes=write), good := Slot(uri="mem://c"))
    watched.exporter.batch = 1
    with pytest.raises(NotWritten) as raised:
        watched.watch.export(1, SPIDER)
    assert str(raised.value) == "mem://bad"
    assert isinstance(raised.value.__cause__, TypeError)
    assert (full.items, good.items) == ([1], [1])
    assert watched.exporter.full == [full, good]
    assert len(watched.exporter.slots) == 3
    assert full not in watched.exporter.slots, "its next batch is open"


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        ({}, b'{"a": 1}\n{"b": "ha', b'{"a": 1}\n{"b": "ha\n{"c": 2}\n'),
        ({}, b'{"a": 1}\n', b'{"a": 1}\n{"c": 2}\n'),
        ({}, b"", b'{"c": 2}\n'),
        ({}, None, b'{"c": 2}\n'),
        ({"overwrite": True}, b'{"b": "ha', b'{"c": 2}\n'),
        ({"format": "csv"}, b'b\n"ha', b'b\n"hac\r\n2\r\n'),
    ],
)
def test_half_a_line_is_ended_first(
    tmp_path: Path, options: dict[str, Any], before: bytes | None, after: bytes
) -> None:
    path = tmp_path / "out"
    if before is not None:
        path.write_bytes(before)
    feeds = {f"file://{path}": {"format": "jsonlines", **options}}
    crawler = Crawler(Spider, {"FEEDS": feeds})
    exporter = FeedExporter.from_crawler(crawler)
    exporter.open_spider(Spider("any"))
    watch = FeedWatch(exporter, lambda ids: None)
    watch.begin()
    watch.export({"c": 2}, Spider("any"))
    [slot] = exporter.slots
    slot.finish_exporting()
    slot.storage.store(cast(Any, slot.file))
    assert path.read_bytes() == after


FEEDS = st.frozensets(st.sampled_from("abc"), min_size=1)
STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 30), FEEDS),
    st.tuples(st.just("remove"), st.integers(1, 30), st.none()),
    st.tuples(st.sampled_from(["stored", "failed"]), st.none(), st.sampled_from("abc")),
)


@given(st.lists(STEPS, max_size=60))
def test_pages_wait_for_all_their_feeds_in_whatever_order_they_come(steps: list[tuple[str, int, str]]) -> None:
    held: PagesAwaitingFeeds[str] = PagesAwaitingFeeds()
    waiting: dict[int, frozenset[str]] = {}
    for step, id, which in steps:
        if step == "add":
            held.add(id, frozenset(which))
            waiting[id] = waiting.get(id, frozenset()) | frozenset(which)
        elif step == "remove":
            assert held.remove(id) == waiting.pop(id, frozenset())
        else:
            of_it = sorted(id for id, feeds in waiting.items() if which in feeds)
            if step == "failed":
                assert sorted(id for ids in held.forget(which).values() for id in ids) == of_it
                waiting = {id: feeds for id, feeds in waiting.items() if which not in feeds}
            else:
                ready = [id for id in of_it if waiting[id] == {which}]
                assert held.store(which) == array("Q", ready)
                waiting = {id: feeds - {which} for id, feeds in waiting.items() if feeds != {which}}
        assert len(held) == len(waiting)
        assert held.feeds() == {feed for feeds in waiting.values() for feed in feeds}


PAGES = 3000
BATCH = 500


def one_feed() -> Exporter:
    return Exporter([Slot()])


def two_feeds() -> Exporter:
    return Exporter([Slot(), Slot(uri="mem://other")])


def two_sorts_of_items() -> Exporter:
    return Exporter([Slot(accepts=lambda n: n == 0), Slot(uri="mem://other", accepts=lambda n: n == 1)])


@pytest.mark.parametrize("make", [one_feed, two_feeds, two_sorts_of_items])
@pytest.mark.parametrize("batch", [0, BATCH])
def test_a_page_that_waits_takes_a_few_bytes(make: Callable[[], Exporter], batch: int) -> None:
    """Two items of each page, one after the other; only the last feed, or the last of its batches, is ever stored."""
    exporter, sealed = make(), array("Q")
    watch = FeedWatch(exporter.as_scrapys(), sealed.extend)
    spider = Spider("any")
    for slot in exporter.slots:
        slot.items = Nothing()
    last = exporter.slots[-1]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for id in range(1 << 60, (1 << 60) + PAGES):
        first = watch.export(0, spider)
        watch.add(id, first)
        if second := watch.export(1, spider):
            watch.add(id, second, first)
        if batch and last.itemcount >= batch:
            last.store(None)
            exporter.slots[-1] = last = Slot(uri=last.uri, accepts=last.accepts, items=Nothing())
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 20 * PAGES, f"{held / PAGES:.1f} bytes a page"
    for slot in exporter.slots:
        slot.store(None)
    assert sorted(sealed) == list(range(1 << 60, (1 << 60) + PAGES))


class Nothing(list[object]):
    """Items that nobody keeps."""

    def append(self, item: object) -> None:
        """It is gone."""
