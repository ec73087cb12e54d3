"""An item of a listing to a page: it is what it holds, and the text around it is that of others too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scrapy_neardup.model import Page
from scrapy_neardup.page.marks import mark_of


def row_page(item: Mapping[str, Any], url: str) -> Page:
    """The page of an item under the URL that it is to be known by."""
    return Page(url, text=row_text(item), html=mark_of(item), row=True)


def row_name(item: Mapping[str, Any], listing: str, is_enough: Callable[[str], bool]) -> str:
    """What a row without a name is known by: all that it holds, and by its listing unless that ``is_enough``.

    >>> row_name({"rank": "1"}, "https://a.example/top", lambda text: False)
    'https://a.example/top#29278eaeb4e1a396'
    """
    mark = f"{mark_of(item):016x}"
    return f"text:{mark}" if is_enough(row_text(item)) else f"{listing}#{mark}"


def row_text(item: Mapping[str, Any]) -> str:
    """The strings of a row, a line each, without addresses: these say nothing.

    >>> row_text({"headline": "The ferry sails again", "tags": ["sea", "town"], "img": "https://a.example/1.png"})
    'The ferry sails again\\nsea\\ntown'
    """
    values = [one for value in item.values() for one in (value if isinstance(value, (list, tuple)) else [value])]
    return "\n".join(one.strip() for one in values if isinstance(one, str) and "://" not in one)
