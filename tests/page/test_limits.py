"""How much of a page is judged."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.limits import is_too_long, limit_page
from scrapy_neardup.page.response import PageContent, PageResponse
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.text.normalize import normalize
from tests.page.pages import ARTICLE, BODY

URL = "http://river.example/ferry"
FIELDS = {name: name for name in ("url", "title", "keywords", "description", "text", "html", "part")}
LARGE = ARTICLE + "<br>" * 9_000


@pytest.mark.parametrize("text", ["x" * 100, "渡" * 100, "\ufdfa" * 5, "\ufdfb" * 12])
def test_a_text_within_the_limit_stays_one_beyond_is_left_out(text: str) -> None:
    page = Page(URL, text=text, main=text, headline="Ferry", html=7)
    assert limit_page(page, 100) == page
    beyond = limit_page(Page(URL, text=text + text[0] * 12, main=text, headline="Ferry", html=7), 100)
    assert beyond == Page(URL, html=7, unread="too_large")


@pytest.mark.slow
def test_no_character_becomes_more_than_six_that_is_not_counted_for_it() -> None:
    for point in range(0x110000):
        many = len(normalize(chr(point))) + 1
        assert many <= 7 or is_too_long(chr(point), many - 2), hex(point)


def test_a_head_is_cut_to_what_no_page_needs() -> None:
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
def test_a_page_that_is_too_much_comes_back_without_text_and_with_its_mark(
    item: dict[str, object], html: str, unread: str
) -> None:
    page = source().page(item, PageResponse(URL, html.encode()), URL)
    assert (page.unread, bool(page.text), bool(page.html)) == (unread, not unread, True)
    assert page == source().page(item, PageResponse(URL, html.encode()), URL)


def test_a_body_that_can_hold_no_page_is_not_decoded() -> None:
    with pytest.raises(ExtractionError, match="400004 bytes") as told:
        source().page({}, PageResponse(URL, b"\xff" * 400_004), URL)
    assert told.value.reason == "too_large"


def test_what_may_take_long_is_left_to_whoever_asked() -> None:
    one = source()

    def left(html: str) -> Page | UnreadPage:
        draft = one.prepare({"title": "Own"}, PageResponse(URL, html.encode()), URL)
        assert isinstance(draft, UnreadPage)
        assert not draft.is_risky, "nobody has looked yet"
        return one.read_here(draft)

    draft = left(LARGE)
    assert isinstance(draft, UnreadPage)
    assert (draft.content, draft.is_risky) == (PageContent(URL, LARGE, metadata=ItemMetadata("Own")), True)
    page = one.finish(draft, Page(URL, "Read", text="read", html=1))
    assert (page.title, page.text, page.site) == ("Own", "read", "river.example")
    for reason in ("too_slow", "too_large"):
        unread = one.finish(draft, ExtractionError(reason, "why"))
        assert (unread.unread, unread.text, unread.url) == (reason, "", URL)
        assert unread.html == source().page({}, PageResponse(URL, LARGE.encode()), URL).html
    with pytest.raises(ExtractionError, match="no text today"):
        one.finish(draft, ExtractionError("extractor_failed", "no text today"))
    assert isinstance(left(ARTICLE), Page)


def test_it_is_read_apart_where_that_can_be_and_not_at_all_if_it_is_unchanged() -> None:
    asked: list[str] = []

    def apart(raw: PageContent) -> Page:
        asked.append(raw.url)
        if "slow" in raw.url:
            raise ExtractionError("too_slow", "why")
        return Page(raw.url, text="read apart")

    own = source(read_risky=apart, is_unchanged=lambda url, mark: url.endswith("/known") and mark != 0)
    names = ("new", "slow", "known")
    found = {name: own.page({}, PageResponse(f"{URL}/{name}", LARGE.encode()), f"{URL}/{name}") for name in names}
    assert [found[name].text or found[name].unread for name in found] == ["read apart", "too_slow", "too_slow"]
    assert asked == [f"{URL}/new", f"{URL}/slow"]
    assert own.page({"html": f"<article>{BODY}"}, None, URL).reader == "article"
