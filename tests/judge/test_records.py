"""Records: their names, and that none of them costs the others."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.files import Entry
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.records import Batch
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, HtmlReader, PageContent
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import memory_state
from tests.build import make_detector, story

TEXT = "".join(story(1))


def entry(number: int = 1, unit: str = "line", **fields: Any) -> Entry:
    return Entry("feed.jsonl", number, unit, fields)


@pytest.fixture
def detector() -> Detector:
    return make_detector(memory_state({}))


def batch_on(detector: Detector, extractor: Extractor | None = lambda html, url: TEXT, **fields: str) -> Batch:
    names = {**DEFAULT_FIELDS, **fields}
    source = PageSource(names, HtmlReader(100_000, extractor=extractor), bodies=detector.bodies, hashes_items=False)
    return Batch(detector, lambda page: detector.judge_now(page, sealed=False), source, "id")


def headlines(batch: Batch, *records: Entry) -> list[str]:
    return [batch.judge(one).verdict.headline for one in records]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (entry(id="a17", url="http://a.example/"), "a17"),
        (entry(id=17), "17"),
        (entry(id=True, url=" http://a.example/ "), "http://a.example/"),
        (entry(url="http://a.example/", headline="Ferry"), "http://a.example/#ferry"),
        (entry(id=" ", url=""), "feed.jsonl#1"),
        (entry(7, headline="F"), "feed.jsonl#7"),
        (entry(unit=""), "feed.jsonl"),
    ],
)
def test_a_record_is_known_by_its_id_else_its_url_and_part_else_its_place(
    detector: Detector, record: Entry, name: str
) -> None:
    assert batch_on(detector, part="headline").judge(record).verdict.url == name


def test_each_record_counts_at_once_and_is_permanent_once_it_is_sealed(detector: Detector) -> None:
    copies = [entry(n, id=str(n), text=TEXT + f"第{n}次转载。") for n in range(3)]
    versions = [entry(id="0", text=text) for text in (copies[0].fields["text"], "".join(story(2)), "短", "短")]
    expected = ["unique", *["duplicate (near)"] * 2, "unchanged", "updated", *["unjudged (too_short)"] * 2]
    assert headlines(batch_on(detector), *copies, *versions) == expected
    assert detector.end() == 2
    detector.seal()
    assert detector.end() == 0


def test_a_record_with_an_id_has_the_article_number_of_its_url() -> None:
    text = (
        "The court decided on the appeal of the former harbour master in the old mint. It found him {}, the clerk says."
    )
    hose = "Garden hose with spray gun for the balcony, colour {0}, of recycled rubber with a brass tap, on a drum."
    site, linked = "http://a.example/", "<title>Hose {0}</title><link rel=canonical href=/hose-4993434.html><p>" + hose
    first = entry(
        id="1", url=f"{site}master-4993434.html", title="Harbour master before court", text=text.format("guilty")
    )
    for url, said, kind in [
        ("court-4993434.html", "guilty at last", "duplicate (retitled)"),
        ("court-4993435.html", "not guilty", "unique"),
        ("sport/court-4993434.html", "not guilty", "unique"),
        ("court-4993434.html?page=2", "not guilty", "unique"),
        ("court-4993434.html", "guilty of 17 thefts", "unique"),
    ]:
        moved = entry(id="2", url=site + url, title="Court decides on the harbour", text=text.format(said))
        assert headlines(batch_on(make_detector(memory_state({}))), first, moved) == ["unique", kind], (url, said)
    # Variants of a product name one page, so a canonical link is not the address of its page.
    variants = [entry(id=str(n), url=f"{site}hose?colour={n}", html=linked.format(n)) for n in ("green", "blue")]
    for fields in (variants, [entry(id=one.fields["id"], html=one.fields["html"]) for one in variants]):
        assert headlines(batch_on(make_detector(memory_state({})), None), *fields) == ["unique", "unique"]


def test_a_short_record_is_unchanged_the_second_time(detector: Detector) -> None:
    assert headlines(batch_on(detector), *[entry(id="s", text="短")] * 2) == ["unjudged (too_short)", "unchanged"]


def test_the_output_has_the_parts_of_a_document_and_a_record_as_it_came(detector: Detector) -> None:
    html = b"<title>The ferry</title><meta name=keywords content=boats><p>text"
    document = Entry("page.html", 1, "", {"path": "page.html"}, html=html)
    parts = {"title": "The ferry", "keywords": ["boats"], "description": "", "text": TEXT}
    assert batch_on(detector).judge(document).fields == {"path": "page.html", **parts}
    judged = batch_on(detector).judge(entry(name="n"))
    assert (judged.verdict.reason, judged.fields) == ("no_content", {"name": "n"})
    html = "<title>Паром</title><p>Первый рейс был пустым, и никто не махал с берега.".encode("koi8-r")
    document = Entry("a.warc", 1, "record", {}, html=html, content_type="text/html; charset=koi8-r")
    assert batch_on(detector, None).judge(document).fields["title"] == "Паром"


def test_a_page_with_known_bytes_needs_no_worker(detector: Detector) -> None:
    record = entry(id="a", html=f"<p>{TEXT}")
    assert isinstance(batch_on(detector, None).coming(record), PageContent)
    batch_on(detector, None).judge(record)
    other = batch_on(detector, None)
    assert other.coming(record) is None
    found = other.judge(record).verdict
    assert (found.headline, found.same_bytes) == ("unchanged", True)


def test_a_known_document_that_passes_is_read_because_the_output_has_its_text() -> None:
    detector = make_detector(memory_state({}), passes=lambda verdict: True)
    document = Entry("page.html", 1, "", {}, html=b"<title>The ferry</title>")
    batch_on(detector).judge(document)
    again = batch_on(detector).judge(document)
    assert (again.verdict.headline, again.fields["text"]) == ("unchanged", TEXT)


def test_an_unforeseen_error_costs_one_record_and_a_failed_state_ends_the_work(
    detector: Detector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    error: Exception = ZeroDivisionError()

    def fail(*_: object, **__: object) -> None:
        raise error

    batch = batch_on(detector)
    with monkeypatch.context() as patched:
        patched.setattr(detector, "judge_now", fail)
        assert headlines(batch, entry(id="a", text=TEXT)) == ["unjudged (method_failed)"]
        assert "feed.jsonl" in caplog.text
    with monkeypatch.context() as patched:
        error = StoreError("The disk is full.")
        patched.setattr(detector.store.kv, "write", fail)
        with pytest.raises(StoreError, match="disk is full"):
            batch.judge(entry(id="a", text=TEXT))
    assert headlines(batch, entry(id="b", text=TEXT)) == ["unique"]


def test_no_record_waits_for_a_crawl_on_the_same_state(detector: Detector) -> None:
    detector.check(Page("a", text=TEXT))
    record = entry(id="a", text=TEXT)
    assert headlines(batch_on(detector), record, record) == ["unjudged (in_flight)", "unchanged"]
