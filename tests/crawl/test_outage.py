"""A state that fails, and an item that takes no tag: said once, with what follows."""

from __future__ import annotations

import logging

import pytest
import scrapy

from scrapy_neardup.crawl.notes import Notes
from scrapy_neardup.crawl.tagging import Tagger
from scrapy_neardup.errors import StoreError
from scrapy_neardup.model import Kind, Verdict
from tests.crawl.parts import notes, outage

ERROR = StoreError("The disk is full.")
VERDICT = Verdict(Kind.UNIQUE, "http://a.example/", 1)


class Untaggable(scrapy.Item):
    url = scrapy.Field()


def test_the_first_failure_is_told_and_closes_the_crawl(caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []
    told = notes()
    failed = outage(told, closed)
    assert not failed.happened
    failed.report(ERROR)
    failed.report(ERROR)
    assert failed.happened
    assert closed == ["neardup_store_failed"]
    assert caplog.text.count("The disk is full. From here on no page is judged and every item passes.") == 1
    assert "would go on" in caplog.text
    assert told.stats.get_value("neardup/errors") == 2


def test_a_crawl_that_is_to_go_on_is_not_closed(caplog: pytest.LogCaptureFixture) -> None:
    failed = outage(notes())
    failed.report(ERROR)
    assert failed.happened
    assert "goes on, as NEARDUP_ON_STORE_ERROR is 'pass'" in caplog.text


def test_a_tag_goes_into_its_field() -> None:
    item: dict[str, object] = {}
    Tagger("verdict", notes(), None).tag(item, VERDICT)
    assert item == {"verdict": VERDICT.as_tag()}


@pytest.mark.parametrize(("closes", "level"), [(True, logging.ERROR), (False, logging.WARNING)])
def test_an_item_without_the_field_is_told_of_once_with_the_cure(
    closes: bool, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[str] = []
    tagger = Tagger("neardup", notes(), closed.append if closes else None)
    for _ in range(2):
        tagger.tag(Untaggable(url="http://a.example/"), VERDICT)
    (record,) = caplog.records
    assert record.levelno == level
    assert "neardup = scrapy.Field()" in record.message
    assert closed == (["neardup_no_tag_field"] if closes else [])


def test_each_kind_of_trouble_is_told_once_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    told: Notes = notes()
    for reason in ("no_text", "no_text", "too_short"):
        told.warn_once(reason, "%s passes.", reason)
        told.count(f"neardup/unjudged/{reason}")
    assert [record.message for record in caplog.records] == [
        "no_text passes. (Further cases of 'no_text' are only counted.)",
        "too_short passes. (Further cases of 'too_short' are only counted.)",
    ]
    assert told.stats.get_value("neardup/unjudged/no_text") == 2
