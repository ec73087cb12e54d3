"""The state outlives the crawl: unchanged pages, the two kinds of stores, two crawls at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.state.opening import close_store, open_store
from tests.crawl.conftest import ADDONS, NEWS, Crawl, Result, Site
from tests.crawl.pages import html

PLYVEL = find_spec("plyvel") is not None


def test_two_spiders_of_a_process_share_a_state(news: Site, run: Callable[..., list[Result]], tmp_path: Path) -> None:
    settings = {"ADDONS": ADDONS, "NEARDUP_STORE": f"sqlite://{tmp_path}/state"}
    job = {"spider": "PathSpider", "arguments": {"base": news.base, "paths": NEWS}, "settings": settings}
    results = run(job, job)
    urls = [url for result in results for url in result.urls]
    # The same URL in both: whichever comes second is unchanged, and of each article one page is kept.
    assert len(urls) == 2
    assert {url.rpartition("/")[2] for url in urls} <= {"bridge-zh", "tea-zh", "copy"}
    assert "Traceback" not in results[0].log


def test_the_state_remembers_each_crawl_with_its_counts(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    site.content |= {"/a": html("bridge-zh"), "/b": html("bridge-zh", "Copied."), "/c": html("tea-zh")}
    store = f"sqlite://{tmp_path}/state.db"
    killed = {"ITEM_PIPELINES": {"tests.crawl.project.Kill": 900}, "env": {"KILL_AFTER": "2"}}
    assert crawl(["/a", "/b", "/c"], NEARDUP_STORE=store, **killed).code == 9
    crawl(["/a", "/b", "/c"], NEARDUP_STORE=store)
    opened = open_store(store, None)
    dead, ended = CRAWLS.read(opened)
    close_store(opened)
    assert (dead.who, dead.ended, dict(dead.counts)) == ("paths", 0, {})
    assert ended.begun - 1 <= ended.ended <= ended.begun + 100
    assert [ended.counts[name] for name in ("unique", "duplicate", "unchanged", "pages")] == [1, 1, 1, 3]
