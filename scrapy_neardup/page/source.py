"""An item and its response to a Page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import ExtractionError, NoWorker, Reason
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, extract, head, html_mark, is_too_large
from scrapy_neardup.page.html import is_risky
from scrapy_neardup.page.item import Item, ItemFields, joined, mark_of
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.response import Bodies, Raw, Served

# ----------------------------------------------------------------------------------------------------------------------
# What is to be done about an item of which the response is not the page.


#: Characters from which a field of an item may be its text.
_LEAST_TEXT = 40


def with_cure(error: ExtractionError, fields: ItemFields, item: Item, served: Served | None) -> ExtractionError:
    """The error with a cure, if the response is to blame for it."""
    if served is None or error.reason not in ("not_html", "other_page"):
        return error
    if error.reason == "not_html":
        return ExtractionError(error.reason, f"{error}. {_cure(fields, item)}")
    return ExtractionError(
        error.reason,
        f"the item's URL is not that of its response ({served.url}), so that response cannot be its page. "
        f"{_cure(fields, item)}. To leave it out, set meta={{'neardup': False}} on its request",
    )


def text_cure(fields: ItemFields, item: Item) -> str:
    """What to set so that an item is judged by its own text."""
    texts = {name: len(joined(item[name])) for name in item if name not in fields.names.values()}
    longest = max(texts, key=lambda name: texts[name], default="")
    if texts.get(longest, 0) >= _LEAST_TEXT:
        return f"If the field {longest!r} is its text, set NEARDUP_FIELDS = {{'text': {longest!r}}}"
    return "If the item has its own text, name that field, for example NEARDUP_FIELDS = {'text': 'body'}"


def _cure(fields: ItemFields, item: Item) -> str:
    return (
        f"{text_cure(fields, item)}. If an earlier response is its page, set "
        "meta={'neardup_response': response} on its request"
    )


# ----------------------------------------------------------------------------------------------------------------------
# The fields of an item or a record, with the response that it was taken from, to the page that is judged.


#: Bytes of a character, at most.
_LONGEST = 4
#: Why a page is ``unread``.
TOO_MUCH = ("too_large", "too_slow")
#: Characters of a text up to which an item is given a mark: more is no more than counted.
_MAX_MARKED = 5_000_000


#: What a page is read from to what is read of it; raises ExtractionError.
Read = Callable[[Raw], Page]


@dataclass(frozen=True, slots=True)
class RiskyPage:
    """The HTML of a page that a worker did not read, because that may take long."""

    html: str


#: The answer of a worker.
Answer = Page | ExtractionError | RiskyPage


@dataclass(frozen=True, slots=True)
class Draft:
    """The page of an item that is still to be read, here or in another process; ``may_take_long``: that is known.

    ``body``: by what the very same page is known, whatever its URL; 0 if it is always to be read.
    """

    raw: Raw
    item: Item
    served: Served | None = None
    may_take_long: bool = False
    body: int = 0


class PageSource:
    """What an item holds of its own comes first; what it lacks is taken from its response.

    A page that was too much comes back ``unread``.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        max_html: int,
        extractor: Extractor | None,
        *,
        max_text: int = MAX_TEXT,
        read_risky: Read | None = None,
        is_unchanged: Callable[[str, int], bool] = lambda url, mark: False,
        bodies: Bodies | None = None,
        marks: bool = True,
    ) -> None:
        """``fields``: which field of an item holds what; ``max_html``: see ``extract``; ``max_text``: see ``limited``.

        ``read_risky`` reads pages that may take long in a worker; without it they are read as all others.
        ``is_unchanged``: whether a page is known by its URL and its mark, and need not be read. ``bodies``: by what
        drafts are known whose bytes were judged before; without it none is. ``marks``: whether an item that brings its
        text is given its mark at once; if not, see ``marked``.
        """
        self.fields = ItemFields(fields)
        self._max_html = max_html
        self._extractor = extractor
        self._max_text = max_text
        self._read_risky = read_risky
        self._is_unchanged = is_unchanged
        self._bodies = bodies
        self._marks = marks

    def page(self, item: Item, served: Served | None, url: str) -> Page:
        """The page of an item; raises ExtractionError with the reason if there is none."""
        made = self.draft(item, served, url)
        return made if isinstance(made, Page) else self.read(made)

    def read(self, draft: Draft, answer: Answer | None = None) -> Page:
        """Read a page, and wait for it; there may be an ``answer`` of another process that was asked for it."""
        if answer is not None:
            made = self.answered(draft, answer)
        else:
            made = draft if draft.may_take_long else self.read_here(draft)
        if isinstance(made, Page):
            return made
        try:
            return self.finished(made, (self._read_risky or self._extracted)(made.raw))
        except ExtractionError as error:
            return self.finished(made, error)

    def draft(self, item: Item, served: Served | None, url: str, content_type: str | None = None) -> Page | Draft:
        """The same, but for a page that is to be read from HTML: that is left to whoever asked.

        ``content_type`` is what came with HTML that the item brings as bytes.
        """
        text, html = self.fields.text(item, "text"), self.fields.value(item, "html")
        if text:
            about = replace(_about(html, served, url), text=text)
            page = self.fields.said(item).whole(about, url, self._max_text)
            return self.marked(page, item, url) if self._marks else page
        served = None if html else served
        try:
            raw = replace(self._raw(html, served, url, content_type), said=self.fields.said(item))
            return Draft(raw, item, served, body=self._body(raw))
        except ExtractionError as error:
            raise with_cure(error, self.fields, item, served) from None

    def read_here(self, draft: Draft) -> Page | Draft:
        """Read a page in this process, but for one that may take long: that is left to whoever asked."""
        try:
            html = draft.raw.html()
        except ExtractionError as error:
            raise with_cure(error, self.fields, draft.item, draft.served) from None
        if is_too_large(html, self._max_html):
            return self.unread(draft, html_mark(html), "too_large")
        if is_risky(html):
            return self._found_risky(draft, html)
        return self.finished(draft, self._extracted(Raw(draft.raw.url, html)))

    def answered(self, draft: Draft, answer: Answer) -> Page | Draft:
        """The page of which another process says this; one that may take long is left to whoever asked."""
        if isinstance(answer, RiskyPage):
            return self._found_risky(draft, answer.html)
        if isinstance(answer, NoWorker):
            return self.read_here(draft)
        return self.finished(draft, answer)

    def _found_risky(self, draft: Draft, html: str) -> Page | Draft:
        """What is to be read of a page that may take long; one that was too much before, and is the same, need not."""
        mark = html_mark(html)
        if self._is_unchanged(draft.raw.url, mark):
            return self.unread(draft, mark, "too_slow")
        return replace(draft, raw=Raw(draft.raw.url, html, said=draft.raw.said), may_take_long=True)

    def finished(self, draft: Draft, read: Page | ExtractionError) -> Page:
        """The page, of what was read or of why it was not; raises ExtractionError if there is none."""
        if isinstance(read, Page):
            return self._whole(replace(read, body=draft.body), draft.raw)
        if read.reason in TOO_MUCH:
            return self.unread(draft, html_mark(draft.raw.html()), read.reason)
        raise with_cure(read, self.fields, draft.item, draft.served)

    def mark(self, draft: Draft) -> int:
        """By what a page that may take long is known to be unchanged."""
        return html_mark(draft.raw.html())

    def unread(self, draft: Draft, mark: int, why: Reason) -> Page:
        """The page of a draft that is not read, by its mark."""
        return self._whole(Page(draft.raw.url, html=mark, unread=why, body=draft.body), draft.raw)

    def _whole(self, page: Page, raw: Raw) -> Page:
        return raw.said.whole(page, raw.url, self._max_text)

    def _extracted(self, raw: Raw) -> Page:
        return extract(raw.html(), raw.url, max_html=self._max_html, extractor=self._extractor)

    def _body(self, raw: Raw) -> int:
        """By what the page is known again; an extractor of the user's may read it in the light of its URL."""
        if self._bodies is None:
            return 0
        url = raw.url if self._extractor is not None else ""
        return self._bodies.of(raw, self._max_html, self._max_text, *raw.said, url)

    def marked(self, page: Page, item: Item, url: str) -> Page:
        """With that by which an item with a short text is known to be unchanged, whose text the page has.

        One that is named by its text alone, or has very much, has none.
        """
        is_much = len(self.fields.text(item, "text")) > _MAX_MARKED
        return page if is_much or self.fields.is_named_by_content(item, url) else replace(page, html=mark_of(item))

    def _raw(self, html: Any, served: Served | None, url: str, content_type: str | None) -> Raw:
        """What an item's page is read from."""
        body = html if isinstance(html, bytes) else served.body if served is not None else b""
        if len(body) > _LONGEST * self._max_html:
            raise ExtractionError("too_large", f"the page has {len(body)} bytes, too many to decode")
        if html:
            return Raw(url, html, content_type) if isinstance(html, bytes) else Raw(url, joined(html))
        if served is not None:
            return served.raw(url)
        names = self.fields.names
        raise ExtractionError(
            "no_content",
            f"the item has neither the field {names['text']!r} nor {names['html']!r}, and there is no response for it. "
            "Name its fields in NEARDUP_FIELDS, or switch on the add-on: "
            'ADDONS = {"scrapy_neardup.Addon": 500}',
        )


def _about(html: Any, served: Served | None, url: str) -> Page:
    """What the HTML around an item's own text says of it: nothing if there is none, or it is another page's."""
    if html:
        return head(joined(html), url)
    if served is None or not served.is_text or "#" in url or not served.is_of(url):
        return Page(url)
    try:
        return head(served.html(), url)
    except ExtractionError:  # an API's answer, for instance; the item has its text
        return Page(url)
