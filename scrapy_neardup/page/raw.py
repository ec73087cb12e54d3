"""What a page is read from, as it may be sent to another process: nothing in it is decoded or parsed yet."""

from __future__ import annotations

from dataclasses import dataclass

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.extraction import decode_body, head
from scrapy_neardup.page.item_head import NO_HEAD, ItemHead
from scrapy_neardup.page.worker import Message


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

    def message(self) -> Message:
        """As it is sent."""
        content = self.content
        text = isinstance(content, str)
        told = {"url": self.url, "text": text, "type": self.content_type, "named": self.is_named, "said": self.said}
        return Message(told, content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)

    @classmethod
    def of_message(cls, message: Message) -> Raw:
        """The same at the other end."""
        told, content = message
        html = content.decode("utf-8", "surrogatepass") if told["text"] else content
        return cls(told["url"], html, told["type"], is_named=told["named"], said=ItemHead.of(told["said"]))

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
