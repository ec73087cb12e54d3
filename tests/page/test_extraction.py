"""HTML to a page: metadata, text, extractors and bodies that are no HTML."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import VERSION, PageContent, analyse, extractor_name, parse_head
from scrapy_neardup.page.limits import MAX_TAGS

URL = "http://river.example/news/7/ferry.html"

MENU = "".join(f'<li><a href="/{n}">{name}</a></li>' for n, name in enumerate(["首页", "本地", "天气", "市场", "留言"]))

# fmt: off
HEADLESS = [
    "", " \n", "\0", "<", "</head>", "<body>", "just words", "<!-- nothing -->", "{}", "<p>" * 9, "\ud800", "&#0;",
]
BINARY = [
    b"%PDF-1.7 ...", b"PK\x03\x04....", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"\x1f\x8b\x08\x00",
    b"\x7fELF\x02", b"Rar!\x1a", b"RIFF....WEBP", b"<html>\0\0\0", b"\0" * 99,
]
# fmt: on


def article(*paragraphs: str, head: str = "<title>新渡口清晨开航_河湾网</title>") -> str:
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return (
        f"<!DOCTYPE html><html><head>{head}</head><body><nav><ul>{MENU}</ul></nav>"
        f"<article><h1>新渡口清晨开航</h1>{text}</article><footer><p>河湾网 版权所有</p></footer></body></html>"
    )


#: The metadata of heads.
TITLES = [
    ("<title>新渡口清晨开航</title>", "新渡口清晨开航"),
    ("<title>新渡口清晨开航_本地新闻_河湾网</title>", "新渡口清晨开航"),
    ("<title>\n  The ferry\n  is &amp; was late </title>", "The ferry is & was late"),
    ("<TITLE>The ferry is late</TITLE>", "The ferry is late"),
    ("<title>Flood - The River Daybook</title><meta property=og:site_name content='The River Daybook'>", "Flood"),
    ("<title>Flood - The River Daybook</title>", "The River Daybook"),
    ("<title>Flood! - The River Daybook</title><h1>The River Daybook</h1><h2>Flood <i>¶</i></h2>", "Flood!"),
    ("<title>Daybook | The flood</title><a href=http://river.example><h1>Daybook</h1></a>", "The flood"),
    ("<title>Daybook » The flood</title><h1>Daybook</h1><h2>The flood</h2>", "The flood"),
    ("<title>Flood - The Daybook</title><h1><a href='#top'>Flood</a></h1>", "Flood"),
    ("<title>Daybook - Mill</title><h1>Daybook</h1><meta property=og:site_name content=Daybook>", "Mill"),
    ("<meta property='og:title' content='The ferry is late'>", "The ferry is late"),
    ("<title></title><meta property='og:title' content=' The ferry\nis late '>", "The ferry is late"),
    ("<title> </title><meta name='og:title' content='The ferry is late'>", "The ferry is late"),
    ("<title>The ferry</title><meta property='og:title' content='Another one'>", "The ferry"),
    ("<title>The first one</title><title>The second one</title>", "The first one"),
    ("<meta charset=gb2312><title>新渡口清晨开航</title>", "新渡口清晨开航"),
    ("<?xml version='1.0' encoding='gb2312'?><html><head><title>新渡口清晨开航</title>", "新渡口清晨开航"),
    ("", ""),
    ("<title>", ""),
]
KEYWORDS = [
    ("渡口,开航，桥、岸；羊;船|河", ("渡口", "开航", "桥", "岸", "羊", "船", "河")),
    ("ferry, old boat ,, river ", ("ferry", "old boat", "river")),
    ("渡口 开航", ("渡口 开航",)),
    (",，、", ()),
    ("", ()),
]
DESCRIPTIONS = [
    ("<meta name=description content='The ferry is\n late'>", "The ferry is late"),
    ("<META NAME=DESCRIPTION CONTENT='The ferry is late'>", "The ferry is late"),
    ("<meta property='og:description' content='The ferry is late'>", "The ferry is late"),
    ("<meta property='og:description' content='b'><meta name='description' content='a'>", "a"),
    ("<meta name=description content=a><meta name=description content=b>", "a"),
    ("<meta name=description content=' '><meta name=description content=a>", "a"),
    ("<meta name=description>", ""),
]
LINKS = [
    ("rel=canonical href='http://other.example/1'", "http://other.example/1"),
    ("rel='Canonical' href=' /first '", "http://river.example/first"),
    ("rel=canonical href='first'", "http://river.example/news/7/first"),
    ("rel=canonical href='../first'", "http://river.example/news/first"),
    ("rel=canonical href='?page=1'", "http://river.example/news/7/ferry.html?page=1"),
    ("rel=canonical href='//other.example/1'", "http://other.example/1"),
    ("rel=canonical href='javascript:alert(1)'", ""),
    ("rel=canonical href='http://[half/'", ""),
    ("rel=canonical href=''", ""),
    ("rel=canonical", ""),
    ("rel=stylesheet href='/first'", ""),
    ("href='/first'", ""),
]


def test_the_metadata_of_a_head_is_read() -> None:
    for html, title in TITLES:
        assert parse_head(f"{html}</head>", URL).title == title
    for content, keywords in KEYWORDS:
        assert parse_head(f"<head><meta name='Keywords' content='{content}'></head>", URL).keywords == keywords
    for html, description in DESCRIPTIONS:
        assert parse_head(f"<head>{html}</head>", URL).description == description
    for link, canonical in LINKS:
        assert parse_head(f"<head><link {link}></head>", URL).canonical == canonical


def test_a_broken_head_is_read() -> None:
    for html in [
        "<html><head><title>The ferry is late",
        "<title>The ferry is late</title>",
        "<head><title>The ferry is late</title><p>no end",
        "<head><meta <title>><title>The ferry is late</title></head>",
        "<<<html>><head>>><title>The ferry is late</title></head>",
        "<head>\0<title>The ferry is late</title></head>",
    ]:
        assert parse_head(html, URL).title == "The ferry is late"


def test_heads_that_are_missing_large_or_broken_are_read() -> None:
    for html in HEADLESS:
        assert parse_head(html, URL) == Page(URL), html
    filler = "<meta name=filler content=filler>" * 32_000
    html = f"<head><title>The ferry is late</title>{filler}<meta name=description content=end></head><body>"
    page = parse_head(html, URL)
    assert len(html) > 1_000_000
    assert (page.title, page.description) == ("The ferry is late", "")
    assert parse_head("<title>\ud800渡口开航</title>", URL).title.endswith("渡口开航")


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(["<head>", "</head>", "<title>", "</title>", "<meta ", "name=", "property=", "content="]),
            st.sampled_from(["keywords", "og:title", "<link rel=canonical href='", "'", '"', ">", "<body ", "//["]),
            st.text(st.characters(exclude_categories=()), max_size=9),
        ),
        max_size=20,
    ).map("".join)
)
def test_any_html_is_accepted(html: str) -> None:
    assert parse_head(html, URL).url == URL


def test_pages_with_little_text_have_no_menu() -> None:
    for html in [
        "<html><head><title>空页</title></head><body></body></html>",
        f"<html><head><title>空页</title></head><body><nav><ul>{MENU}</ul></nav></body></html>",
        "<html><head><title>空页</title></head><body><script>var a = '渡口';</script></body></html>",
    ]:
        page = analyse(html, URL, max_html=10_000).page
        assert (page.title, page.text) == ("空页", ""), html
    text = analyse(article("今天停航。"), URL, max_html=10_000).page.text
    for name in ("首页", "本地", "天气", "市场", "留言"):
        assert name not in text


def test_an_extractor_gets_html_and_url() -> None:
    page = analyse("<title>船</title>", URL, max_html=100, extractor=lambda html, url: f"{html} from {url}").page
    html = "<title>船</title>"
    assert page == Page(URL, "船", text=f"{html} from {URL}", html=OPEN.of(html), reader="extractor")


@pytest.mark.parametrize(
    "answer", [ValueError("bad page"), RecursionError("too deep"), MemoryError(), b"x", 5, (), False]
)
def test_an_extractor_that_fails_is_the_reason(answer: Any) -> None:
    extractor = Mock(side_effect=[answer])  # an exception is raised
    name = type(answer).__name__
    said = f"the extractor raised {name}" if isinstance(answer, Exception) else f"returned a {name}, not a string"
    with pytest.raises(ExtractionError, match=said) as raised:
        analyse("<p>", URL, max_html=100, extractor=extractor)
    assert raised.value.reason == "extractor_failed"
    assert raised.value.__cause__ is (answer if isinstance(answer, Exception) else None)


@pytest.mark.parametrize(
    ("html", "limit"), [("x" * 101, 100), ("<" * (MAX_TAGS + 1), 10 * MAX_TAGS), ("<b>" * (MAX_TAGS + 1), 10**9)]
)
def test_a_page_with_too_many_characters_or_tags_is_not_parsed(html: str, limit: int) -> None:
    with pytest.raises(ExtractionError, match=f"has {len(html)} characters and {html.count('<')} tags") as raised:
        analyse(html, URL, max_html=limit, extractor=Mock(side_effect=AssertionError("parsed all the same")))
    assert raised.value.reason == "too_large"


def test_only_a_binary_body_is_no_html() -> None:
    for body in BINARY:
        with pytest.raises(ExtractionError, match="binary") as raised:
            PageContent("", body, "text/html; charset=utf-8").html()
        assert raised.value.reason == "not_html", body
    for body in (b"<p>one \0 zero", b"<p>The %PDF and PK\x03\x04"):
        assert PageContent("", body).html().encode() == body
    assert PageContent("", "<p>渡口".encode("gbk"), "text/html; charset=gb2312").html() == "<p>渡口"


class _Callable:
    __version__ = "3.1"

    def __call__(self, html: str, url: str) -> str:
        return html


def test_an_extractor_is_named_by_its_module_and_version() -> None:
    assert extractor_name(None).startswith("visible prose and trafilatura 2.")
    assert extractor_name(None).endswith(f"version {VERSION}")
    assert extractor_name(article) == f"{__name__}.article"
    assert extractor_name(_Callable()) == extractor_name(_Callable()) == f"{__name__}._Callable 3.1"
