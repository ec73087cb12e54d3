"""A crawl that overwrites a feed warns while the state knows pages, because these will be in no feed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from scrapy.extensions.feedexport import FeedSlot, FileFeedStorage, S3FeedStorage

from scrapy_neardup.crawl.feeds import _overwrites, name_of
from tests.crawl.engineless import article, crawl

NINE = [article(family) for family in range(9)]
WARNING = "This crawl overwrites the feed "


def test_known_pages_are_in_no_feed_any_more_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out.jsonl"
    feed: dict[str, Any] = {
        "NEARDUP_STORE": f"sqlite://{tmp_path}/state",
        "FEEDS": {f"file://{out}": {"format": "jsonlines", "overwrite": True}},
    }
    crawl(NINE[:8], **feed)
    assert WARNING not in caplog.text
    second = crawl(NINE, **feed)
    assert [json.loads(line)["url"] for line in out.read_text("utf-8").splitlines()] == [NINE[8]["url"]]
    assert caplog.text.count(f"{WARNING}{out}. The state knows 8 pages") == 1
    assert second["neardup/overwritten"] == 1
    for silent in ({"NEARDUP_OVERWRITTEN": "known"}, {"NEARDUP_DRY_RUN": True}, {"NEARDUP_STORE": "memory:"}):
        caplog.clear()
        crawl(NINE, **{**feed, **silent})
        assert WARNING not in caplog.text, silent


@pytest.mark.parametrize(
    ("storage", "options", "name", "expected"),
    [
        (FileFeedStorage, {"overwrite": True}, "out", True),
        (FileFeedStorage, {"overwrite": True}, "out-%(batch_id)d", True),
        (FileFeedStorage, {"overwrite": True}, "out-%(time)s", False),
        (FileFeedStorage, {"overwrite": False}, "out", False),
        (FileFeedStorage, {}, "out", False),
        (S3FeedStorage, {"overwrite": False}, "out", True),
        (SimpleNamespace, {}, "out", True),
        (SimpleNamespace, {"overwrite": False}, "out", False),
    ],
)
def test_some_feeds_are_overwritten_by_default(
    tmp_path: Path, storage: type, options: dict[str, Any], name: str, expected: bool
) -> None:
    made: Any = storage.__new__(storage)  # type: ignore[call-overload]  # storages take a URI, which does not matter here
    made.path = str(tmp_path / "out")
    slot = cast(FeedSlot, SimpleNamespace(storage=made, uri_template=name, feed_options=options))
    (tmp_path / "out").write_text("earlier")
    assert _overwrites(slot) is expected
    if storage is FileFeedStorage:
        for fetch in ((tmp_path / "out").write_bytes, lambda _: (tmp_path / "out").unlink()):
            fetch(b"")
            assert not _overwrites(slot), "nothing is left there"


def test_feeds_are_known_by_names_without_passwords() -> None:
    for uri, name in [
        ("s3://key:secret@bucket/out.jsonl", "s3://bucket/out.jsonl"),
        ("ftp://user@host:21/out.jsonl", "ftp://host:21/out.jsonl"),
        ("stdout:", "stdout:"),
    ]:
        assert name_of(cast(FeedSlot, SimpleNamespace(uri=uri, storage=None))) == name
    for uri in ["file:///x/../out.jsonl", "/out.jsonl", "file:///out.jsonl"]:
        assert name_of(cast(FeedSlot, SimpleNamespace(uri=uri, storage=FileFeedStorage(uri)))) == "/out.jsonl"
