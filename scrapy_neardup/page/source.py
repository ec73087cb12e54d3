"""The fields of an item or a record, with the response that it was taken from, to the page that is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer, MayTakeLong, NoReader
from scrapy_neardup.page.bodies import Bodies
from scrapy_neardup.page.extraction import (
    Extractor,
    extract,
    head,
    html_mark,
    is_too_large,
    split_keywords,
)
from scrapy_neardup.page.limits import MAX_TEXT, limited
from scrapy_neardup.page.marks import mark_of
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.risk import is_risky
from scrapy_neardup.page.served import Served
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.text.normalize import normalize

Item = Mapping[str, Any]

#: Bytes of a character, at most.
_LONGEST = 4
#: Characters from which a field of an item may be its text.
_LEAST_TEXT = 40
#: Before what an item is known by that has no URL.
_BY_TEXT = "text:"
#: Why a page is ``unread``.
TOO_MUCH = ("too_large", "too_slow")
#: Characters of a text up to which an item is given a mark: more is no more than counted.
_MAX_MARKED = 5_000_000


#: What a page is read from to what is read of it; raises ExtractionError.
Read = Callable[[Raw], Page]


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
        bodies: Bodies | None = None,
        marks: bool = True,
    ) -> None:
        """``fields``: which field of an item holds what; ``max_html``: see ``extract``; ``max_text``: see ``limited``.

        ``apart`` reads pages that may take long, where they can be ended; without it they are read as all others.
        ``is_unchanged``: whether a page is known by its URL and its mark, and need not be read. ``bodies``: by what
        drafts are known whose bytes were judged before; without it none is. ``marks``: whether an item that brings its
        text is given its mark at once; if not, see ``marked``.
        """
        self._fields = fields
        self._max_html = max_html
        self._extractor = extractor
        self._max_text = max_text
        self._apart = apart
        self._is_unchanged = is_unchanged
        self._bodies = bodies
        self._marks = marks

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
        return f"{_BY_TEXT}{OPEN.of(str(content)):016x}"

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
            return self.finished(made, (self._apart or self._extracted)(made.raw))
        except ExtractionError as error:
            return self.finished(made, error)

    def draft(self, item: Item, served: Served | None, url: str, content_type: str | None = None) -> Page | Draft:
        """The same, but for a page that is to be read from HTML: that is left to whoever asked.

        ``content_type`` is what came with HTML that the item brings as bytes.
        """
        text, html = _joined(self._value(item, "text")), self._value(item, "html")
        if text:
            page = self._whole(_about(html, served, url), item, url, text)
            return self.marked(page, item, url) if self._marks else page
        served = None if html else served
        try:
            raw = self._raw(html, served, url, content_type)
            return Draft(raw, item, served, body=self._body(raw, item))
        except ExtractionError as error:
            raise self._with_cure(error, item, served) from None

    def read_here(self, draft: Draft) -> Page | Draft:
        """Read a page in this process, but for one that may take long: that is left to whoever asked."""
        try:
            html = draft.raw.html()
        except ExtractionError as error:
            raise self._with_cure(error, draft.item, draft.served) from None
        if is_too_large(html, self._max_html):
            return self.unread(draft, html_mark(html), "too_large")
        if is_risky(html):
            return self._found_risky(draft, html)
        return self.finished(draft, self._extracted(Raw(draft.raw.url, html)))

    def answered(self, draft: Draft, answer: Answer) -> Page | Draft:
        """The page of which another process says this; one that may take long is left to whoever asked."""
        if isinstance(answer, MayTakeLong):
            return self._found_risky(draft, answer.html)
        if isinstance(answer, NoReader):
            return self.read_here(draft)
        return self.finished(draft, answer)

    def _found_risky(self, draft: Draft, html: str) -> Page | Draft:
        """What is to be read of a page that may take long; one that was too much before, and is the same, need not."""
        mark = html_mark(html)
        if self._is_unchanged(draft.raw.url, mark):
            return self.unread(draft, mark, "too_slow")
        return replace(draft, raw=Raw(draft.raw.url, html), may_take_long=True)

    def finished(self, draft: Draft, read: Page | ExtractionError) -> Page:
        """The page, of what was read or of why it was not; raises ExtractionError if there is none."""
        if isinstance(read, Page):
            return self._whole(replace(read, body=draft.body), draft.item, draft.raw.url)
        if read.reason in TOO_MUCH:
            return self.unread(draft, html_mark(draft.raw.html()), read.reason)
        raise self._with_cure(read, draft.item, draft.served)

    def mark(self, draft: Draft) -> int:
        """By what a page that may take long is known to be unchanged."""
        return html_mark(draft.raw.html())

    def unread(self, draft: Draft, mark: int, why: str) -> Page:
        """The page of a draft that is not read, by its mark."""
        page = Page(draft.raw.url, html=mark, unread=why, body=draft.body)
        return self._whole(page, draft.item, draft.raw.url)

    def _extracted(self, raw: Raw) -> Page:
        return extract(raw.html(), raw.url, max_html=self._max_html, extractor=self._extractor)

    def _body(self, raw: Raw, item: Item) -> int:
        """By what the page is known again; an extractor of the user's may read it in the light of its URL."""
        if self._bodies is None:
            return 0
        said = (_joined(self._value(item, "title")), _words(self._value(item, "keywords")))
        url = raw.url if self._extractor is not None else ""
        description = _joined(self._value(item, "description"))
        return self._bodies.of(raw, self._max_html, self._max_text, *said, description, url)

    def _with_cure(self, error: ExtractionError, item: Item, served: Served | None) -> ExtractionError:
        """With what is to be done about an item of which the response is not the page."""
        if served is None or error.reason not in ("not_html", "other_page"):
            return error
        if error.reason == "not_html":
            return ExtractionError(error.reason, f"{error}. {self._cure(item)}")
        return ExtractionError(
            error.reason,
            f"the item's URL is not that of its response, {served.url}, which says nothing of it, then. "
            f"{self._cure(item)}; if it is not to be judged, have its request opt out: meta={{'neardup': False}}",
        )

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

    def _whole(self, page: Page, item: Item, url: str, text: str = "") -> Page:
        """With what the item says of it, which may be the ``text``, and no more of all than is judged."""
        page = replace(
            page,
            text=text or page.text,
            title=_joined(self._value(item, "title")) or page.title,
            keywords=_words(self._value(item, "keywords")) or page.keywords,
            description=_joined(self._value(item, "description")) or page.description,
            site=site_of(url),
        )
        return limited(page, self._max_text)

    def marked(self, page: Page, item: Item, url: str) -> Page:
        """With that by which an item with a short text is known to be unchanged, whose text the page has.

        One that is named by its text alone, or has very much, has none.
        """
        text = _joined(self._value(item, "text"))
        is_named_by_it = url.startswith(_BY_TEXT) and url == self.name_of_content(item)
        return page if len(text) > _MAX_MARKED or is_named_by_it else replace(page, html=mark_of(item))

    def _raw(self, html: Any, served: Served | None, url: str, content_type: str | None) -> Raw:
        """What an item's page is read from."""
        body = html if isinstance(html, bytes) else served.body if served is not None else b""
        if len(body) > _LONGEST * self._max_html:
            raise ExtractionError("too_large", f"the page has {len(body)} bytes, which are not even decoded")
        if html:
            return Raw(url, html, content_type) if isinstance(html, bytes) else Raw(url, _joined(html))
        if served is not None:
            return served.raw(url)
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
