"""Rows of a listing: what they say, and what they are known by."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.page.item import row_name, row_page, row_text

LISTING = "https://a.example/news"
ROW = {"headline": "The ferry sails again", "rank": 3}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (ROW, "The ferry sails again"),
        ({"headline": " One ", "tags": ["two", 3, " three"], "more": ("four",)}, "One\ntwo\nthree\nfour"),
        ({"link": LISTING, "images": [LISTING, "A boat"]}, "A boat"),
        ({"nested": {"text": "not looked at"}, "none": None, "raw": b"bytes"}, ""),
    ],
)
def test_the_text_of_a_row_are_its_strings_without_addresses(item: dict[str, Any], text: str) -> None:
    assert row_text(item) == text


def test_a_row_that_says_enough_is_the_same_on_every_page_and_any_other_only_on_its_own() -> None:
    def names(*, enough: bool) -> list[str]:
        rows = ((ROW, LISTING), (ROW, "https://a.example/sport"), ({**ROW, "rank": 4}, LISTING))
        return [row_name(item, listing, lambda text: enough) for item, listing in rows]

    first, elsewhere, other = names(enough=True)
    assert first == elsewhere != other
    assert first.startswith("text:")
    assert len(set(names(enough=False))) == 3
    assert names(enough=False)[0].startswith(f"{LISTING}#")


def test_the_page_of_a_row_is_marked_by_all_that_it_holds() -> None:
    page, other = row_page(ROW, "name"), row_page({**ROW, "rank": 4}, "name")
    assert (page.url, page.text, page.row) == ("name", "The ferry sails again", True)
    assert page.html != other.html
