"""Records before a detector: by what they are known, and that none of them costs the others."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.files import Entry
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.records import Batch, ImmediateJudge, Judged
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, HtmlReader, PageContent
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from tests.build import story

TEXT = "".join(story(1))


def entry(number: int = 1, unit: str = "line", **fields: Any) -> Entry:
    return Entry("feed.jsonl", number, unit, fields)


@pytest.fixture
def store() -> PageStore:
    return open_store("memory:", {})


@pytest.fixture
def detector(store: PageStore) -> Detector:
    return Detector(make_method("cascade", {}), store, who="test")


def batch_on(detector: Detector, extractor: Extractor | None = lambda html, url: TEXT, **fields: str) -> Batch:
    names = {**DEFAULT_FIELDS, **fields}
    source = PageSource(names, HtmlReader(100_000, extractor=extractor), bodies=detector.bodies, hashes_items=False)
    return Batch(ImmediateJudge(detector), source, "id")


@pytest.fixture
def batch(detector: Detector) -> Batch:
    return batch_on(detector)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (entry(id="a17", url="http://a.example/"), "a17"),
        (entry(id=17), "17"),
        (entry(id=True, url=" http://a.example/ "), "http://a.example/"),
        (entry(id=" ", url=""), "feed.jsonl#1"),
        (entry(7), "feed.jsonl#7"),
        (entry(unit=""), "feed.jsonl"),
    ],
)
def test_a_record_is_known_by_its_id_else_its_url_else_its_place(batch: Batch, record: Entry, name: str) -> None:
    assert batch.judge(record).verdict.url == name


def test_a_record_that_is_known_by_its_url_is_known_by_its_part_too(detector: Detector) -> None:
    batch = batch_on(detector, part="headline")
    records = entry(url="http://a.example/", headline="Ferry"), entry(id="a17", headline="Ferry"), entry(headline="F")
    assert [batch.judge(one).verdict.url for one in records] == ["http://a.example/#ferry", "a17", "feed.jsonl#1"]


def headlines(judged: list[Judged]) -> list[str]:
    return [one.verdict.headline for one in judged]


def test_each_record_counts_before_the_next_is_looked_at(batch: Batch) -> None:
    records = [entry(n, id=str(n), text=TEXT + f"第{n}次转载。") for n in range(3)]
    assert headlines([batch.judge(one) for one in records]) == ["unique", "duplicate (near)", "duplicate (near)"]


def test_the_same_name_again_is_another_version(batch: Batch) -> None:
    texts = [TEXT, TEXT, "".join(story(2))]
    assert headlines([batch.judge(entry(id="a", text=text)) for text in texts]) == ["unique", "unchanged", "updated"]


def test_nothing_is_sealed_before_it_is_asked_for(batch: Batch, detector: Detector) -> None:
    batch.judge(entry(id="a", text=TEXT))
    assert detector.end() == 1
    detector.seal()
    assert detector.end() == 0


def test_what_was_taken_from_a_document_is_written_and_a_record_without_content_unchanged(batch: Batch) -> None:
    html = b"<title>The ferry</title><meta name=keywords content=boats><p>text"
    document = Entry("page.html", 1, "", {"path": "page.html"}, html=html)
    written = batch.judge(document).fields
    assert written == {
        "path": "page.html",
        "title": "The ferry",
        "keywords": ["boats"],
        "description": "",
        "text": TEXT,
    }
    judged = batch.judge(entry(name="n"))
    assert judged.verdict.reason == "no_content"
    assert judged.fields == {"name": "n"}


def test_a_document_is_decoded_by_the_charset_that_its_archive_names(detector: Detector) -> None:
    html = "<title>Паром</title><p>Первый рейс был пустым, и никто не махал с берега.".encode("koi8-r")
    document = Entry("a.warc", 1, "record", {}, html=html, content_type="text/html; charset=koi8-r")
    assert batch_on(detector, None).judge(document).fields["title"] == "Паром"


def test_a_page_that_no_one_foresaw_does_not_cost_the_others(
    batch: Batch, detector: Detector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(page: Page, **_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(detector, "judge_now", fail)
    assert batch.judge(entry(id="a", text=TEXT)).verdict.reason == "method_failed"
    assert "feed.jsonl" in caplog.text
    monkeypatch.undo()
    assert batch.judge(entry(id="b", text=TEXT)).verdict.headline == "unique"


def test_a_page_whose_bytes_were_judged_needs_no_worker(detector: Detector) -> None:
    batch = batch_on(detector, None)
    record = entry(id="a", html=f"<p>{TEXT}")
    assert isinstance(batch.coming(record), PageContent)
    batch.judge(record)
    other = batch_on(detector, None)
    assert other.coming(record) is None
    found = other.judge(record).verdict
    assert (found.headline, found.same_bytes) == ("unchanged", True)


def test_a_state_that_fails_ends_the_work(batch: Batch, detector: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(page: Page, **_: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(detector, "judge_now", fail)
    with pytest.raises(StoreError, match="disk is full"):
        batch.judge(entry(id="a", text=TEXT))


def test_where_a_crawl_is_at_work_on_the_state_nobody_waits_for_its_pages(detector: Detector) -> None:
    page = Page("http://a.example/", text=TEXT)
    detector.check(page)
    verdict = detector.judge_now(page, sealed=True)
    assert verdict.headline == "unjudged (in_flight)"
    assert detector.judge_now(page, sealed=True).headline == "unchanged", "it is known from then on"
