"""A response before it is read, and the digest of its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.page.extraction import decode_body, head
from scrapy_neardup.page.item import NO_HEAD, ItemHead

# ----------------------------------------------------------------------------------------------------------------------
# What a page is read from, as it may be sent to another process: nothing in it is decoded or parsed yet.


@dataclass(frozen=True, slots=True)
class Raw:
    """The HTML of the page at a URL: as text, or as a body with the ``content_type`` that came with it.

    ``is_named``: whether it is known to be that page's; if not, it has to name the URL as its own. ``said``: what an
    item says of it.
    """

    url: str
    content: str | bytes
    content_type: str | None = None
    is_named: bool = True
    said: ItemHead = NO_HEAD

    @property
    def size(self) -> int:
        """Its bytes or characters."""
        return len(self.content)

    def html(self) -> str:
        """The HTML; raises ExtractionError if it is none (``not_html``), or is another page's (``other_page``)."""
        html = self.content
        if isinstance(html, bytes):
            html = decode_body(html, self.content_type)
        if not self.is_named and plain_url(head(html, self.url).canonical) != plain_url(self.url):
            raise ExtractionError("other_page", f"the page does not name {self.url}")
        return html


def plain_url(url: str) -> str:
    """A URL without what makes it no other page: scheme, mark of a place, and slash at the end.

    >>> plain_url("https://a.example/1/#top")
    'a.example/1'
    """
    return url.partition("#")[0].partition("://")[2].rstrip("/") or url


# ----------------------------------------------------------------------------------------------------------------------
# A response as the rest of this package knows it, whichever crawler or archive it came from.


@dataclass(frozen=True, slots=True)
class Served:
    """What a server gave for a URL.

    ``aliases``: URLs that led here, such as those that were redirected. ``content_type``: the header, if there was
    one. ``is_text``: whether the crawler takes the body for text.
    """

    url: str
    body: bytes
    status: int = 200
    content_type: str | None = None
    aliases: frozenset[str] = frozenset()
    is_text: bool = True

    def html(self) -> str:
        """The decoded body; raises ExtractionError if it is no HTML of a page."""
        return self.raw(self.url).html()

    def raw(self, url: str) -> Raw:
        """The body, from which the page at a URL is to be read; raises ExtractionError where it need not be tried."""
        if self.status >= 400:
            # An item of an errback stands for its URL; the server's error page is the same for all of them.
            raise ExtractionError("http_error", f"the response has status {self.status}")
        kind = (self.content_type or "text/html").split(";")[0].strip().lower()
        if not (kind.startswith("text/") or kind.endswith(("html", "xml")) or kind == "application/octet-stream"):
            raise ExtractionError("not_html", f"the response is {kind}, not HTML")
        return Raw(url, self.body, self.content_type, is_named=self.is_of(url))

    def is_of(self, url: str, html: str = "") -> bool:
        """Whether it answers for a URL: its own, one that was redirected to it, or the one that its HTML names.

        >>> Served("https://a.example/1", b"").is_of("http://a.example/1/#top")
        True
        """
        if plain_url(url) in {plain_url(one) for one in (self.url, *self.aliases)}:
            return True
        return bool(html) and plain_url(url) == plain_url(head(html, url).canonical)


# ----------------------------------------------------------------------------------------------------------------------
# By what the very bytes of a page are known again, before anything in them is decoded or parsed.


class Bodies:
    """Digests of what pages are read from, under the secret of a state, so that nobody can make two with one digest.

    ``rules``: all that the verdict on a page depends on beside the page, its URL and what else the state holds. Once
    they have changed, every digest has, and each page is read once more.
    """

    def __init__(self, hashes: Keyed, rules: Mapping[str, Any]) -> None:
        self._hash = blake2b(key=hashes.secret, digest_size=8, person=b"neardup bodies")
        self._hash.update(_packed(rules))

    def of(self, raw: Raw, *about: object) -> int:
        """64 bits of a body and of all that decides how it is read; ``about``: what else is known of the page.

        0 for one of which only its own HTML can tell whether it is the page of its URL.

        >>> bodies = Bodies(Keyed(b"secret"), {})
        >>> bodies.of(Raw("u:1", b"<p>x")) == bodies.of(Raw("u:2", b"<p>x")) != bodies.of(Raw("u:1", "<p>x"))
        True
        """
        if not raw.is_named:
            return 0
        hashed = self._hash.copy()
        is_text = isinstance(raw.content, str)
        hashed.update(_packed([is_text, raw.content_type, *about]))
        hashed.update(raw.content.encode("utf-8", "surrogatepass") if isinstance(raw.content, str) else raw.content)
        return int.from_bytes(hashed.digest(), "big") or 1


def _packed(value: object) -> bytes:
    """As JSON, with its length before it."""
    packed = json.dumps(value, sort_keys=True, default=repr).encode()
    return len(packed).to_bytes(8, "big") + packed
