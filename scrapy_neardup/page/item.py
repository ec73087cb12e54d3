"""What an item or a record says of its own page: its URL, text or HTML, title, keywords and description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.page.extraction import split_keywords
from scrapy_neardup.page.item_head import ItemHead
from scrapy_neardup.text.normalize import normalize

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
