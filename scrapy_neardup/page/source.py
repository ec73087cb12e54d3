"""The way from an item and its response to a Page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from scrapy_neardup.errors import ExtractionError, NoWorker, Reason
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, decode_body, extract, hash_html, parse_head
from scrapy_neardup.page.item import NO_METADATA, Item, ItemFields, ItemMetadata, hash_item, join_lines
from scrapy_neardup.page.limits import MAX_TEXT, is_risky, is_too_large
from scrapy_neardup.page.urls import plain_url


@dataclass(frozen=True, slots=True)
class PageContent:
    """The HTML of a page, neither decoded nor parsed. It can be sent to another process.

    ``content``: text, or a body with its ``content_type``. ``is_of_url``: whether it surely belongs to the URL; if not,
    the HTML must name the URL as canonical. ``metadata``: from the item.
    """

    url: str
    content: str | bytes
    content_type: str | None = None
    is_of_url: bool = True
    metadata: ItemMetadata = NO_METADATA

    @property
    def size(self) -> int:
        """Bytes or characters."""
        return len(self.content)

    def html(self) -> str:
        """Decode the HTML. Raises ExtractionError for other content (``not_html``) or another page (``other_page``)."""
        html = self.content
        if isinstance(html, bytes):
            html = decode_body(html, self.content_type)
        if not self.is_of_url and plain_url(parse_head(html, self.url).canonical) != plain_url(self.url):
            raise ExtractionError("other_page", f"the page does not name {self.url}")
        return html


def _encode(content: str | bytes) -> bytes:
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


@dataclass(frozen=True, slots=True)
class PageResponse:
    """A response from any crawler or archive.

    ``content_type``: the header. ``aliases``: URLs that redirected here. ``is_text``: whether the crawler takes the
    body for text.
    """

    url: str
    body: bytes
    status: int = 200
    content_type: str | None = None
    aliases: frozenset[str] = frozenset()
    is_text: bool = True

    def html(self) -> str:
        """Decode the body. Raises ExtractionError if it is not the HTML of a page."""
        return self.content_of(self.url).html()

    def content_of(self, url: str) -> PageContent:
        """Return the content of the page at ``url``. Raises ExtractionError for an error or a type other than HTML."""
        if self.status >= 400:
            # An errback's item has its own URL, but all of them share the server's error page.
            raise ExtractionError("http_error", f"the response has status {self.status}")
        kind = (self.content_type or "text/html").split(";")[0].strip().lower()
        if not (kind.startswith("text/") or kind.endswith(("html", "xml")) or kind == "application/octet-stream"):
            raise ExtractionError("not_html", f"the response is {kind}, not HTML")
        return PageContent(url, self.body, self.content_type, is_of_url=self.is_of(url))

    def is_of(self, url: str) -> bool:
        """Whether it answers for this URL: its own or an alias.

        >>> PageResponse("https://a.example/1", b"").is_of("http://a.example/1/#top")
        True
        """
        return plain_url(url) in {plain_url(one) for one in (self.url, *self.aliases)}


class BodyHasher:
    """Hashes the bytes of pages before they are read, with the secret of a state against forged collisions.

    ``rules``: all settings that affect a verdict, beside the page, its URL and the state. When one changes, all hashes
    change, and each page is read once more.
    """

    def __init__(self, hashes: Keyed, rules: Mapping[str, Any]) -> None:
        self._hash = blake2b(key=hashes.secret, digest_size=8, person=b"neardup bodies")
        self._hash.update(_pack(rules))

    def hash(self, content: PageContent, *about: object) -> int:
        """Return 64 bits of the body and of everything that affects its reading; ``about``: further values.

        0 if only the HTML can tell whether it belongs to the URL.

        >>> bodies = BodyHasher(Keyed(b"secret"), {})
        >>> one, two = bodies.hash(PageContent("u:1", b"<p>x")), bodies.hash(PageContent("u:2", b"<p>x"))
        >>> one == two != bodies.hash(PageContent("u:1", "<p>x"))
        True
        """
        if not content.is_of_url:
            return 0
        hashed = self._hash.copy()
        hashed.update(_pack([isinstance(content.content, str), content.content_type, *about]))
        hashed.update(_encode(content.content))
        return int.from_bytes(hashed.digest(), "big") or 1


def _pack(value: object) -> bytes:
    """Encode as JSON with the length in front."""
    packed = json.dumps(value, sort_keys=True, default=repr).encode()
    return len(packed).to_bytes(8, "big") + packed


#: Reasons of pages that are registered by their hash, though nothing could read them.
LIMIT_REASONS = ("too_large", "too_slow")
#: Bytes of a character, at most.
_MAX_CHAR = 4
#: The most characters of a text with an item hash.
_MAX_HASHED = 5_000_000
#: The least characters of a field that a message proposes as the text.
_LEAST_TEXT = 40

#: Reads a page. Raises ExtractionError.
ContentReader = Callable[[PageContent], Page]


@dataclass(frozen=True, slots=True)
class RiskyPage:
    """The HTML of a page that a worker did not read, because that may take long."""

    html: str


#: The answer of a worker.
Answer = Page | ExtractionError | RiskyPage


@dataclass(frozen=True, slots=True)
class UnreadPage:
    """A page to read from HTML, here or in another process. ``is_risky``: this may take long.

    ``body``: the hash of its bytes, which identifies it under any URL; 0 if it must be read.
    """

    content: PageContent
    item: Item
    response: PageResponse | None = None
    is_risky: bool = False
    body: int = 0

    @property
    def url(self) -> str:
        return self.content.url


class PageSource:
    """Makes pages from items. The fields of an item come first, its response fills the gaps.

    A page over a limit of size or time has no text and its reason in ``unread``.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        max_html: int,
        extractor: Extractor | None,
        *,
        max_text: int = MAX_TEXT,
        read_risky: ContentReader | None = None,
        is_unchanged: Callable[[str, int], bool] = lambda url, html_hash: False,
        bodies: BodyHasher | None = None,
        hashes_items: bool = True,
    ) -> None:
        """``fields``: see ``ItemFields``; ``max_html``: see ``extract``; ``max_text``: see ``limit_page``.

        ``read_risky`` reads risky pages in a worker; without it they are read here. ``is_unchanged``: whether the page
        of a URL has this hash already and need not be read. ``bodies`` hashes the bytes of pages; without it every page
        is read. ``hashes_items``: whether pages of items with text get an item hash at once, see ``add_item_hash``.
        """
        self.fields = ItemFields(fields)
        self._max_html = max_html
        self._extractor = extractor
        self._max_text = max_text
        self._read_risky = read_risky
        self._is_unchanged = is_unchanged
        self._bodies = bodies
        self._hashes_items = hashes_items

    def page(self, item: Item, response: PageResponse | None, url: str) -> Page:
        """Return the page of an item. Raises ExtractionError with the reason if there is none."""
        made = self.prepare(item, response, url)
        return made if isinstance(made, Page) else self.read(made)

    def prepare(
        self, item: Item, response: PageResponse | None, url: str, content_type: str | None = None
    ) -> Page | UnreadPage:
        """Return the page of an item that brings its text, or the unread page of one with HTML.

        ``content_type`` belongs to HTML that the item brings as bytes. Raises ExtractionError.
        """
        text, html = self.fields.text(item, "text"), self.fields.value(item, "html")
        if text:
            page = replace(_metadata_page(html, response, url), text=text)
            page = self.fields.metadata(item).apply_to(page, url, self._max_text)
            return self.add_item_hash(page, item, url) if self._hashes_items else page
        response = None if html else response
        try:
            content = replace(self._content(html, response, url, content_type), metadata=self.fields.metadata(item))
            return UnreadPage(content, item, response, body=self._hash_body(content))
        except ExtractionError as error:
            raise self._with_cure(error, item, response) from None

    def read(self, unread: UnreadPage, answer: Answer | None = None) -> Page:
        """Read a page, or take the ``answer`` of another process. Raises ExtractionError."""
        made = unread if unread.is_risky else self.read_quickly(unread, answer)
        if isinstance(made, Page):
            return made
        try:
            return self.finish(made, (self._read_risky or self._extract)(made.content))
        except ExtractionError as error:
            return self.finish(made, error)

    def read_quickly(self, unread: UnreadPage, answer: Answer | None = None) -> Page | UnreadPage:
        """Read a page here, or take the ``answer`` of another process. Return a risky page unread.

        Raises ExtractionError.
        """
        url = unread.url
        if answer is None or isinstance(answer, NoWorker):
            try:
                html = unread.content.html()
            except ExtractionError as error:
                raise self._with_cure(error, unread.item, unread.response) from None
            if is_too_large(html, self._max_html):
                return self.skip(unread, hash_html(html), "too_large")
            answer = RiskyPage(html) if is_risky(html) else self._extract(PageContent(url, html))
        if not isinstance(answer, RiskyPage):
            return self.finish(unread, answer)
        html_hash = hash_html(answer.html)
        if self._is_unchanged(url, html_hash):  # the same HTML took too long before
            return self.skip(unread, html_hash, "too_slow")
        content = PageContent(url, answer.html, metadata=unread.content.metadata)
        return replace(unread, content=content, is_risky=True)

    def finish(self, unread: UnreadPage, result: Page | ExtractionError) -> Page:
        """Return the judged page. Raises ExtractionError if it could not be read for a reason other than a limit."""
        if isinstance(result, Page):
            return self._complete(replace(result, body=unread.body), unread)
        if result.reason in LIMIT_REASONS:
            return self.skip(unread, self.hash_html(unread), result.reason)
        raise self._with_cure(result, unread.item, unread.response)

    def skip(self, unread: UnreadPage, html_hash: int, reason: Reason) -> Page:
        """Return a page without text that was not read."""
        return self._complete(Page(unread.url, html=html_hash, unread=reason, body=unread.body), unread)

    def hash_html(self, unread: UnreadPage) -> int:
        """Return the hash that shows whether an unread page has changed."""
        return hash_html(unread.content.html())

    def add_item_hash(self, page: Page, item: Item, url: str) -> Page:
        """Add the hash of the item, which shows whether a page with little text has changed.

        There is none for a page that is named by its content, and for a very long text.
        """
        is_long = len(self.fields.text(item, "text")) > _MAX_HASHED
        return page if is_long or self.fields.is_content_name(item, url) else replace(page, html=hash_item(item))

    def _complete(self, page: Page, unread: UnreadPage) -> Page:
        return unread.content.metadata.apply_to(page, unread.url, self._max_text)

    def _extract(self, content: PageContent) -> Page:
        return extract(content.html(), content.url, max_html=self._max_html, extractor=self._extractor)

    def _hash_body(self, content: PageContent) -> int:
        if self._bodies is None:
            return 0
        url = content.url if self._extractor is not None else ""  # the user's extractor may depend on it
        return self._bodies.hash(content, self._max_html, self._max_text, *content.metadata, url)

    def _content(self, html: Any, response: PageResponse | None, url: str, content_type: str | None) -> PageContent:
        body = html if isinstance(html, bytes) else response.body if response is not None else b""
        if len(body) > _MAX_CHAR * self._max_html:
            raise ExtractionError("too_large", f"the page has {len(body)} bytes, too many to decode")
        if isinstance(html, bytes) and html:
            return PageContent(url, html, content_type)
        if html:
            return PageContent(url, join_lines(html))
        if response is not None:
            return response.content_of(url)
        names = self.fields.names
        raise ExtractionError(
            "no_content",
            f"the item has neither the field {names['text']!r} nor {names['html']!r}, and there is no response for it. "
            'Name its fields in NEARDUP_FIELDS, or set ADDONS = {"scrapy_neardup.Addon": 500}',
        )

    def _with_cure(self, error: ExtractionError, item: Item, response: PageResponse | None) -> ExtractionError:
        """Add a cure to an error if the response is not the item's page."""
        if response is None or error.reason not in ("not_html", "other_page"):
            return error
        cure = f"{self.text_cure(item)}. If an earlier response is its page, set meta={{'neardup_response': response}}"
        if error.reason == "not_html":
            return ExtractionError(error.reason, f"{error}. {cure}")
        return ExtractionError(
            error.reason,
            f"the item's URL is not that of its response ({response.url}). {cure}. To leave it out, set "
            "meta={'neardup': False} on its request",
        )

    def text_cure(self, item: Item) -> str:
        """Return the setting by which an item is judged by its own text."""
        texts = {name: len(join_lines(item[name])) for name in item if name not in self.fields.names.values()}
        longest = max(texts, key=lambda name: texts[name], default="")
        if texts.get(longest, 0) >= _LEAST_TEXT:
            return f"If the field {longest!r} is its text, set NEARDUP_FIELDS = {{'text': {longest!r}}}"
        return "If the item has its own text, name that field, for example NEARDUP_FIELDS = {'text': 'body'}"


def _metadata_page(html: Any, response: PageResponse | None, url: str) -> Page:
    """Return the metadata around an item's own text; empty if there is no HTML, or it belongs to another page."""
    if html:
        return parse_head(join_lines(html), url)
    if response is None or not response.is_text or "#" in url or not response.is_of(url):
        return Page(url)
    try:
        return parse_head(response.html(), url)
    except ExtractionError:  # the answer of an API, for instance
        return Page(url)
