"""A state that fails, and an item that takes no tag: said once, with what follows."""

from __future__ import annotations

import csv
import logging
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.crawler import Crawler
from scrapy.settings import Settings

from scrapy_neardup.crawl import session
from scrapy_neardup.crawl.middleware import NearDupSpiderMiddleware
from scrapy_neardup.crawl.pipeline import Addon, NearDupPipeline, TaggedCsvExporter, Tagger
from scrapy_neardup.crawl.turns import AsyncPageReader
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.kv.lock import is_held
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.state import opening
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.urls import STORES
from tests.crawl.engineless import article, crawl
from tests.crawl.parts import notes

ERROR = StoreError("The disk is full.")
FAILURES = [ValueError("no"), StoreError("no"), FileNotFoundError("no")]
VERDICT = Verdict(Kind.UNIQUE, "http://a.example/", 1)


class Untaggable(scrapy.Item):
    url = scrapy.Field()


class Tagged(scrapy.Item):
    url = scrapy.Field(serializer=str.upper)
    neardup = scrapy.Field()


def csv_of(items: list[object], **options: object) -> list[dict[str, str]]:
    file = BytesIO()
    exporter = TaggedCsvExporter.from_crawler(Crawler(scrapy.Spider, {}), file, **options)
    for item in items:
        exporter.export_item(item)
    exporter.finish_exporting()
    return list(csv.DictReader(file.getvalue().decode().splitlines()))


def test_a_tag_in_csv_has_a_column_for_each_of_its_parts() -> None:
    tag = VERDICT.as_tag()
    columns = ["url", *(f"neardup.{part}" for part in tag)]
    tagged, bare = csv_of([Tagged(url="a", neardup=tag), Tagged(url="b")])
    assert list(tagged) == list(bare) == columns
    assert (tagged["url"], tagged["neardup.verdict"], tagged["neardup.shared"]) == ("A", "unique", "[]")
    assert [bare[name] for name in columns] == ["B", *[""] * len(tag)]
    assert csv_of([{"url": "a", "tags": ["x", "y"]}]) == [{"url": "a", "tags": "x,y"}]
    named = csv_of([{"url": "a"}, {"url": "b", "neardup": tag}], fields_to_export=["neardup", "url"])
    assert [(row["url"], row["neardup.verdict"]) for row in named] == [("a", ""), ("b", "unique")]
    [renamed] = csv_of([{"url": "b", "neardup": tag}], fields_to_export={"url": "URL", "neardup": "tag"})
    assert (renamed["URL"], renamed["tag.verdict"], len(renamed)) == ("b", "unique", 1 + len(tag))


def test_the_add_on_adds_its_components_and_writes_csv_unless_the_project_has_an_exporter_of_its_own() -> None:
    settings = Settings()
    Addon().update_settings(settings)
    assert dict(settings["ITEM_PIPELINES"])[NearDupPipeline] == 300
    assert dict(settings["SPIDER_MIDDLEWARES"])[NearDupSpiderMiddleware] == -1_000_000
    assert settings.getwithbase("FEED_EXPORTERS")["csv"] is TaggedCsvExporter
    own = Settings({"FEED_EXPORTERS": {"csv": "shop.Exporter"}})
    Addon().update_settings(own)
    assert own.getwithbase("FEED_EXPORTERS")["csv"] == "shop.Exporter"


@pytest.mark.parametrize(("closes", "level"), [(True, logging.ERROR), (False, logging.WARNING)])
def test_an_item_without_the_field_has_one_cure(closes: bool, level: int, caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []
    tagger = Tagger("neardup", notes(), closed.append if closes else None)
    for _ in range(2):
        tagger.tag(Untaggable(url="http://a.example/"), VERDICT)
    (record,) = caplog.records
    assert record.levelno == level
    assert "neardup = scrapy.Field()" in record.message
    assert closed == (["neardup_no_tag_field"] if closes else [])


# A crawl that does not begin, or does not end as it should: the state is closed all the same.


def fail_with(error: BaseException) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def crawled(place: Path) -> dict[str, Any]:
    return crawl([article(1), article(2)], NEARDUP_STORE=f"sqlite://{place}")


def is_let_go(place: Path) -> bool:
    """Whether nobody holds the state any more, in this process or by its lock."""
    return (str(place), False) not in opening._open_stores and not is_held(Path(f"{place}.lock"))


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("SiteWatch", KeyboardInterrupt()),
        *zip(("log_opening", "make_page_reader", "Judge"), FAILURES, strict=True),
        ("Ledger", StoreError("no")),
    ],
)
def test_a_crawl_that_fails_behind_the_opening_lets_go_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    place = tmp_path / "state"
    with monkeypatch.context() as patched:
        patched.setattr(session, step, fail_with(error))
        with pytest.raises(type(error)):
            crawled(place)
    assert is_let_go(place)
    assert crawled(place)["neardup/unique"] == 2


@pytest.mark.parametrize(
    ("where", "step", "error"),
    [
        (Detector, "trim", FAILURES[0]),
        (Detector, "end", FAILURES[1]),
        (STORES["sqlite"], "size", FAILURES[2]),
        (AsyncPageReader, "close", FAILURES[0]),
        (session, "log_unsealed", FAILURES[1]),
        (session.Session, "_remember_counts", FAILURES[2]),
    ],
)
def test_a_crawl_ends_in_all_other_steps_where_one_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    where: Any,
    step: str,
    error: Exception,
) -> None:
    place = tmp_path / "state"
    caplog.set_level(logging.INFO)
    with monkeypatch.context() as patched:
        patched.setattr(where, step, fail_with(error))
        if step == "log_unsealed":
            patched.setattr(Detector, "end", lambda _: 2)
        stats = crawled(place)
    assert is_let_go(place)
    closing = [record for record in caplog.records if record.levelno == logging.INFO and "2 unique" in record.message]
    assert len(closing) == 1
    assert stats["neardup/errors"] == 1
    assert stats["neardup/time/store"] >= 0
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1
    store = open_store(f"sqlite://{place}", None)
    assert store.pages == 2
    opening.close_store(store)
