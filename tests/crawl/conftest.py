"""``crawl``: a whole Scrapy crawl in a process of its own, in a directory of the test's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.crawl import forked
from tests.crawl.engineless import Result
from tests.crawl.pages import Content, html, serve

ROOT = Path(__file__).parents[2]
ADDONS = {"scrapy_neardup.Addon": 500}
PLYVEL = find_spec("plyvel") is not None
#: The paths of ``news``.
NEWS = ["/bridge-zh", "/tea-zh", "/copy"]
SLUGS = ["bridge-zh", "tea-zh", "kelp-en", "metro-zh", "goats-en", "snow-zh", "tram-en", "honey-zh"]
#: Each page is through before the next is asked for; older versions of Scrapy hand on whatever came meanwhile.
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1}


@dataclass
class Site:
    base: str
    content: Content


@pytest.fixture
def site() -> Iterator[Site]:
    content: Content = {}
    with serve(content) as base:
        yield Site(base, content)


Crawl = Callable[..., Result]


def job(
    site: Site, paths: Sequence[str], settings: dict[str, Any], *, spider: str = "PathSpider", **arguments: Any
) -> Any:
    """A crawl for ``run``."""
    order = {} if "CONCURRENT_REQUESTS" in settings else ONE_BY_ONE
    given = {"base": site.base, "paths": paths, **arguments}
    return {"spider": spider, "arguments": given, "settings": {"ADDONS": ADDONS, **order, **settings}}


def killed(after: int) -> dict[str, Any]:
    """Settings of a crawl that is killed when so many items have come through."""
    return {"ITEM_PIPELINES": {"tests.crawl.project.Kill": 900}, "env": {"KILL_AFTER": str(after)}}


@pytest.fixture
def news(site: Site) -> Site:
    """Two articles, and a copy of the second."""
    site.content |= {"/bridge-zh": html("bridge-zh"), "/tea-zh": html("tea-zh"), "/copy": html("tea-zh", "Copied.")}
    return site


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., list[Result]]:
    """Run jobs in one process of their own: each a spider's name, its arguments and its settings."""

    def start(*crawls: dict[str, Any], reactor: str = "asyncio", env: dict[str, str] | None = None) -> list[Result]:
        job, out = tmp_path / "job.json", tmp_path / "out.json"
        out.unlink(missing_ok=True)
        job.write_text(json.dumps({"crawls": crawls, "reactor": reactor, "out": str(out)}), encoding="utf-8")
        code, log = forked.run(job, env or {})
        if not out.exists():
            return [Result([], {}, log, code)]
        found = json.loads(out.read_text(encoding="utf-8"))
        return [Result(one["items"], one["stats"], log, code) for one in found]

    return start


@pytest.fixture
def crawl(run: Callable[..., list[Result]], site: Site) -> Crawl:

    def start(paths: Sequence[str] = (), spider: str = "PathSpider", **more: Any) -> Result:
        reactor, env = more.pop("reactor", "asyncio"), more.pop("env", None)
        settings = {name: value for name, value in more.items() if name.isupper()}
        arguments = {name: value for name, value in more.items() if name.islower()}
        return run(job(site, paths, settings, spider=spider, **arguments), reactor=reactor, env=env)[0]

    return start
