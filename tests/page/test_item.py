"""Which field of an item holds what, and by what the item is known."""

from __future__ import annotations

import pytest

from scrapy_neardup.page.item import ItemFields
from scrapy_neardup.settings import DEFAULT_FIELDS

URL = "https://a.example/ferry"


def fields(**names: str) -> ItemFields:
    return ItemFields({**DEFAULT_FIELDS, **names})


def test_fields_have_the_names_that_they_are_given() -> None:
    own = fields(text="body", url="link")
    assert own.has_content({"body": "Own."})
    assert not own.has_content({"text": "Own."})
    assert own.url({"link": f" {URL} "}) == URL


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (" Ferry sails\n again ", "ferry sails again"),
        ("ＦＥＲＲＹ", "ferry"),
        (["One", "two"], "one two"),
        (7, "7"),
        (0, "0"),
        (True, ""),
        (None, ""),
        ("  ", ""),
        ({"a": 1}, ""),
    ],
)
def test_a_part_is_told_by_its_letters(value: object, part: str) -> None:
    own = fields(part="headline")
    assert own.part({"headline": value}) == part
    assert own.article_url({"headline": value}, URL) == (f"{URL}#{part}" if part else URL)


def test_no_field_tells_parts_unless_one_is_named() -> None:
    assert fields().part({"part": "one", "": "two"}) == ""


@pytest.mark.parametrize("value", [None, "", "  ", 7, ["https://a.example/"]])
def test_what_is_no_url_is_none(value: object) -> None:
    assert fields().url({"url": value}) == ""


def test_an_item_is_known_by_its_content_where_it_has_nothing_else() -> None:
    names = [fields().content_name(item) for item in ({"text": "One."}, {"html": "One."}, {"text": "Two."}, {})]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert all(name.startswith("text:") for name in names)


def test_what_has_the_name_of_its_content_is_told_from_a_url_that_looks_like_one() -> None:
    item = {"text": "One."}
    name = fields().content_name(item)
    assert fields().is_content_name(item, name)
    assert not fields().is_content_name({"text": "Two."}, name)
    assert not fields().is_content_name(item, URL)
