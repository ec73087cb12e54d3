"""Pages from items and responses: fields come first, and a response fills only the page of its own URL."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.extraction import HtmlReader, PageContent
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

URL = "https://a.example/ferry"
OTHER = "https://other.example/"
HTML = (
    "<html><head><title>The ferry sails again</title><meta name=keywords content='ferry, harbour'>"
    "<meta name=description content='After ten years.'><link rel=canonical href='https://b.example/original'></head>"
    "<body><p>The body of the page.</p></body></html>"
)
API = PageResponse(URL, b"{}", content_type="application/json")


def source(**fields: str) -> PageSource:
    return PageSource(
        {**DEFAULT_FIELDS, **fields}, HtmlReader(100_000, extractor=lambda html, url: f"extracted from {url}")
    )


def response(url: str = URL, html: str = HTML, **more: Any) -> PageResponse:
    return PageResponse(url, html.encode(), content_type="text/html; charset=utf-8", **more)


def test_content_of_an_uncertain_url_must_name_that_url() -> None:
    for canonical in [f"{URL}/", "https://a.example/other", ""]:
        html = f"<head><link rel=canonical href='{canonical}'></head>"
        assert PageContent(URL, html).html() == html, canonical
        if canonical.startswith(URL):
            assert PageContent(URL, html, is_of_url=False).html() == html, canonical
        else:
            with pytest.raises(ExtractionError) as raised:
                PageContent(URL, html, is_of_url=False).html()
            assert raised.value.reason == "other_page", canonical


def test_without_fields_everything_is_from_the_response() -> None:
    page = source().page({}, response(), URL)
    assert (page.url, page.title, page.keywords) == (URL, "The ferry sails again", ("ferry", "harbour"))
    assert (page.description, page.text) == ("After ten years.", f"extracted from {URL}")
    assert (page.canonical, page.site) == ("https://b.example/original", "a.example")
    assert page.html


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"title": " Own title "}, {"title": "Own title"}),
        ({"title": ["Own", "title"]}, {"title": "Own\ntitle"}),
        ({"title": ""}, {"title": "The ferry sails again"}),
        ({"title": 7}, {"title": "The ferry sails again"}),
        ({"keywords": "one，two"}, {"keywords": ("one", "two")}),
        ({"keywords": ["one", 2, "three"]}, {"keywords": ("one", "three")}),
        ({"keywords": None}, {"keywords": ("ferry", "harbour")}),
        ({"description": "Own."}, {"description": "Own."}),
        ({"text": "Own text."}, {"text": "Own text.", "title": "The ferry sails again"}),
        ({"text": ["One.", "Two."]}, {"text": "One.\nTwo.", "canonical": "https://b.example/original"}),
        ({"text": "  "}, {"text": f"extracted from {URL}"}),
        ({"text": "Own.", "html": "<title>Of its HTML</title>"}, {"text": "Own.", "title": "Of its HTML"}),
        ({"html": "<title>Own</title>"}, {"title": "Own", "canonical": ""}),
        ({"html": b"\xff\xfe<\0p\0>\0"}, {"title": ""}),
    ],
)
def test_fields_of_an_item_come_first(item: dict[str, Any], expected: dict[str, Any]) -> None:
    page = source().page(item, response(), URL)
    assert {name: getattr(page, name) for name in expected} == expected


def test_an_item_with_text_has_the_hash_of_all_fields_unless_its_text_is_its_name() -> None:
    item = {"text": "Own text.", "author": "A"}
    hashes = [source().page(one, None, URL).html for one in (item, dict(item), {**item, "author": "B"})]
    assert hashes[0] == hashes[1] != hashes[2]
    assert source().page(item, response(), URL).html == hashes[0] != source().page({}, response(), URL).html
    assert source().page(item, None, source().fields.content_name(item)).html == 0


def test_an_item_without_a_page_has_a_reason() -> None:
    for answer, url, reason in [
        (response(), OTHER, "other_page"),
        (response(status=400), URL, "http_error"),
        (response(html="%PDF-1.7"), URL, "not_html"),
        (API, URL, "not_html"),
        (response(is_text=False), URL, "not_html"),
        (response(html="x" * 400_001), URL, "too_large"),
        (None, URL, "no_content"),
    ]:
        with pytest.raises(ExtractionError) as raised:
            source().page({}, answer, url)
        assert raised.value.reason == reason
        assert ("the response is binary, not HTML" in str(raised.value)) == (answer is not None and not answer.is_text)


def test_a_response_is_also_the_page_of_its_aliases_and_of_its_canonical_url() -> None:
    for url in [f"{URL}#top", "http://a.example/ferry/", "http://first.example/", "https://b.example/original"]:
        answer = response(aliases=frozenset(("https://first.example/",)))
        assert source().page({}, answer, url).title == "The ferry sails again"


def test_an_item_with_text_needs_no_response() -> None:
    for answer, url in [
        (response(), OTHER),
        (response(), f"{URL}#2"),
        (response(is_text=False), URL),
        (response(status=500), URL),
        (API, URL),
        (None, URL),
    ]:
        page = source().page({"text": "Own text."}, answer, url)
        assert (page.url, page.text, page.title) == (url, "Own text.", "")


@pytest.mark.parametrize(("answer", "url", "reason"), [(API, URL, "not_html"), (response(), OTHER, "other_page")])
def test_the_error_names_settings(answer: PageResponse, url: str, reason: str) -> None:
    with pytest.raises(ExtractionError, match=r"NEARDUP_FIELDS = .*field named html.*'neardup': False") as raised:
        source().page({"url": URL, "views": 7}, answer, url)
    assert raised.value.reason == reason
    assert ("is not that of its response" in str(raised.value)) == (reason == "other_page")
