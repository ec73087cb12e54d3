"""A response before it is read, and the digest of its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.page.extraction import decode_body, parse_head
from scrapy_neardup.page.item import NO_METADATA, ItemMetadata


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


def plain_url(url: str) -> str:
    """Return a URL without scheme, fragment and final slash.

    >>> plain_url("https://a.example/1/#top")
    'a.example/1'
    """
    return url.partition("#")[0].partition("://")[2].rstrip("/") or url


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
