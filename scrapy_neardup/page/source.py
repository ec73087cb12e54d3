"""The way from an item and its response to a Page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, HtmlReader, PageContent, hash_html, parse_head
from scrapy_neardup.page.item import Item, ItemFields, ItemMetadata, join_lines
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.urls import plain_url, site_of


@dataclass(frozen=True, slots=True)
class PageResponse:
    """A response from any crawler or archive.

    ``content_type``: the header. ``aliases``: URLs that redirected here. ``is_text``: False for a body that the
    crawler takes for binary.
    """

    url: str
    body: bytes
    status: int = 200
    content_type: str | None = None
    aliases: frozenset[str] = frozenset()
    is_text: bool = True

    def content_of(self, url: str) -> PageContent:
        """Return the content of the page at ``url``. Raises ExtractionError for an error or a type other than HTML."""
        if self.status >= 400:
            # An errback's item has its own URL, but all of them share the server's error page.
            raise ExtractionError("http_error", f"the response has status {self.status}")
        kind = (self.content_type or "text/html").split(";")[0].strip().lower()
        is_html = kind.startswith("text/") or kind.endswith(("html", "xml")) or kind == "application/octet-stream"
        if not (is_html and self.is_text):
            raise ExtractionError("not_html", f"the response is {'binary' if is_html else kind}, not HTML")
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
        hashed, body = self._hash.copy(), content.content
        hashed.update(_pack([isinstance(body, str), content.content_type, *about]))
        hashed.update(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body)
        return int.from_bytes(hashed.digest(), "big") or 1


def _pack(value: object) -> bytes:
    """Encode as JSON with the length in front."""
    packed = json.dumps(value, sort_keys=True, default=repr).encode()
    return len(packed).to_bytes(8, "big") + packed


#: Reasons of pages that are registered by their hash, though nothing could read them.
LIMIT_REASONS = ("too_large", "too_slow")
#: Bytes of a character, at most.
_MAX_CHAR = 4
#: The setting by which an item is judged by its own text.
TEXT_CURE = "If the item has its own text, name that field, for example NEARDUP_FIELDS = {'text': 'body'}"


@dataclass(frozen=True, slots=True)
class UnreadPage:
    """A page to read from HTML, here or in another process.

    ``url``: its name in the state. ``metadata``: of the item. ``body``: the hash of its bytes, which identifies it
    under any URL; 0 if it must be read.
    """

    url: str
    content: PageContent
    metadata: ItemMetadata
    response: PageResponse | None = None
    body: int = 0


class PageSource:
    """Makes pages from items. The fields of an item come first, its response fills the gaps.

    A page over a limit of size or time has no text and its reason in ``unread``.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        reader: HtmlReader,
        read_risky: Callable[[PageContent], Answer] | None = None,
        bodies: BodyHasher | None = None,
        *,
        hashes_items: bool = True,
    ) -> None:
        """``fields``: see ``ItemFields``. ``reader`` reads pages here.

        ``read_risky`` reads pages that may take long, in a worker; without it they are read here. ``bodies`` hashes the
        bytes of pages; without it every page is read. ``hashes_items``: whether pages of items with text have the hash
        of their item at once, see ``ItemFields.hash``.
        """
        self.fields = ItemFields(fields)
        self._reader = reader
        self._read_risky = read_risky or reader.read
        self._bodies = bodies
        self._hashes_items = hashes_items

    def page(self, item: Item, response: PageResponse | None, url: str) -> Page:
        """Return the page of an item. Raises ExtractionError with the reason if there is none."""
        made = self.prepare(item, response, url)
        return made if isinstance(made, Page) else self.read(made)

    def prepare(
        self, item: Item, response: PageResponse | None, url: str, content_type: str | None = None, name: str = ""
    ) -> Page | UnreadPage:
        """Return the page of an item that brings its text, or the unread page of one with HTML.

        ``content_type`` belongs to HTML that the item brings as bytes. ``name``: the page's name in the state, if that
        is not the URL. Raises ExtractionError.
        """
        text, html = self.fields.text(item, "text"), self.fields.value(item, "html")
        metadata = self.fields.metadata(item)
        if text:
            hashed = self.fields.hash(item, url) if self._hashes_items else 0
            return self._complete(_head(html, response, url), metadata, url, name or url, text=text, html=hashed)
        response = None if html else response
        try:
            content = self._content(html, response, url, content_type)
            return UnreadPage(name or url, content, metadata, response, self._hash_body(content, metadata))
        except ExtractionError as error:
            raise _with_cure(error, response) from None

    def read(self, unread: UnreadPage, answer: Answer = None) -> Page:
        """Read a page, or take the ``answer`` of a worker. Raises ExtractionError."""
        if answer is None or isinstance(answer, NoWorker):
            answer = self.read_content(unread.content)
        return self.finish(unread, answer)

    def read_content(self, content: PageContent, *, only_quick: bool = False) -> Answer:
        """Read a page here, or in a worker if that may take long; then None if ``only_quick`` is wanted."""
        answer = self._reader.read(content, only_quick=True)
        return self._read_risky(content) if answer is None and not only_quick else answer

    def finish(self, unread: UnreadPage, answer: Answer) -> Page:
        """Return the page of an answer. Raises ExtractionError, but a page over a limit has no text instead."""
        assert answer is not None
        found = answer
        if isinstance(found, ExtractionError):
            if found.reason not in LIMIT_REASONS:
                raise _with_cure(found, unread.response)
            found = Page(unread.url, html=hash_html(unread.content.html()), unread=found.reason)
        return self._complete(found, unread.metadata, unread.content.url, unread.url, body=unread.body)

    def _complete(
        self, page: Page, item: ItemMetadata, url: str, name: str, text: str = "", html: int = 0, body: int = 0
    ) -> Page:
        """Return the page to judge: with the fields of its item, the site of its URL, and within ``limit_page``."""
        return limit_page(  # ``replace`` takes five times as long
            Page(
                url=name,
                title=item.title or page.title,
                keywords=item.keywords or page.keywords,
                description=item.description or page.description,
                text=text or page.text,
                canonical=page.canonical,
                html=html or page.html,
                site=site_of(url),
                main=page.main,
                headline=page.headline,
                links=page.links,
                reader=page.reader,
                unread=page.unread,
                quotes=page.quotes,
                body=body,
                address="" if name == url else url,
            ),
            self._reader.max_text,
        )

    def _hash_body(self, content: PageContent, metadata: ItemMetadata) -> int:
        if self._bodies is None:
            return 0
        reader = self._reader
        url = content.url if reader.extractor is not None else ""  # the user's extractor may depend on it
        return self._bodies.hash(content, reader.max_html, reader.max_text, *metadata, url)

    def _content(self, html: Any, response: PageResponse | None, url: str, content_type: str | None) -> PageContent:
        body = html if isinstance(html, bytes) else response.body if response is not None else b""
        if len(body) > _MAX_CHAR * self._reader.max_html:
            raise ExtractionError("too_large", f"the page has {len(body)} bytes, too many to decode")
        if isinstance(html, bytes) and html:
            return PageResponse(url, html, content_type=content_type).content_of(url)
        if html:
            return PageContent(url, join_lines(html))
        if response is not None:
            return response.content_of(url)
        names = self.fields.names
        raise ExtractionError(
            "no_content",
            f"the item has neither the field {names['text']!r} nor {names['html']!r}, and there is no response for it, "
            "as in start(), in an errback, or without the add-on. Name its fields in NEARDUP_FIELDS, or set "
            'ADDONS = {"scrapy_neardup.Addon": 500}',
        )


def _with_cure(error: ExtractionError, response: PageResponse | None) -> ExtractionError:
    """Add a cure to an error if the response is not the item's page."""
    if response is None or error.reason not in ("not_html", "other_page"):
        return error
    why = str(error)
    if error.reason == "other_page":
        why = f"the item's URL is not that of its response ({response.url})"
    cures = (
        TEXT_CURE,
        "If an earlier response is its page, give the item that HTML in a field named html",
        "To leave it out, set meta={'neardup': False} on its request",
    )
    return ExtractionError(error.reason, ". ".join((why, *cures)))


def _head(html: Any, response: PageResponse | None, url: str) -> Page:
    """Return the metadata around an item's own text; empty if there is no HTML, or it belongs to another page."""
    if html:
        return parse_head(join_lines(html), url)
    if response is None or not response.is_text or "#" in url or not response.is_of(url):
        return Page("")
    try:
        return parse_head(response.content_of(response.url).html(), url)
    except ExtractionError:  # the answer of an API, for instance
        return Page("")
