"""The fields of an item or a record, with the response that it was taken from, to the page that is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import (
    Extractor,
    decode_body,
    extract,
    head,
    html_mark,
    is_too_large,
    split_keywords,
)
from scrapy_neardup.page.limits import MAX_TEXT, limited
from scrapy_neardup.page.marks import mark_of
from scrapy_neardup.page.risk import is_risky
from scrapy_neardup.page.served import Served
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import normalize

Item = Mapping[str, Any]

#: Bytes of a character, at most.
_LONGEST = 4
#: Characters from which a field of an item may be its text.
_LEAST_TEXT = 40
#: Why a page is ``unread``.
TOO_MUCH = ("too_large", "too_slow")
#: Characters of a text up to which an item is given a mark: more is no more than counted.
_MAX_MARKED = 5_000_000


#: HTML of a page and its URL to what is read of it; raises ExtractionError.
Read = Callable[[str, str], Page]


@dataclass(frozen=True, slots=True)
class Draft:
    """A page that is still to be read, and may take long: ``finished`` makes it of what was read, or of why not."""

    html: str
    url: str
    finished: Callable[[Page | ExtractionError], Page]


class PageSource:
    """What an item holds of its own comes first; what it lacks is taken from its response.

    Items come as mappings of their fields; one that has none is an empty mapping. A page that was too much comes back
    ``unread``.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        max_html: int,
        extractor: Extractor | None,
        *,
        max_text: int = MAX_TEXT,
        apart: Read | None = None,
        is_unchanged: Callable[[str, int], bool] = lambda url, mark: False,
    ) -> None:
        """``fields``: which field of an item holds what; ``max_html``: see ``extract``; ``max_text``: see ``limited``.

        ``apart`` reads pages that may take long, where they can be ended; without it they are read as all others.
        ``is_unchanged``: whether a page is known by its URL and its mark, and need not be read.
        """
        self._fields = fields
        self._max_html = max_html
        self._extractor = extractor
        self._max_text = max_text
        self._apart = apart
        self._is_unchanged = is_unchanged

    def has_own_content(self, item: Item) -> bool:
        """Whether the item brings its text or HTML along, and so is a page of its own."""
        return bool(self._value(item, "text") or self._value(item, "html"))

    def own_url(self, item: Item) -> str:
        """The URL that the item brings along; empty if it has none."""
        own = self._value(item, "url")
        return own if isinstance(own, str) else ""

    def named(self, item: Item, url: str) -> str:
        """The URL by which an item's article is known: with its part, where one page has several."""
        part = self.part(item)
        return f"{url}#{part}" if part else url

    def part(self, item: Item) -> str:
        """What tells the articles of one page apart, in small letters; empty if nothing does."""
        value = self._value(item, "part")
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        return " ".join(normalize(_joined(value)).split())

    def name_of_content(self, item: Item) -> str:
        """What an item is known by that has neither a URL nor a response."""
        content = self._value(item, "text") or self._value(item, "html") or ""
        return f"text:{OPEN.of(str(content)):016x}"

    def page(self, item: Item, served: Served | None, url: str) -> Page:
        """The page of an item; raises ExtractionError with the reason if there is none."""
        made = self.draft(item, served, url)
        return made if isinstance(made, Page) else self.read(made)

    def read(self, draft: Draft) -> Page:
        """Read what may take long, and wait for it."""
        read = self._apart or self._extracted
        try:
            return draft.finished(read(draft.html, draft.url))
        except ExtractionError as error:
            return draft.finished(error)

    def draft(self, item: Item, served: Served | None, url: str) -> Page | Draft:
        """The same, but for a page that may take long to read: that is left to whoever asked."""
        text, html = _joined(self._value(item, "text")), self._value(item, "html")
        if text:
            mark = 0 if len(text) > _MAX_MARKED else self._mark(item, url)
            return self._whole(replace(_about(html, served, url), text=text, html=mark), item, url)
        content = self._content(item, html, served, url)
        too_large = is_too_large(content, self._max_html)
        if not too_large and not is_risky(content):
            return self._whole(self._extracted(content, url), item, url)
        mark = html_mark(content)
        if too_large:
            return self._whole(Page(url, html=mark, unread="too_large"), item, url)
        if self._is_unchanged(url, mark):
            return self._whole(Page(url, html=mark, unread="too_slow"), item, url)

        def finished(read: Page | ExtractionError) -> Page:
            if isinstance(read, Page):
                return self._whole(read, item, url)
            if read.reason not in TOO_MUCH:
                raise read
            return self._whole(Page(url, html=mark, unread=read.reason), item, url)

        return Draft(content, url, finished)

    def _extracted(self, html: str, url: str) -> Page:
        return extract(html, url, max_html=self._max_html, extractor=self._extractor)

    def _content(self, item: Item, html: Any, served: Served | None, url: str) -> str:
        """The HTML that an item's page is read from."""
        try:
            content = self._html(html, served)
        except ExtractionError as error:
            if error.reason != "not_html" or html or served is None:
                raise
            raise ExtractionError(error.reason, f"{error}. {self._cure(item)}") from None
        if not html and served is not None and not served.is_of(url, content):
            raise ExtractionError(
                "other_page",
                f"the item's URL is not that of its response, {served.url}, which says nothing of it, then. "
                f"{self._cure(item)}; if it is not to be judged, have its request opt out: meta={{'neardup': False}}",
            )
        return content

    def _cure(self, item: Item) -> str:
        """What to do about an item of which the response is not the page."""
        texts = {name: len(_joined(item[name])) for name in item if name not in self._fields.values()}
        longest = max(texts, key=lambda name: texts[name], default="")
        own = "If it brings its text, name that field in NEARDUP_FIELDS"
        if texts.get(longest, 0) >= _LEAST_TEXT:
            own = f"If its text is what it holds in {longest!r}, say so: NEARDUP_FIELDS = {{'text': {longest!r}}}"
        return (
            f"{own}; if its page was an earlier response, have the request hand that over: "
            "meta={'neardup_response': response}"
        )

    def _whole(self, page: Page, item: Item, url: str) -> Page:
        """With what the item says of it, and no more of all than is judged."""
        page = replace(
            page,
            title=_joined(self._value(item, "title")) or page.title,
            keywords=_words(self._value(item, "keywords")) or page.keywords,
            description=_joined(self._value(item, "description")) or page.description,
            site=site_of(url),
        )
        return limited(page, self._max_text)

    def _mark(self, item: Item, url: str) -> int:
        """By what an item with a short text is known to be unchanged; one that is named by its text alone is not."""
        return 0 if url == self.name_of_content(item) else mark_of(item)

    def _html(self, html: Any, served: Served | None) -> str:
        body = html if isinstance(html, bytes) else served.body if served is not None and not html else b""
        if len(body) > _LONGEST * self._max_html:
            raise ExtractionError("too_large", f"the page has {len(body)} bytes, which are not even decoded")
        if html:
            return decode_body(html) if isinstance(html, bytes) else _joined(html)
        if served is not None:
            return served.html()
        raise ExtractionError(
            "no_content",
            f"the item has neither of the fields {self._fields['text']!r} and {self._fields['html']!r}, and no "
            "response was handed over. Name its fields in NEARDUP_FIELDS, or switch on the add-on: "
            'ADDONS = {"scrapy_neardup.Addon": 500}',
        )

    def _value(self, item: Item, part: str) -> Any:
        name = self._fields[part]
        value = item.get(name) if name else None
        return value.strip() if isinstance(value, str) else value


def _about(html: Any, served: Served | None, url: str) -> Page:
    """What the HTML around an item's own text says of it: nothing if there is none, or it is another page's."""
    if html:
        return head(_joined(html), url)
    if served is None or not served.is_text or "#" in url or not served.is_of(url):
        return Page(url)
    try:
        return head(served.html(), url)
    except ExtractionError:  # an API's answer, for instance; the item has its text
        return Page(url)


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
