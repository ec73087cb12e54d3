"""The fields of an item or a record that describe its page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import split_keywords
from scrapy_neardup.page.limits import limited
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import normalize

# ----------------------------------------------------------------------------------------------------------------------
# What an item says of its page beside its text: that comes before what the page says of itself.


class ItemHead(NamedTuple):
    """Empty where the item says nothing."""

    title: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""

    @classmethod
    def of(cls, told: Sequence[Any]) -> ItemHead:
        """What was sent as plain data."""
        title, keywords, description = told
        return cls(title, tuple(keywords), description)

    def whole(self, page: Page, url: str, max_text: int) -> Page:
        """The page as it is judged, at this URL: with what is said of it, and no more than ``limited`` leaves."""
        page = replace(
            page,
            title=self.title or page.title,
            keywords=self.keywords or page.keywords,
            description=self.description or page.description,
            site=site_of(url),
        )
        return limited(page, max_text)


#: Of a page of which no item says anything.
NO_HEAD = ItemHead()


# ----------------------------------------------------------------------------------------------------------------------
# All that an item holds as one number: two items with the same mark are the same item.


def mark_of(item: Mapping[str, Any]) -> int:
    """64 bits of all fields; 0 for an item that holds nothing, or what cannot be told apart for certain.

    Who could make another item with the mark of a given one would need 2**64 tries.

    >>> mark_of({"a": 1, "b": [2.5]}) == mark_of({"b": [2.5], "a": 1}) != mark_of({"a": 1})
    True
    >>> mark_of({"a": object()})
    0
    """
    if not item:
        return 0
    try:
        return OPEN.of(json.dumps(dict(item), sort_keys=True, default=_exact))
    except (TypeError, ValueError, RecursionError):
        return 0


def _exact(value: Any) -> Any:
    """What JSON does not know and is written in full by its ``repr``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, date, time, timedelta, Decimal)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} may look like another one")


# ----------------------------------------------------------------------------------------------------------------------
# What an item or a record says of its own page: its URL, text or HTML, title, keywords and description.


Item = Mapping[str, Any]

#: Before what a page is known by that has no URL.
BY_TEXT = "text:"


class ItemFields:
    """The fields of items, which come as mappings; one that has none is an empty mapping."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """``names``: which field of an item holds what."""
        self.names = names

    def has_content(self, item: Item) -> bool:
        """Whether the item brings its text or HTML along, and so is a page of its own."""
        return bool(self.value(item, "text") or self.value(item, "html"))

    def url(self, item: Item) -> str:
        """The URL that the item brings along; empty if it has none."""
        own = self.value(item, "url")
        return own if isinstance(own, str) else ""

    def named(self, item: Item, url: str) -> str:
        """The URL by which an item's article is known: with its part, where one page has several."""
        part = self.part(item)
        return f"{url}#{part}" if part else url

    def part(self, item: Item) -> str:
        """What tells the articles of one page apart, in small letters; empty if nothing does."""
        value = self.value(item, "part")
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return " ".join(normalize(joined(value)).split())

    def name_of_content(self, item: Item) -> str:
        """What an item is known by that has neither a URL nor a response."""
        return f"{BY_TEXT}{self.text_hash(item):016x}"

    def text_hash(self, item: Item) -> int:
        """A hash of the text or HTML that the item brings along."""
        return OPEN.of(str(self.value(item, "text") or self.value(item, "html") or ""))

    def is_named_by_content(self, item: Item, url: str) -> bool:
        """Whether this is not a URL, but what ``name_of_content`` has made of the item."""
        return url.startswith(BY_TEXT) and url == self.name_of_content(item)

    def value(self, item: Item, what: str) -> Any:
        """What stands in a field, whatever that is; a string without the spaces around it, None where nothing is."""
        name = self.names[what]
        value = item.get(name) if name else None
        return value.strip() if isinstance(value, str) else value

    def text(self, item: Item, what: str) -> str:
        """The same as a string: see ``joined``."""
        return joined(self.value(item, what))

    def said(self, item: Item) -> ItemHead:
        """What the item says of its page beside its text."""
        return ItemHead(self.text(item, "title"), self._keywords(item), self.text(item, "description"))

    def _keywords(self, item: Item) -> tuple[str, ...]:
        """Those of a string or a list of strings."""
        value = self.value(item, "keywords")
        if isinstance(value, str):
            return split_keywords(value)
        if isinstance(value, (list, tuple)):
            return tuple(word for word in value if isinstance(word, str))
        return ()


def joined(value: Any) -> str:
    """A string as it is, a list of strings (what ``getall()`` gives) as lines; anything else is nothing."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return "\n".join(part for part in value if isinstance(part, str)).strip()
    return ""


# ----------------------------------------------------------------------------------------------------------------------
# An item of a listing to a page: it is what it holds, and the text around it is that of others too.


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
