"""The one spider of the example."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import Request, Spider
from scrapy.http import Response


class MirrorSpider(Spider):
    """Crawl every page of the local site; nothing here knows about near-duplicates."""

    name = "mirror"

    async def start(self) -> AsyncIterator[Request]:
        """Begin at the index of the site that LocalSite serves."""
        yield Request(f"http://127.0.0.1:{self.settings.getint('NEWSMIRROR_PORT')}/index.html")

    def parse(self, response: Response) -> Iterator[Request]:
        """Follow the links of the index; falling priorities keep their order."""
        for position, link in enumerate(response.css("ol a::attr(href)").getall()):
            yield response.follow(link, callback=self.parse_page, priority=-position)

    def parse_page(self, response: Response) -> Iterator[dict[str, Any]]:
        """Yield the address and the headline of one page."""
        yield {"url": response.url, "title": response.css("h1::text").get(default="")}
