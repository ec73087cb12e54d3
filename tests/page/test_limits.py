"""Bounds of text and metadata, and pages that take long to read."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.limits import is_too_long, limit_page
from scrapy_neardup.page.source import PageContent, PageResponse, PageSource, UnreadPage
from scrapy_neardup.text.normalize import normalize
from tests.page.pages import ARTICLE, BODY

URL = "http://river.example/ferry"
FIELDS = {name: name for name in ("url", "title", "keywords", "description", "text", "html", "part")}
LARGE = ARTICLE + "<br>" * 9_000


def test_a_text_beyond_the_limit_is_removed() -> None:
    for text in ["x" * 100, "渡" * 100, "\ufdfa" * 5, "\ufdfb" * 12]:
        page = Page(URL, text=text, main=text, headline="Ferry", html=7)
        assert limit_page(page, 100) == page, text
        beyond = limit_page(Page(URL, text=text + text[0] * 12, main=text, headline="Ferry", html=7), 100)
        assert beyond == Page(URL, html=7, unread="too_large"), text


@pytest.mark.slow
def test_the_expansion_of_every_character_is_known() -> None:
    for point in (*range(0x32400), *range(0xE0000, 0xE0200)):  # all that are assigned, and no private ones
        many = len(normalize(chr(point))) + 1
        assert many <= 7 or is_too_long(chr(point), many - 2), hex(point)


def test_metadata_is_cut() -> None:
    many = tuple(f"word{n}" for n in range(5_000))
    page = Page(
        URL,
        title="t" * 9_000,
        keywords=("k" * 9_000, *many),
        description="\ufdfa" * 9_000,
        text="x",
        headline="\n".join(many),
    )
    cut = limit_page(page, 100)
    assert (len(cut.title), len(cut.keywords[0])) == (2_000, 2_000)
    assert sum(map(len, cut.keywords)) <= 20_000
    assert len(normalize(cut.description)) <= 20_000
    assert cut.headline == "\n".join(many[:200])


def source(**more: object) -> PageSource:
    return PageSource(FIELDS, 100_000, None, max_text=1_000, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("item", "html", "unread"),
    [
        ({}, ARTICLE, ""),
        ({}, ARTICLE + "<p>" * 50_000, "too_large"),
        ({}, f"{ARTICLE}<p>{'The ferry sails. ' * 100}", "too_large"),
        ({"text": "x" * 1_001}, ARTICLE, "too_large"),
        ({"text": ["x" * 600, "y" * 600]}, ARTICLE, "too_large"),
        ({"text": "\ufdfa" * 60}, ARTICLE, "too_large"),
        ({"text": "x" * 1_000}, ARTICLE, ""),
        ({"html": f"<p>{'The ferry sails. ' * 100}"}, ARTICLE, "too_large"),
    ],
)
def test_a_page_beyond_a_limit_has_a_hash_and_no_text(item: dict[str, object], html: str, unread: str) -> None:
    page = source().page(item, PageResponse(URL, html.encode()), URL)
    assert (page.unread, bool(page.text), bool(page.html)) == (unread, not unread, True)
    assert page == source().page(item, PageResponse(URL, html.encode()), URL)


def test_a_risky_page_comes_back_unread() -> None:
    one = source()

    def read_here(html: str) -> Page | UnreadPage:
        unread = one.prepare({"title": "Own"}, PageResponse(URL, html.encode()), URL)
        assert isinstance(unread, UnreadPage)
        assert not unread.is_risky
        return one.read_quickly(unread)

    unread = read_here(LARGE)
    assert isinstance(unread, UnreadPage)
    assert (unread.content, unread.is_risky) == (PageContent(URL, LARGE, metadata=ItemMetadata("Own")), True)
    page = one.finish(unread, Page(URL, "Read", text="read", html=1))
    assert (page.title, page.text, page.site) == ("Own", "read", "river.example")
    for reason in ("too_slow", "too_large"):
        skipped = one.finish(unread, ExtractionError(reason, "why"))
        assert (skipped.unread, skipped.text, skipped.url) == (reason, "", URL)
        assert skipped.html == one.page({}, PageResponse(URL, LARGE.encode()), URL).html
    with pytest.raises(ExtractionError, match="no text today"):
        one.finish(unread, ExtractionError("extractor_failed", "no text today"))
    assert isinstance(read_here(ARTICLE), Page)


def test_a_worker_reads_a_risky_page_unless_it_is_unchanged() -> None:
    requested: list[str] = []

    def read_risky(content: PageContent) -> Page:
        requested.append(content.url)
        if "slow" in content.url:
            raise ExtractionError("too_slow", "why")
        return Page(content.url, text="read by a worker")

    own = source(read_risky=read_risky, is_unchanged=lambda url, mark: url.endswith("/known") and mark != 0)
    pages = [
        own.page({}, PageResponse(url, LARGE.encode()), url) for url in (f"{URL}/new", f"{URL}/slow", f"{URL}/known")
    ]
    assert [page.text or page.unread for page in pages] == ["read by a worker", "too_slow", "too_slow"]
    assert requested == [f"{URL}/new", f"{URL}/slow"]
    assert own.page({"html": f"<article>{BODY}"}, None, URL).reader == "article"
