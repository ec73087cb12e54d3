"""A response as the rest of this package knows it, whichever crawler or archive it came from."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.extraction import head
from scrapy_neardup.page.raw import Raw, plain_url


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
