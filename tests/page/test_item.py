"""The fields of items, hashes of items, and rows of listings."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from scrapy_neardup.page.item import ItemFields, hash_item, row_name, row_text
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
    assert [fields().is_content_name(item, names[0]) for item in items] == [True, True, False, False]
    assert not fields().is_content_name(items[0], URL)


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
    names = [row_name(item, listing, lambda text: enough) for item, listing in rows]
    assert (names[0] == names[1], len(set(names))) == (enough, distinct)
    assert names[0].startswith(prefix)
