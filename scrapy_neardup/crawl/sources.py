"""An item and its response to the page that is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from itemadapter import ItemAdapter
from scrapy.http import Response, TextResponse

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing import fingerprint64
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, decode_body, extract, head, split_keywords
from scrapy_neardup.page.sites import site_of


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

    def url(self, item: Any, response: Response | None) -> str:
        """The item's URL, else its response's; call it once for each item.

        Of several items of one response that bring content but no URL, the second and later get a number.
        """
        own = self._value(item, "url")
        if isinstance(own, str) and own:
            return own
        if response is None:
            content = self._value(item, "text") or self._value(item, "html") or ""
            return f"text:{fingerprint64(str(content)):016x}"
        count = self._own_pages.get(response, 0) + 1 if self.has_own_content(item) else 1
        self._own_pages[response] = count
        return str(response.url) if count == 1 else f"{response.url}#{count}"

    def page(self, item: Any, response: Response | None, url: str) -> Page:
        """The page of an item; raises ExtractionError with the reason if there is none."""
        text, html = _joined(self._value(item, "text")), self._value(item, "html")
        if text:
            page = replace(_about(html, response, url), text=text)
        else:
            content = self._html(html, response)
            if not html and response is not None and not _is_of(response, url, content):
                raise ExtractionError(
                    "other_page",
                    f"the item's URL is not that of its response, {response.url}, which says nothing of it, then. "
                    "Give such items their text, or let their requests opt out with meta={'neardup': False}",
                )
            page = extract(content, url, max_html=self._max_html, extractor=self._extractor)
        return replace(
            page,
            title=_joined(self._value(item, "title")) or page.title,
            keywords=_words(self._value(item, "keywords")) or page.keywords,
            description=_joined(self._value(item, "description")) or page.description,
            site=site_of(url),
        )

    def _html(self, html: Any, response: Response | None) -> str:
        if html:
            return decode_body(html) if isinstance(html, bytes) else _joined(html)
        if response is not None:
            return _decoded(response)
        raise ExtractionError(
            "no_content",
            f"the item has neither of the fields {self._fields['text']!r} and {self._fields['html']!r}, and no "
            "response was handed over. Name its fields in NEARDUP_FIELDS, or switch on the add-on: "
            'ADDONS = {"scrapy_neardup.Addon": 500}',
        )

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


def _about(html: Any, response: Response | None, url: str) -> Page:
    """What the HTML around an item's own text says of it: nothing if there is none, or it is another page's."""
    if html:
        return head(_joined(html), url)
    if not isinstance(response, TextResponse) or "#" in url or not _is_of(response, url):
        return Page(url)
    try:
        return head(_decoded(response), url)
    except ExtractionError:  # an API's answer, for instance; the item has its text
        return Page(url)


def _is_of(response: Response, url: str, html: str = "") -> bool:
    """Whether a response is that of a URL: its own, one that was redirected to it, or the one that its HTML names."""
    own = {response.url}
    if response.request is not None:
        own |= {response.request.url, *response.meta.get("redirect_urls", ())}
    if _plain(url) in {_plain(one) for one in own}:
        return True
    return bool(html) and _plain(url) == _plain(head(html, url).canonical)


def _plain(url: str) -> str:
    return url.partition("#")[0].partition("://")[2].rstrip("/") or url


def _joined(value: Any) -> str:
    """A string as it is, a list of strings (what ``getall()`` gives) as lines; anything else is nothing."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (list, tuple)):
        return "\n".join(part for part in value if isinstance(part, str)).strip()
    return ""


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return split_keywords(value)
    if isinstance(value, (list, tuple)):
        return tuple(word for word in value if isinstance(word, str))
    return ()
