"""The fields of an item or a record that describe its page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.text.normalize import normalize

Item = Mapping[str, Any]

_KEYWORD_END = re.compile(r"[,，、;；|]+")
#: The prefix of the names of pages without URL.
TEXT_PREFIX = "text:"
#: The most characters of a text with an item hash.
_MAX_HASHED = 5_000_000
#: The most characters of other fields that are kept to hash an item later.
_LONGEST_REST = 1_000


class ItemMetadata(NamedTuple):
    """The metadata fields of an item. A value that is not empty overrides the value of the page's head."""

    title: str = ""
    keywords: tuple[str, ...] = ()
    description: str = ""


class ItemFields:
    """Reads items with the field names of the settings."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """``names``: from ``url``, ``text``, … to the name of the item's field."""
        self.names = names

    def has_content(self, item: Item) -> bool:
        """Whether the item has its own text or HTML, and so is a page by itself."""
        return bool(self.value(item, "text") or self.value(item, "html"))

    def url(self, item: Item) -> str:
        """Return the item's own URL, or an empty string."""
        own = self.value(item, "url")
        return own if isinstance(own, str) else ""

    def article_url(self, item: Item, url: str) -> str:
        """Return the URL plus the item's part, if one page has several articles."""
        part = self.part(item)
        return f"{url}#{part}" if part else url

    def part(self, item: Item) -> str:
        """Return the value that distinguishes the articles of one page, in lower case, or an empty string."""
        value = self.value(item, "part")
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return " ".join(normalize(join_lines(value)).split())

    def content_name(self, item: Item) -> str:
        """Return the name of an item without URL and response."""
        hashed = OPEN.of(str(self.value(item, "text") or self.value(item, "html") or ""))
        return f"{TEXT_PREFIX}{hashed:016x}"

    def value(self, item: Item, what: str) -> Any:
        """Return the value of a field, stripped if it is a string, or None."""
        name = self.names[what]
        value = item.get(name) if name else None
        return value.strip() if isinstance(value, str) else value

    def text(self, item: Item, what: str) -> str:
        """Return the value of a field as a string, see ``join_lines``."""
        return join_lines(self.value(item, what))

    def hash(self, item: Item, url: str) -> int:
        """Return the hash of an item, which shows whether a page with little text has changed.

        It is 0 for a page that is named by its content, and for a very long text.
        """
        is_long = len(self.text(item, "text")) > _MAX_HASHED
        is_named_by_content = url.startswith(TEXT_PREFIX) and url == self.content_name(item)
        return 0 if is_long or is_named_by_content else hash_item(item)

    def pack_rest(self, item: Item, text: str) -> str:
        """Return all fields of an item but its text as JSON, to hash the item later: that is faster.

        Empty if its field is not the ``text`` exactly, if the rest is long, or if it cannot be hashed.
        """
        name = self.names["text"]
        if item.get(name) != text:
            return ""
        try:
            packed = _as_json({other: value for other, value in item.items() if other != name})
        except (TypeError, ValueError, RecursionError):
            return ""
        return packed if len(packed) <= _LONGEST_REST else ""

    def hash_rest(self, packed: str, text: str, url: str) -> int:
        """Return the hash of an item from the result of ``pack_rest``; ``url``: of an item without URL."""
        item = {**json.loads(packed), self.names["text"]: text}
        return self.hash(item, self.url(item) or url)

    def metadata(self, item: Item) -> ItemMetadata:
        """Return the item's title, keywords and description."""
        return ItemMetadata(self.text(item, "title"), self._keywords(item), self.text(item, "description"))

    def _keywords(self, item: Item) -> tuple[str, ...]:
        value = self.value(item, "keywords")
        if isinstance(value, str):
            return split_keywords(value)
        if isinstance(value, (list, tuple)):
            return tuple(word for word in value if isinstance(word, str))
        return ()


def split_keywords(text: str) -> tuple[str, ...]:
    """Split a string of keywords at western and Chinese separators.

    >>> split_keywords("大桥, 通车、渡口；")
    ('大桥', '通车', '渡口')
    """
    return tuple(word.strip() for word in _KEYWORD_END.split(text) if word.strip())


def join_lines(value: Any) -> str:
    """Return a string stripped, the strings of a list (from ``getall()``) as lines, and "" for anything else."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return "\n".join(part for part in value if isinstance(part, str)).strip()
    return ""


def hash_item(item: Item) -> int:
    """Return a hash of all fields, 64 bits; 0 for an empty item or values without an exact ``repr``.

    To forge an item with a given hash takes 2**64 attempts.

    >>> hash_item({"a": 1, "b": [2.5]}) == hash_item({"b": [2.5], "a": 1}) != hash_item({"a": 1})
    True
    >>> hash_item({"a": object()})
    0
    """
    if not item:
        return 0
    try:
        return OPEN.of(_as_json(dict(item)))
    except (TypeError, ValueError, RecursionError):
        return 0


def _encode(value: Any) -> Any:
    """Encode values that JSON lacks and that have an exact ``repr``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, date, time, timedelta, Decimal)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} may look like another one")


_as_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_encode).encode


# An item of a listing is compared by its own fields, because the text around it belongs to other items too.


def row_page(item: Item, url: str) -> Page:
    """Return the page of a row."""
    return Page(url, text=row_text(item), html=hash_item(item), row=True)


def row_name(item: Item, listing: str, why_unjudged: Callable[[str], str]) -> str:
    """Return the name of a row without URL: the hash of its fields, under its listing if its text cannot be judged.

    >>> row_name({"rank": "1"}, "https://a.example/top", lambda text: "too_short")
    'https://a.example/top#29278eaeb4e1a396'
    """
    hashed = f"{hash_item(item):016x}"
    return f"{listing}#{hashed}" if why_unjudged(row_text(item)) else f"{TEXT_PREFIX}{hashed}"


def row_text(item: Item) -> str:
    """Return the strings of a row as lines, without URLs.

    >>> row_text({"headline": "The ferry sails again", "tags": ["sea", "town"], "img": "https://a.example/1.png"})
    'The ferry sails again\\nsea\\ntown'
    """
    values = [one for value in item.values() for one in (value if isinstance(value, (list, tuple)) else [value])]
    return "\n".join(one.strip() for one in values if isinstance(one, str) and "://" not in one)
