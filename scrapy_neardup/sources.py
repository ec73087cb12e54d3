"""An item and its response to the page that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy.http import Response, TextResponse

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.extract import Extractor, decode_body, extract, head
from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.model import Page


class PageSource:
    """What an item holds of its own comes first; what it lacks is taken from its response."""

    def __init__(self, fields: Mapping[str, str], max_html: int, extractor: Extractor) -> None:
        self._fields = fields
        self._max_html = max_html
        self._extractor = extractor
        self._own_pages: WeakKeyDictionary[Response, int] = WeakKeyDictionary()

    def has_own_content(self, item: Any) -> bool:
        """Whether the item brings its text or HTML along, and so is a page of its own."""
        return bool(self._value(item, "text") or self._value(item, "html"))

    def page(self, item: Any, response: Response | None) -> Page:
        """The page of an item; raises ExtractionError with the reason if there is none."""
        text, html = _joined(self._value(item, "text")), self._value(item, "html")
        url = self.url(item, response, text)
        if html:
            content = decode_body(html) if isinstance(html, bytes) else _joined(html)
        elif response is not None:
            content = "" if text and not isinstance(response, TextResponse) else _decoded(response)
        elif text:
            content = ""
        else:
            raise ExtractionError(
                "no_content",
                f"the item has neither of the fields {self._fields['text']!r} and {self._fields['html']!r}, and no "
                "response was handed over. Name its fields in NEARDUP_FIELDS, or switch on the add-on: "
                'ADDONS = {"scrapy_neardup.Addon": 500}',
            )
        if text:
            page = replace(head(content, url) if content else Page(url), text=text)
        else:
            page = extract(content, url, max_html=self._max_html, extractor=self._extractor)
        keywords = self._value(item, "keywords")
        return replace(
            page,
            title=_joined(self._value(item, "title")) or page.title,
            keywords=_words(keywords) or page.keywords,
            description=_joined(self._value(item, "description")) or page.description,
        )

    def url(self, item: Any, response: Response | None, text: str) -> str:
        """The item's URL, else its response's; the second and later pages of one response are told apart."""
        own = self._value(item, "url")
        if isinstance(own, str) and own:
            return own
        if response is None:
            return f"text:{fingerprint64(text):016x}"
        if not self.has_own_content(item):
            return str(response.url)
        count = self._own_pages.get(response, 0) + 1
        self._own_pages[response] = count
        return str(response.url) if count == 1 else f"{response.url}#{count}"

    def _value(self, item: Any, part: str) -> Any:
        if not ItemAdapter.is_item(item):
            return None
        value = ItemAdapter(item).get(self._fields[part])
        return value.strip() if isinstance(value, str) else value


def _decoded(response: Response) -> str:
    if response.status >= 400:
        # An item of an errback stands for its URL; the server's error page is the same for all of them.
        raise ExtractionError("http_error", f"the response has status {response.status}")
    content_type = response.headers.get("Content-Type")
    declared = content_type.decode("latin-1") if content_type else None
    kind = (declared or "text/html").split(";")[0].strip().lower()
    if not (kind.startswith("text/") or kind.endswith(("html", "xml")) or kind == "application/octet-stream"):
        raise ExtractionError("not_html", f"the response is {kind}, not HTML")
    return decode_body(response.body, declared)


def _joined(value: Any) -> str:
    """A string as it is, a list of strings (what ``getall()`` gives) as lines; anything else is nothing."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return "\n".join(part for part in value if isinstance(part, str)).strip()
    return ""


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(word.strip() for word in value.replace("，", ",").split(",") if word.strip())
    if isinstance(value, (list, tuple)):
        return tuple(word for word in value if isinstance(word, str))
    return ()
