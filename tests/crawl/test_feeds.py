"""Which pages are told to be safe as feeds are stored, fail, are refilled and closed, without a crawl."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from scrapy_neardup.crawl.feeds import FeedWatch
from tests.crawl.parts import Exporter, Slot


class Watched:
    """A watch on the feeds of an exporter, and what it has sealed."""

    def __init__(self, *slots: Slot) -> None:
        self.sealed: list[int] = []
        self.exporter = Exporter(list(slots))
        self.watch = FeedWatch(self.exporter.as_scrapys(), self.sealed.extend)

    def export(self, *ids: int) -> None:
        """Items of these pages come through, and go into whatever feeds are open."""
        for id in ids:
            self.watch.hold(id, self.watch.open_feeds())
            for slot in self.exporter.slots:
                slot.itemcount += 1


def test_without_feeds_nothing_is_waited_for() -> None:
    sealed: list[int] = []
    watch = FeedWatch(None, sealed.extend)
    assert watch.open_feeds() == set()
    watch.hold(1, watch.open_feeds())
    assert sealed == [1]


def test_pages_are_sealed_in_their_order_when_their_feed_is_stored() -> None:
    watched = Watched(slot := Slot())
    watched.export(3, 1, 2)
    assert watched.sealed == []
    slot.store(None)
    assert watched.sealed == [1, 2, 3]


def test_of_several_feeds_all_must_be_stored() -> None:
    watched = Watched(one := Slot(), other := Slot())
    watched.export(1)
    one.store(None)
    assert watched.sealed == []
    other.store(None)
    assert watched.sealed == [1]


def test_each_batch_seals_its_own_pages() -> None:
    watched = Watched(first := Slot())
    watched.export(1, 2)
    watched.exporter.slots = [second := Slot()]
    watched.export(3)
    second.store(None)
    assert watched.sealed == [3]
    first.store(None)
    assert watched.sealed == [3, 1, 2]


def test_a_feed_that_cannot_be_stored_seals_nothing_and_the_error_is_scrapys_to_tell() -> None:
    watched = Watched(slot := Slot().fails())
    watched.export(1)
    with pytest.raises(OSError, match="no room"):
        slot.store(None)
    watched.watch.close()
    assert watched.sealed == []


def test_a_feed_that_is_stored_later_seals_then() -> None:
    watched = Watched(slot := Slot())
    waiting = slot.later()
    watched.export(1)
    slot.store(None)
    assert watched.sealed == []
    waiting.callback(None)
    assert watched.sealed == [1]


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


def test_a_page_that_was_taken_back_is_not_sealed() -> None:
    watched = Watched(slot := Slot())
    watched.export(1, 2)
    watched.watch.drop(1)
    watched.watch.drop(9)
    slot.store(None)
    assert watched.sealed == [2]


def test_a_feed_without_items_is_never_stored_and_holds_nothing_back_at_the_end() -> None:
    """Its filter has refused the item, for instance."""
    watched = Watched(full := Slot(), Slot())
    watched.watch.hold(1, watched.watch.open_feeds())
    full.itemcount = 1
    full.store(None)
    assert watched.sealed == []
    watched.watch.close()
    assert watched.sealed == [1]


def test_what_is_stored_already_is_not_waited_for() -> None:
    watched = Watched(slot := Slot())
    feeds = watched.watch.open_feeds()
    slot.store(None)
    watched.watch.hold(1, feeds)
    assert watched.sealed == [1]


def test_a_storage_is_asked_once_however_many_items_come() -> None:
    asked = []
    watched = Watched(slot := Slot(answer=lambda: asked.append(1)))
    watched.export(*range(50))
    slot.store(None)
    assert asked == [1]
    assert watched.sealed == list(range(50))


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
