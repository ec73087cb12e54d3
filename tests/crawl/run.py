"""Run one crawl (or several in one process) in a process of its own; what came of it goes to a JSON file.

    python -m tests.crawl.run JOB.json

JOB.json: {"crawls": [{"spider", "arguments", "settings"}], "reactor": asyncio|none, "out": path}. A command of
Scrapy prints to a file: {"command": ["crawl", …], "out": path}
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.cmdline import execute
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings import default_settings as defaults
from scrapy.utils.misc import load_object

from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.methods import make_method
from scrapy_neardup.state import recipe
from tests.crawl import project

QUIET = {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "ROBOTSTXT_OBEY": False, "LOG_LEVEL": "DEBUG"}


# A process that forks crawls has loaded the modules of Scrapy. It chooses no reactor, so the crawl can.
BASES = (defaults.EXTENSIONS_BASE, defaults.DOWNLOADER_MIDDLEWARES_BASE, defaults.SPIDER_MIDDLEWARES_BASE)
for path in (*chain.from_iterable(BASES), *defaults.DOWNLOAD_HANDLERS_BASE.values()):
    load_object(path)
for name in ("scrapy.core.engine", "scrapy.squeues", "scrapy_neardup.crawl.pipeline", "scrapy_neardup.crawl.session"):
    import_module(name)
state_recipe(make_method("cascade", {}), None)  # which needs the dictionary, tables of characters and trafilatura


def main(path: Path) -> None:
    setattr(recipe, "token_bytes", _same_bytes)  # noqa: B010  # it is imported there
    job: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if "command" in job:
        os.dup2(os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        execute(["scrapy", *job["command"]])
    settings = dict(QUIET)
    if job["reactor"] == "none":
        settings["TWISTED_REACTOR_ENABLED"] = False
    process = AsyncCrawlerProcess(settings)
    results = []
    for one in job["crawls"]:
        spider = type(one["spider"], (getattr(project, one["spider"]),), {"custom_settings": one["settings"]})
        crawler = process.create_crawler(spider)
        result: dict[str, Any] = {"items": []}
        crawler.signals.connect(collector(result["items"]), signals.item_scraped, weak=False)
        process.crawl(crawler, **one["arguments"])
        results.append((crawler, result))
    process.start()
    for crawler, result in results:
        result["stats"] = crawler.stats.get_stats()
    Path(job["out"]).write_text(json.dumps([result for _, result in results], default=str), encoding="utf-8")
    sys.exit(1 if process.bootstrap_failed else 0)


def _same_bytes(nbytes: int | None = None) -> bytes:
    """A new state draws one secret: a test that fails fails again."""
    return bytes(range(nbytes or 32))


def collector(items: list[dict[str, Any]]) -> Callable[..., None]:
    def collect(item: Any) -> None:
        items.append(ItemAdapter(item).asdict())

    return collect


if __name__ == "__main__":
    main(Path(sys.argv[1]))
