"""Memory of a crawl whose spider yields pages faster than they are judged, with and without the add-on.

    python benchmarks/backlog.py [PAGES] [--source items start site] [--workers none 0 2]

The crawl's own process makes the pages of 130 kB. ``items``: a callback yields items with HTML, for responses of one
byte. ``start``: the items come from ``start()``. ``site``: each page is a response; Scrapy by itself bounds only
these. Each row is a process of its own: its memory after each tenth of the pages, and its peak (Linux only).
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import scrapy
from scrapy import signals
from scrapy.crawler import AsyncCrawlerProcess
from workers import words

_PADDING = "<script>/*" + "x" * 126_000 + "*/</script>"
_TENTHS = 10


def made_page(number: int) -> str:
    """A page with an article of its own."""
    own = random.Random(number)
    article = "".join(f"<p>{words(own, 15).capitalize()}. {words(own, 12)}. {words(own, 10)}.</p>" for _ in range(6))
    head = f"<!doctype html><html><head><title>{words(own, 9)}</title></head>"
    return f"{head}<body><main><article><h1>{words(own, 9)}</h1>{article}</article></main>{_PADDING}</body></html>"


class Pages:
    """A download handler that makes pages."""

    lazy = False

    def __init__(self, is_site: bool) -> None:
        self._is_site = is_site

    @classmethod
    def from_crawler(cls, crawler: Any) -> Pages:
        return cls(crawler.spider.source == "site")

    async def download_request(self, request: scrapy.Request) -> scrapy.http.Response:
        body = made_page(int(request.url.rpartition("/")[2])) if self._is_site else "x"
        return scrapy.http.HtmlResponse(request.url, body=body.encode(), encoding="utf-8", request=request)

    async def close(self) -> None:
        """Nothing is open."""


class Articles(scrapy.Spider):
    """Yields all pages from one of the sources."""

    name = "articles"
    count = 0
    source = ""

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.count):
            if self.source == "start":
                yield self.item(number)
            else:
                yield scrapy.Request(f"made://a.example/{number}")

    def parse(self, response: scrapy.http.Response) -> Iterator[Any]:
        number = int(response.url.rpartition("/")[2])
        yield {"url": f"http://a.example/{number}"} if self.source == "site" else self.item(number)

    def item(self, number: int) -> dict[str, str]:
        """An item with its page."""
        return {"url": f"http://a.example/{number}", "html": made_page(number)}


def crawl(source: str, workers: str, count: int) -> None:
    """Crawl in this process, and print the figures as JSON."""
    held: list[float] = []
    seen = 0

    def scraped() -> None:
        nonlocal seen
        seen += 1
        if seen % max(1, count // _TENTHS) == 0:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            held.append(pages * resource.getpagesize() / 2**20)

    with tempfile.TemporaryDirectory() as folder:
        settings: dict[str, Any] = {"LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}
        settings |= {"DOWNLOAD_HANDLERS": {"made": Pages}, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
        if workers != "none":
            settings |= {"ADDONS": {"scrapy_neardup.Addon": 500}, "NEARDUP_WORKERS": workers}
            settings |= {"NEARDUP_STORE": f"leveldb://{folder}/state"}
        process = AsyncCrawlerProcess(settings)
        crawler = process.create_crawler(Articles)
        crawler.signals.connect(scraped, signals.item_scraped)
        begun = perf_counter()
        process.crawl(crawler, source=source, count=count)
        process.start()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"held": held, "most": most, "rate": seen / (perf_counter() - begun)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=int, nargs="?", default=50_000)
    parser.add_argument("--source", nargs="+", default=["items", "start", "site"])
    parser.add_argument("--workers", nargs="+", default=["none", "0", "2"])
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        source, workers = given.one
        crawl(source, workers, given.pages)
        return
    print("| source | workers | MiB at each tenth | at most | pages/s |\n|---|---|---|---|---|")
    for source in given.source:
        for workers in given.workers:
            command = [sys.executable, __file__, str(given.pages), "--one", source, workers]
            found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            held = " ".join(f"{one:.0f}" for one in found["held"])
            print(f"| {source} | {workers} | {held} | {found['most']:.0f} | {found['rate']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
