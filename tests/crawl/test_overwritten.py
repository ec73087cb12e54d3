"""A feed that a later crawl overwrites: what was in it is told of, or comes again; nothing goes without a word."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy import Spider
from scrapy.extensions.feedexport import BlockingFeedStorage, FeedSlot, FileFeedStorage

from scrapy_neardup.crawl.feeds import name_of
from scrapy_neardup.maintenance import tables
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from tests.build import article_url
from tests.cli import run
from tests.crawl.engineless import article, crawl

NINE = [article(family) for family in range(9)]
WARNING = "This crawl overwrites the feed "


class BucketStorage(BlockingFeedStorage):
    """Takes what was there away when it has stored the new, as an upload does; fails where there is no folder."""

    def __init__(self, uri: str, *, feed_options: dict[str, Any] | None = None) -> None:
        self.path = Path(uri.partition("://")[2])

    def store(self, file: Any) -> None:  # type: ignore[override]  # without a thread, in which nothing is different
        self._store_in_thread(file)

    def _store_in_thread(self, file: Any) -> None:
        with file:
            file.seek(0)
            self.path.write_bytes(file.read())


class Place:
    """A state, and the crawls that write into one feed beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = f"sqlite://{folder}/state"

    def crawl(self, items: list[dict[str, Any]], name: str = "out.jsonl", **options: Any) -> dict[str, Any]:
        settings = {key: options.pop(key) for key in list(options) if key.isupper()}
        feed = {"format": "jsonlines", "overwrite": True, **options}
        scheme = settings.pop("SCHEME", "file")
        feeds = {f"{scheme}://{self.folder}/{name}": feed} | settings.pop("OTHERS", {})
        return crawl(items, NEARDUP_STORE=self.store, FEEDS=feeds, **settings)

    def delivered(self, name: str = "out*.jsonl") -> list[str]:
        lines = (line for file in sorted(self.folder.glob(name)) for line in file.read_text("utf-8").splitlines())
        return [json.loads(line)["url"] for line in lines]

    def opened(self) -> PageStore:
        return open_store(self.store, None)

    def remembered(self) -> dict[str, tuple[int, int]]:
        """How many pages each feed holds, and held before it was overwritten."""
        store = self.opened()
        try:
            found = list(tables.FEEDS.read(store))
            assert check(store).problems == []
        finally:
            close_store(store)
        return {Path(one.feed).name: (pages(one.held), pages(one.gone)) for one in found}


def pages(spans: list[tables.Span]) -> int:
    return sum(many for _, _, many in spans)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def urls(*families: int) -> list[str]:
    return [article_url(family) for family in families]


def test_what_is_overwritten_is_told_of_and_comes_again_when_it_was_forgotten(
    place: Place, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    place.crawl(NINE[:8])
    assert WARNING not in caplog.text
    second = place.crawl(NINE)
    assert place.delivered() == urls(8)
    assert second["neardup/overwritten"] == 8
    assert (
        caplog.text.count(f"{WARNING}{place.folder}/out.jsonl. The 8 pages that earlier crawls stored there are") == 1
    )
    assert "scrapy neardup forget --overwritten" in caplog.text
    assert place.remembered() == {"out.jsonl": (1, 8)}
    assert run("forget", "--overwritten", "--store", place.store) == 0
    assert place.remembered() == {"out.jsonl": (1, 0)}
    place.crawl(NINE, overwrite=False)
    assert sorted(place.delivered()) == urls(*range(9))


def test_a_crawl_that_delivers_nothing_empties_the_file(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.crawl(NINE)
    place.crawl(NINE)
    assert place.delivered() == []
    assert WARNING in caplog.text
    assert place.remembered() == {"out.jsonl": (0, 9)}


def test_what_was_overwritten_comes_again_by_itself_where_the_setting_says_so(place: Place) -> None:
    for _ in range(3):
        stats = place.crawl(NINE, NEARDUP_OVERWRITTEN="forget")
        assert place.delivered() == urls(*range(9))
        assert place.remembered() == {"out.jsonl": (9, 0)}
    assert (stats["neardup/overwritten"], stats["neardup/unique"]) == (9, 9)


def test_a_feed_that_others_collect_is_overwritten_silently(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    for items in (NINE[:8], NINE):
        place.crawl(items, NEARDUP_OVERWRITTEN="known")
    assert WARNING not in caplog.text
    assert place.delivered() == urls(8)
    assert place.remembered() == {"out.jsonl": (1, 0)}
    assert place.crawl(NINE, NEARDUP_OVERWRITTEN="known")["neardup/unchanged"] == 9, "nothing is forgotten"


@pytest.mark.parametrize("options", [{"overwrite": False}, {}, {"name": "out-%(time)s.jsonl"}], ids=str)
def test_only_overwriting_is_told_of(place: Place, caplog: pytest.LogCaptureFixture, options: dict[str, Any]) -> None:
    if not options:
        place.crawl(NINE[:8])
        (place.folder / "out.jsonl").rename(place.folder / "out fetched.jsonl")
    else:
        place.crawl(NINE[:8], **options)
    place.crawl(NINE, **options)
    assert WARNING not in caplog.text
    if "name" in options:
        assert place.remembered() == {}, "two crawls never write under one name"
    else:
        assert sorted(place.delivered()) == urls(*range(9))
        assert place.remembered() == {"out.jsonl": (9, 0) if options else (1, 0)}, "what was fetched is no loss"


def test_batches_begin_at_one_again_and_are_one_feed(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.crawl(NINE[:6], "out-%(batch_id)d.jsonl", batch_item_count=2)
    assert place.remembered() == {"out-1.jsonl": (6, 0)}
    place.crawl(NINE, "out-%(batch_id)d.jsonl", batch_item_count=2)
    assert f"{WARNING}{place.folder}/out-1.jsonl and its later batches." in caplog.text
    assert place.remembered() == {"out-1.jsonl": (3, 6)}
    place.crawl(NINE, "out-%(batch_id)d.jsonl", batch_item_count=2, NEARDUP_OVERWRITTEN="forget")
    assert run("forget", "--overwritten", "--store", place.store) == 0
    place.crawl(NINE, "again.jsonl")
    assert {*place.delivered(), *place.delivered("again.jsonl")} == {*urls(*range(9))}


def test_an_upload_takes_the_place_of_what_was_there(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    bucket: dict[str, Any] = {"SCHEME": "bucket", "FEED_STORAGES": {"bucket": f"{__name__}.BucketStorage"}}
    place.crawl(NINE[:8], **bucket)
    (place.folder / "out.jsonl").rename(place.folder / "kept")
    (place.folder / "out.jsonl").mkdir()
    assert place.crawl(NINE, **bucket)["neardup/unsealed"] == 1
    (place.folder / "out.jsonl").rmdir()
    (place.folder / "kept").rename(place.folder / "out.jsonl")
    assert place.remembered() == {"out.jsonl": (0, 8)}, "nobody knows what an upload that fails has left"
    assert caplog.text.count(WARNING) == 1
    place.crawl(NINE, **bucket)
    assert place.remembered() == {"out.jsonl": (1, 8)}
    assert place.delivered() == urls(8)


def test_that_the_file_is_emptied_is_written_down_before(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.crawl(NINE[:8])
    seen = []
    open_file = FileFeedStorage.open

    def look_and_open(self: FileFeedStorage, spider: Spider) -> Any:
        [held] = tables.FEEDS.read(store := place.opened())
        close_store(store)
        seen.append((len(place.delivered()), held.held, [span[2] for span in held.gone]))
        return open_file(self, spider)

    monkeypatch.setattr(FileFeedStorage, "open", look_and_open)
    place.crawl(NINE)
    assert seen == [(8, [], [8])]


def test_feeds_are_known_by_names_without_passwords() -> None:
    for uri, name in [
        ("s3://key:secret@bucket/out.jsonl", "s3://bucket/out.jsonl"),
        ("ftp://user@host:21/out.jsonl", "ftp://host:21/out.jsonl"),
        ("stdout:", "stdout:"),
    ]:
        assert name_of(cast(FeedSlot, SimpleNamespace(uri=uri, storage=None))) == name
    for uri in ["file:///x/../out.jsonl", "/out.jsonl", "file:///out.jsonl"]:
        assert name_of(cast(FeedSlot, SimpleNamespace(uri=uri, storage=FileFeedStorage(uri)))) == "/out.jsonl"
