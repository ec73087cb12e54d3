"""Fields and response to a page: what an item brings comes first, and a response speaks only for its own URL."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.response import PageResponse
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

URL = "https://a.example/ferry"
HTML = (
    "<html><head><title>The ferry sails again</title><meta name=keywords content='ferry, harbour'>"
    "<meta name=description content='After ten years.'><link rel=canonical href='https://b.example/original'></head>"
    "<body><p>The body of the page.</p></body></html>"
)


def source(**fields: str) -> PageSource:
    return PageSource({**DEFAULT_FIELDS, **fields}, 100_000, lambda html, url: f"extracted from {url}")


def served(url: str = URL, html: str = HTML, **more: Any) -> PageResponse:
    return PageResponse(url, html.encode(), content_type="text/html; charset=utf-8", **more)


def test_without_fields_everything_is_taken_from_the_response() -> None:
    page = source().page({}, served(), URL)
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
def test_what_an_item_brings_comes_first(item: dict[str, Any], expected: dict[str, Any]) -> None:
    page = source().page(item, served(), URL)
    assert {name: getattr(page, name) for name in expected} == expected


def test_fields_have_the_names_that_they_are_given() -> None:
    own = source(text="body", url="link")
    assert own.page({"body": "Own."}, None, URL).text == "Own."


def test_an_item_with_a_text_of_its_own_is_marked_by_all_that_it_holds_unless_its_text_is_its_name() -> None:
    item = {"text": "Own text.", "author": "A"}
    marks = [source().page(one, None, URL).html for one in (item, dict(item), {**item, "author": "B"})]
    assert marks[0] == marks[1] != marks[2]
    assert source().page(item, served(), URL).html == marks[0] != source().page({}, served(), URL).html
    assert source().page(item, None, source().fields.content_name(item)).html == 0


@pytest.mark.parametrize(
    ("response", "url", "said"),
    [
        (served(), "https://other.example/", "other_page"),
        (served(status=404), URL, "http_error"),
        (served(html="%PDF-1.7"), URL, "not_html"),
        (PageResponse(URL, b"{}", content_type="application/json"), URL, "not_html"),
        (served(html="x" * 400_001), URL, "too_large"),
        (None, URL, "no_content"),
    ],
)
def test_what_no_page_can_be_made_of_is_named(response: PageResponse | None, url: str, said: str) -> None:
    with pytest.raises(ExtractionError) as told:
        source().page({}, response, url)
    assert told.value.reason == said


@pytest.mark.parametrize(
    "url", [f"{URL}#top", "http://a.example/ferry/", "http://first.example/", "https://b.example/original"]
)
def test_a_response_speaks_for_its_aliases_and_for_what_its_html_names(url: str) -> None:
    assert (
        source().page({}, served(aliases=frozenset(("https://first.example/",))), url).title == "The ferry sails again"
    )


@pytest.mark.parametrize(
    ("response", "url"),
    [
        (served(), "https://other.example/"),
        (served(), f"{URL}#2"),
        (served(is_text=False), URL),
        (served(status=500), URL),
        (PageResponse(URL, b"{}", content_type="application/json"), URL),
        (None, URL),
    ],
    ids=["another page", "one of several", "binary", "an error", "an API", "no response"],
)
def test_a_text_of_its_own_is_judged_though_the_response_says_nothing_of_it(
    response: PageResponse | None, url: str
) -> None:
    page = source().page({"text": "Own text."}, response, url)
    assert (page.url, page.text, page.title) == (url, "Own text.", "")


BODY = "After ten years the ferry sails again, and the whole harbour came to see it off."


@pytest.mark.parametrize(
    ("item", "cure"),
    [
        ({"url": URL, "body": BODY}, "NEARDUP_FIELDS = {'text': 'body'}"),
        ({"url": URL, "teaser": "Short.", "content": [BODY, BODY]}, "NEARDUP_FIELDS = {'text': 'content'}"),
        ({"url": URL, "description": BODY * 3}, "name that field, for example NEARDUP_FIELDS"),
        ({"url": URL, "views": 7}, "name that field, for example NEARDUP_FIELDS"),
        ({}, "name that field, for example NEARDUP_FIELDS"),
    ],
    ids=["a field", "the longest field", "a field that is read already", "no text", "no item"],
)
@pytest.mark.parametrize("reason", ["not_html", "other_page"])
def test_an_item_of_which_the_response_is_not_the_page_is_told_what_to_name_or_to_hand_over(
    item: dict[str, Any], cure: str, reason: str
) -> None:
    answer = (
        PageResponse("https://a.example/api", b"{}", content_type="application/json")
        if reason == "not_html"
        else served()
    )
    with pytest.raises(ExtractionError) as raised:
        source().page(item, answer, URL if reason == "not_html" else "https://a.example/other")
    assert raised.value.reason == reason
    assert cure in str(raised.value)
    assert "meta={'neardup_response': response}" in str(raised.value)
