"""From the end of items to a page that counts for good: what is committed, sealed or rolled back, without a crawl."""

from __future__ import annotations

import asyncio
import errno
import gzip
import lzma
import os
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter, FeedSlot, FileFeedStorage, S3FeedStorage
from twisted.internet.defer import Deferred

from scrapy_neardup.crawl.delivery import Delivery, End, _may_be_cut, _overwrites, name_of
from scrapy_neardup.crawl.visits import JudgedPage, Visit
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.in_flight import Reservation
from scrapy_neardup.maintenance.tables import Crawl
from scrapy_neardup.model import Fingerprint, Outcome, Verdict
from scrapy_neardup.page.source import PageResponse
from scrapy_neardup.state.record import Record
from tests.crawl.parts import Exporter, Log, Patch, Slot, notes, store

SPIDER = Spider("any")
URL = "http://a.example/"
ENDS: dict[str, End] = {"s": "scraped", "d": "dropped", "f": "failed"}


def judged_page(id: int = 7) -> JudgedPage:
    record = Record(id, URL, id)
    verdict = Verdict(Outcome.UNIQUE, record.url, id)
    return JudgedPage(verdict, Reservation(record, Fingerprint((), b"")))


class Desk:
    """A delivery with its feeds, and a detector that notes what it is told."""

    def __init__(self, *slots: Slot, batch: int = 0) -> None:
        self.detector: Any = Mock()
        self.exporter, self.notes = Exporter(list(slots), batch), notes()
        self.delivery = Delivery(self.detector, self.notes, self.exporter.as_scrapys())
        self.page = judged_page()

    @property
    def sealed(self) -> list[int]:
        return [id for call in self.detector.seal.call_args_list for id in call.args[0]]

    @property
    def entries(self) -> list[Any]:
        """The calls of the detector; a commit with whether it seals the page."""
        return [(name, named["sealed"]) if named else name for name, _, named in self.detector.mock_calls]

    def play(self, events: str, page: JudgedPage | None = None) -> None:
        """``e``: an item enters the pipelines; it ends scraped, dropped, failed."""
        page = page or self.page
        for event in events:
            if event == "e":
                page.in_pipelines += 1
            else:
                feeds, _ = self.delivery.export(page.verdict.id, SPIDER) if event == "s" else (frozenset(), False)
                self.delivery.note_end(page, ENDS[event], feeds)

    def deliver(self, *ids: int) -> None:
        """Items of these pages come through, and go into whatever feeds are open."""
        for id in ids:
            self.play("es", judged_page(id))


KEPT = ("commit", True)


@pytest.mark.parametrize(
    ("all_events", "expected"),
    [
        ("ees eedes", []),
        ("es eesd eeds eess eses esed", [KEPT]),
        ("ed ef eedd eesf eefs edes", ["release"]),
        ("esef esefes", [KEPT, "roll_back"]),
    ],
)
def test_a_page_counts_once_no_item_is_in_the_pipelines_if_one_came_through_and_none_failed(
    all_events: str, expected: list[Any]
) -> None:
    for events in all_events.split():
        desk = Desk()
        desk.play(events)
        assert desk.entries == expected, events
        assert desk.notes.stats.get_value("neardup/rolled_back", 0) == sum(step is not KEPT for step in expected)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("feeds", [0, 1])
def test_a_page_that_items_share_is_sealed_when_the_last_has_ended_unless_the_callback_failed(
    feeds: int, fails: bool, caplog: Log
) -> None:
    desk = Desk(*(slots := [Slot() for _ in range(feeds)]))
    desk.page.visit = visit = Visit(PageResponse(URL, b""), is_complete=False, pages={URL: desk.page})
    for _ in range(2):
        visit.announced += 1
        desk.play("es")
        if not fails:  # a batch for each item
            for slot in slots:
                store(slot)
            desk.exporter.slots = slots = [Slot() for _ in range(feeds)]
        visit.end_item()
        assert desk.entries == [("commit", False)], "another item may come"
    visit.announced += not fails
    visit.is_failed = fails
    visit.complete()
    if not fails:
        assert desk.entries == [("commit", False)], "the last one has not ended"
        desk.play("ed")
        visit.end_item()
    for slot in slots if fails else ():
        store(slot)
    assert desk.entries[1:] == ["roll_back" if fails else "seal"]
    assert visit.pages == {}, "the response leaves memory at once"
    assert caplog.text.count(f"the items of {URL} again") == fails


@pytest.mark.parametrize("events", ["es", "ef", "esed", "esef", "efes"])
def test_a_warning_names_a_response_whose_items_come_twice(events: str, caplog: Log) -> None:
    (desk := Desk()).page.visit = visit = Visit(PageResponse(URL, b""), announced=len(events) // 2)
    visit.pages[URL] = desk.page
    for start in range(0, len(events), 2):
        desk.play(events[start : start + 2])
        visit.end_item()
    assert (f"the items of {URL} again" in caplog.text) == ("s" in events and "f" in events)


@pytest.mark.parametrize("events", ["es", "ed", "esef"])
def test_a_state_that_fails_is_reported_and_nothing_is_raised(events: str) -> None:
    desk = Desk()
    desk.play(events[:-1])
    for step in ("commit", "release", "roll_back"):
        getattr(desk.detector, step).side_effect = StoreError("The disk is full.")
    desk.play(events[-1])
    assert desk.notes.state_failed
    assert desk.notes.stats.get_value("neardup/errors") == 1


def test_nothing_is_sealed_in_a_state_that_has_failed_or_is_closed() -> None:
    for is_closed in (False, True):
        desk = Desk(slot := Slot())
        desk.deliver(1)
        desk.delivery.close() if is_closed else desk.notes.report(StoreError("The disk is full."))
        store(slot)
        assert desk.entries == [("commit", False)]


# Feeds


@pytest.mark.parametrize("fails", [False, True])
async def test_a_storage_that_takes_its_time_seals_when_it_is_done(fails: bool) -> None:
    waiting: Deferred[None] = Deferred()
    desk = Desk(slot := Slot(answer=lambda: waiting))
    desk.deliver(1)
    storing = asyncio.create_task(slot.store(None))
    await asyncio.sleep(0)
    assert desk.sealed == []
    waiting.errback(OSError("no room")) if fails else waiting.callback(None)
    with pytest.raises(OSError, match="no room") if fails else nullcontext():
        await storing
    assert desk.sealed == ([] if fails else [1])


@pytest.mark.parametrize(
    ("error", "order", "sealed"),
    [
        (0, ["disk", "storage"], [1]),
        (errno.EINVAL, ["disk", "storage"], [1]),
        (errno.ENOSPC, ["disk"], []),
        (errno.EIO, ["disk"], []),
        (None, ["storage"], [1]),
    ],
)
def test_a_feed_is_on_the_disk_before_its_storage_has_it(
    tmp_path: Path, error: int | None, order: list[str], sealed: list[int], monkeypatch: Patch
) -> None:
    """``error``: of the disk; None for a file that is on none."""
    steps = []

    def sync(number: int) -> None:
        steps.append("disk")
        if error:
            raise OSError(error, "no sync")

    monkeypatch.setattr("os.fsync", sync)
    desk = Desk(slot := Slot(answer=lambda: steps.append("storage")))
    desk.deliver(1)
    with (tmp_path / "feed").open("wb") as file, pytest.raises(OSError) if not sealed else nullcontext():  # noqa: PT011
        store(slot, object() if error is None else file)
    assert (steps, desk.sealed) == (order, sealed)


def test_a_batch_may_be_stored_while_its_last_item_is_written() -> None:
    desk = Desk(slot := Slot(), batch=2)
    desk.deliver(1)
    last = judged_page(2)
    last.in_pipelines += 1
    feeds, _ = desk.delivery.export(2, SPIDER)
    assert desk.exporter.full == [slot]
    store(slot)
    assert desk.sealed == [1]
    desk.delivery.note_end(last, "scraped", feeds)
    assert desk.sealed == [1, 2]


LINE, CSV = b'{"c": 2}\n', {"format": "csv"}
GZIP, XZ = ({"postprocessing": [f"scrapy.extensions.postprocessing.{name}Plugin"]} for name in ("Gzip", "LZMA"))
PLUGIN: list[Any] = [lambda file, options: file]
RAW: dict[str, Any] = {"lzma_format": lzma.FORMAT_RAW, "lzma_filters": [{"id": lzma.FILTER_LZMA2}]}
PACKED, PACKED_LINE = (gzip.compress(one, mtime=0) for one in (b'{"a": 1}\n', LINE))


@pytest.mark.parametrize(
    ("options", "before", "after", "aside"),
    [
        ({}, b'{"a": 1}\n{"b": "ha', b'{"a": 1}\n{"b": "ha\n' + LINE, False),
        ({}, b'{"a": 1}\n', b'{"a": 1}\n' + LINE, False),
        ({}, b"", LINE, False),
        ({}, None, LINE, False),
        ({"overwrite": True}, b'{"b": "ha', LINE, False),
        ({"encoding": "utf-16-le"}, b"1\0\n\0", b"1\0\n\0" + LINE.decode().encode("utf-16-le"), False),
        (CSV, b"c\r\n1\r\n", b"c\r\n1\r\nc\r\n2\r\n", False),
        (CSV, b'c\r\n"ha', b"c\r\n2\r\n", True),
        (CSV, b'c\r\n"half of an article\n', b"c\r\n2\r\n", True),
        ({**CSV, "item_export_kwargs": {"quotechar": "'"}}, b'c\n"\n', b'c\n"\nc\r\n2\r\n', False),
        (GZIP, PACKED, PACKED + PACKED_LINE, False),
        ({"postprocessing": [*PLUGIN, *GZIP["postprocessing"]]}, PACKED[:-9], PACKED_LINE, True),
        (XZ, b"", lzma.compress(LINE), False),
        ({**XZ, **RAW}, b"\0", b"\0" + lzma.compress(LINE, lzma.FORMAT_RAW, filters=RAW["lzma_filters"]), False),
        ({"postprocessing": PLUGIN}, b"\0", b"\0" + LINE, False),
    ],
)
async def test_what_is_appended_to_a_feed_that_breaks_off_can_be_read(
    tmp_path: Path, options: dict[str, Any], before: bytes | None, after: bytes, aside: bool
) -> None:
    """Also behind a link, which stays, and under a name without suffix."""
    path, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(path)
    if before is not None:
        path.write_bytes(before)
    options = {"format": "jsonlines", "gzip_mtime": 0, **options}
    exporter = FeedExporter.from_crawler(Crawler(Spider, {"FEEDS": {f"file://{link}": options}}))
    exporter.open_spider(SPIDER)
    delivery = Delivery(cast(Any, Mock()), notes(), exporter, past=[Crawl(0, "killed")])
    delivery.export({"c": 2}, SPIDER)
    [slot] = exporter.slots
    slot.finish_exporting()
    await cast(Any, slot.storage.store(exporter._get_file(slot)))
    read = gzip.decompress if "Gzip" in str(options) else bytes
    assert (read(path.read_bytes()), link.is_symlink()) == (read(after), True)
    assert [one.read_bytes() for one in tmp_path.glob("*.broken-1")] == ([before] if aside else [])


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ("", ""),
        ("10-20 30-40", ""),
        ("10-20 30-", "5 15 25 35 99"),
        ("10-20 30-40!", "5 15 25 35 99"),
        ("10- 30-40", "5 15 25 99"),
        ("10- 16-40", "5 15 99"),
        ("10- 14-40", "5 15 99"),
        ("10-20 21- 30-40", "5 25 99"),
    ],
)
def test_a_file_may_be_cut_unless_the_last_crawl_that_wrote_it_ended_well(
    tmp_path: Path, past: str, expected: str
) -> None:
    """Crawls with their begin and end in seconds; ``!``: a feed was not stored. The file was written at these times.

    Times of files are rounded. A file that seems older than the last crawl may be its own, if the clock jumped.
    """
    parts = [one.rstrip("!").split("-") for one in past.split()]
    crawls = [
        Crawl(int(begin) * 10**9, "any", int(end or 0), {"unsealed": 1} if f"{begin}-{end}!" in past else {})
        for begin, end in parts
    ]
    (path := tmp_path / "out").touch()
    found = []
    for written in (5, 15, 25, 35, 99):
        os.utime(path, (written, written))
        found += [str(written)] if _may_be_cut(path, crawls) else []
    assert found == expected.split()


FILE, S3 = FileFeedStorage, S3FeedStorage


@pytest.mark.parametrize(
    ("storage", "overwrite", "name", "content", "expected"),
    [
        (FILE, True, "out", "earlier", True),
        (FILE, True, "out-%(batch_id)d", "earlier", True),
        (FILE, True, "out-%(time)s", "earlier", False),
        (FILE, True, "out", "", False),
        (FILE, True, "out", None, False),
        (FILE, False, "out", "earlier", False),
        (FILE, None, "out", "earlier", False),
        (S3, False, "out", None, True),
        (SimpleNamespace, None, "out", None, True),
        (SimpleNamespace, False, "out", None, False),
    ],
)
def test_some_feeds_are_overwritten_by_default(
    tmp_path: Path, storage: type, overwrite: bool | None, name: str, content: str | None, expected: bool
) -> None:
    made: Any = storage.__new__(storage)  # type: ignore[call-overload]  # storages take a URI, which does not matter here
    made.path = str(tmp_path / "out")
    options = {} if overwrite is None else {"overwrite": overwrite}
    if content is not None:
        (tmp_path / "out").write_text(content)
    slot = cast(FeedSlot, SimpleNamespace(storage=made, uri_template=name, feed_options=options))
    assert _overwrites(slot) is expected


def test_feeds_are_known_by_names_without_passwords() -> None:
    for uri, name in {
        "s3://key:secret@bucket/out.jsonl": "s3://bucket/out.jsonl",
        "ftp://user@host:21/out.jsonl": "ftp://host:21/out.jsonl",
        "stdout:": "stdout:",
        "file:///x/../out.jsonl": "/out.jsonl",
        "/out.jsonl": "/out.jsonl",
    }.items():
        storage = FileFeedStorage(uri) if name == "/out.jsonl" else None
        assert name_of(cast(FeedSlot, SimpleNamespace(uri=uri, storage=storage))) == name
