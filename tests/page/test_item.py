"""The fields of items, rows of listings, and the sites of URLs."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.page.item import ItemFields, hash_item, row_name, row_text
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import DEFAULT_FIELDS
from tests.processes import answer_with_hash_seed

URL = "https://a.example/ferry"


def fields(**names: str) -> ItemFields:
    return ItemFields({**DEFAULT_FIELDS, **names})


def test_fields_have_the_configured_names() -> None:
    own = fields(text="body", url="link")
    assert own.has_content({"body": "Own."})
    assert not own.has_content({"text": "Own."})
    assert own.url({"link": f" {URL} "}) == URL
    assert fields().part({"part": "one", "": "two"}) == "", "no field is a part by default"
    for value in [None, "", "  ", 7, ["https://a.example/"]]:
        assert fields().url({"url": value}) == ""


def test_a_part_is_normalised_and_extends_the_url() -> None:
    for value, part in [
        (" Ferry sails\n again ", "ferry sails again"),
        ("ＦＥＲＲＹ", "ferry"),
        (["One", "two"], "one two"),
        (7, "7"),
        (0, "0"),
        *((value, "") for value in (True, None, "  ", {"a": 1})),
    ]:
        own = fields(part="headline")
        assert own.part({"headline": value}) == part
        assert own.article_url({"headline": value}, URL) == (f"{URL}#{part}" if part else URL)


def test_the_content_names_an_item_without_url() -> None:
    items: list[dict[str, Any]] = [{"text": "One."}, {"html": "One."}, {"text": "Two."}, {}]
    names = [fields().content_name(item) for item in items]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("text:") for name in names)


NOW = datetime(2026, 5, 1, tzinfo=timezone.utc)
VALUES: list[Any] = [1, "1", 1.5, True, None, [1], {"b": 1}, b"1", Decimal(1), NOW, NOW.date(), "half \ud800"]
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


def test_items_that_differ_have_different_hashes_in_every_process() -> None:
    items = [*({"a": value} for value in VALUES), {"b": 1}, {"a": 1, "b": 1}]
    hashes = [hash_item(item) for item in items]
    assert len(set(hashes)) == len(items)
    assert all(hashes)
    assert hashes == [hash_item(dict(item)) for item in items]
    code = "from scrapy_neardup.page.item import hash_item; print(hash_item({'b': ['x', 2], 'a': 'é'}))"
    assert answer_with_hash_seed("1", code) == hash_item({"a": "é", "b": ["x", 2]})
    for item in [{}, *({"a": value} for value in (object(), {1, 2}, CIRCLE, DEEP, {1: 2, "a": 3}))]:
        assert hash_item(item) == 0


def test_the_text_of_an_item_and_its_packed_rest_give_its_hash() -> None:
    for value in VALUES:
        item = {"url": URL, "text": "Own.", "a": value}
        assert fields().hash_rest(fields().pack_rest(item, "Own."), "Own.", "") == hash_item(item)
    for text, a in ((" Own.", 1), (["Own."], 1), ("Own.", object()), ("Own.", "long" * 300)):
        assert not fields().pack_rest({"text": text, "a": a}, "Own.")


LISTING = "https://a.example/news"
ROW = {"headline": "The ferry sails again", "rank": 3}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (ROW, "The ferry sails again"),
        ({"headline": " One ", "tags": ["two", 3, " three"], "more": ("four",)}, "One\ntwo\nthree\nfour"),
        ({"link": LISTING, "images": [LISTING, "A boat"]}, "A boat"),
        ({"nested": {"text": "ignored"}, "none": None, "raw": b"bytes"}, ""),
    ],
)
def test_the_text_of_a_row_has_its_strings_without_urls(item: dict[str, Any], text: str) -> None:
    assert row_text(item) == text


@pytest.mark.parametrize(("enough", "distinct", "prefix"), [(True, 2, "text:"), (False, 3, f"{LISTING}#")])
def test_a_row_with_enough_text_has_one_name_on_all_pages(enough: bool, distinct: int, prefix: str) -> None:
    rows = ((ROW, LISTING), (ROW, "https://a.example/sport"), ({**ROW, "rank": 4}, LISTING))
    names = [row_name(item, listing, lambda text: "" if enough else "too_short") for item, listing in rows]
    assert (names[0] == names[1], len(set(names))) == (enough, distinct)
    assert names[0].startswith(prefix)


def test_a_site_is_the_host_without_www_and_the_account_if_the_host_has_many() -> None:
    same = ("https://daybook.example/ferry", "http://daybook.example", "https://www.daybook.example/?__biz=MzA5")
    for url, site in [
        *((url, "daybook.example") for url in (*same, "https://WWW.DayBook.Example/Ferry", "//daybook.example/ferry")),
        ("https://keeper:secret@www.daybook.example:8443/log?page=2#top", "daybook.example"),
        ("https://www2.daybook.example/", "www2.daybook.example"),
        ("https://wwwharbour.example/", "wwwharbour.example"),
        ("http://www.harbour/", "harbour"),
        ("https://news.www.example/", "news.www.example"),
        ("https://渡口.example/新闻", "渡口.example"),
        ("http://[2001:db8::7]:8080/log", "2001:db8::7"),
        ("https://mp.weixin.qq.com/s?__biz=MzA5&mid=2", "mp.weixin.qq.com MzA5"),
        ("https://mp.weixin.qq.com/s?mid=2&idx=1&__biz=MzA5#wechat_redirect", "mp.weixin.qq.com MzA5"),
        ("http://MP.weixin.qq.com/s?__biz=MzA5MDAx==&mid=2", "mp.weixin.qq.com MzA5MDAx=="),
        ("http://mp.weixin.qq.com/s?__biz=MzA5MDAx%3D%3D&mid=2", "mp.weixin.qq.com MzA5MDAx=="),
        ("https://mp.weixin.qq.com/s?__biz=MzA5&__biz=MzB7", "mp.weixin.qq.com MzA5"),
        ("https://mp.weixin.qq.com/s?__biz=&mid=2", "mp.weixin.qq.com"),
        ("https://mp.weixin.qq.com/s/kJ3vQ", "mp.weixin.qq.com"),
        ("https://mp.weixin.qq.com.example/s?__biz=MzA5", "mp.weixin.qq.com.example"),
        ("http://www.daybook.example./ferry", "daybook.example"),
    ]:
        assert site_of(url) == site


@given(st.text(max_size=60))
def test_any_text_is_accepted(text: str) -> None:
    for url in (text, f"https://{text}", f"https://daybook.example/{text}", f"https://mp.weixin.qq.com/s?__biz={text}"):
        assert isinstance(site_of(url), str)
