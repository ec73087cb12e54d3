"""The one spider of the example."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response


class MirrorSpider(Spider):
    """Crawl every page of the local sites; nothing here knows about near-duplicates."""

    name = "mirror"

    async def start(self) -> AsyncIterator[Request]:
        """Begin at the index that LocalSite serves."""
        yield Request(f"{self._server()}/index.html")

    def parse(self, response: Response) -> Iterator[Request]:
        """Follow the links of the index; falling priorities keep their order."""
        for position, link in enumerate(response.css("ol a::attr(href)").getall()):
            # The sites are no more than names: LocalSite answers for all of them, one page after the other.
            meta = {"proxy": self._server(), "download_slot": "all"}
            yield response.follow(link, callback=self.parse_page, priority=-position, meta=meta)

    def _server(self) -> str:
        return f"http://127.0.0.1:{self.settings.getint('NEWSMIRROR_PORT')}"

    def parse_page(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield the address and the headline of one page."""
        yield {"url": response.url, "title": response.css("h1::text").get(default="")}
