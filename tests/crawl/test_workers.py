"""Crawls whose pages are read in other processes: the same verdicts, nobody held up, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import ADDONS, ROOT, Crawl, Result, Site
from tests.crawl.pages import html
from tests.processes import MARK, processes

#: Pages come one after the other, so always in one order; several may be on their way through the pipelines.
IN_ORDER = {"CONCURRENT_REQUESTS": 1, "NEARDUP_STORE": "memory:", "NEARDUP_SECRET": "one for all these crawls"}
PATIENT = {"ITEM_PIPELINES": {"tests.crawl.project.Patient": 10}}
SLOW = "tests.crawl.project.slow_extractor"
SLUGS = ["bridge-zh", "goats-en", "honey-zh", "kelp-en", "metro-zh", "snow-zh", "tea-zh", "tram-en"]


def takes(seconds: float, slug: str, extra: str = "") -> str:
    return f"<!-- takes {seconds} -->{html(slug, extra)}"


@pytest.fixture
def village(site: Site) -> Site:
    """Articles and copies of them, of which the earlier ones take the longer to be read."""
    for number, slug in enumerate(SLUGS):
        site.content[f"/a/{slug}"] = takes(0.1 if number % 2 else 0.0, slug)
        site.content[f"/b/{slug}"] = takes(0.0, slug, "转载自河边日报。")
    site.content["/json"] = (b'{"text": "no page"}', "application/json")
    site.content["/empty"] = "<p>"
    return site


PATHS = [f"/{copy}/{slug}" for slug in SLUGS for copy in "ab"] + ["/json", "/empty", "/gone"]


def told(result: Result) -> list[Any]:
    """The items with their verdicts, without what is a time.

    Nor by how much they are alike: that depends on how often sentences were counted, when earlier items came through.
    """
    kept = ("verdict", "kind", "reason", "original")
    tags = [{**item, "neardup": [item["neardup"][part] for part in kept]} for item in result.items]
    assert "Traceback" not in result.log, result.log
    return sorted(tags, key=str)


def counts(result: Result) -> dict[str, Any]:
    left_out = ("neardup/time", "neardup/state/bytes", "neardup/workers", "neardup/waited")
    return {
        name: n for name, n in result.stats.items() if name.startswith("neardup/") and not name.startswith(left_out)
    }


@pytest.mark.parametrize(("reactor", "extractor"), [("asyncio", SLOW), ("select", SLOW), ("none", "")])
def test_the_verdicts_are_those_of_a_crawl_without_workers(
    village: Site, crawl: Crawl, reactor: str, extractor: str
) -> None:
    settings: dict[str, Any] = {**IN_ORDER, **PATIENT, "NEARDUP_EXTRACTOR": extractor, "DROP_DUPLICATES": False}
    settings |= {"spider": "InOrderSpider", "reactor": reactor}
    without, with_two = (crawl(PATHS, NEARDUP_WORKERS=many, **settings) for many in (0, 2))
    assert without.stats["arrived"] == with_two.stats["arrived"]
    assert len(without.items) == len(PATHS)
    assert without.count("duplicate") > len(SLUGS) / 2
    assert told(with_two) == told(without)
    assert counts(with_two) == counts(without)
    assert "neardup/workers/replaced" not in with_two.stats


@pytest.mark.parametrize("reactor", ["asyncio", "select", "none"])
@pytest.mark.parametrize("at_start", [True, False])
def test_a_spider_that_yields_large_items_waits_for_those_before(
    site: Site, crawl: Crawl, at_start: bool, reactor: str
) -> None:
    """Scrapy counts neither items of ``start()`` nor what items bring; 25 of these are 5 MB."""
    site.content["/small"] = "<p>"
    settings: dict[str, Any] = {"NEARDUP_STORE": "memory:", "NEARDUP_EXTRACTOR": SLOW, "NEARDUP_WORKERS": 2}
    settings |= {"ITEM_PIPELINES": {"tests.crawl.project.Held": 10}, "CONCURRENT_REQUESTS": 4}
    paths = ["/small"]
    result = crawl(paths, spider="LargeItemsSpider", count=120, at_start=at_start, reactor=reactor, **settings)
    assert len(result.items) == 120
    assert result.stats["neardup/pages"] == 120
    assert 25 <= result.stats["held"] < 60


@pytest.mark.parametrize("spider", ["OwnHtmlSpider", "ImagesSpider"])
def test_so_are_those_on_several_items_of_a_response(village: Site, crawl: Crawl, spider: str) -> None:
    for number in range(3):
        articles = [takes(0.1, one) + takes(0, one, "转载。") for one in SLUGS[:4]]
        village.content[f"/{number}"] = "<hr>".join(articles)
    settings: dict[str, Any] = {**IN_ORDER, **PATIENT, "NEARDUP_EXTRACTOR": SLOW, "DROP_DUPLICATES": False}
    paths = ["/0", "/1", "/2", *PATHS[:4]]
    without, with_two = (crawl(paths, spider, NEARDUP_WORKERS=many, **settings) for many in (0, 2))
    assert without.items
    assert without.stats["arrived"] == with_two.stats["arrived"]
    assert told(with_two) == told(without)
    assert counts(with_two) == counts(without)


def test_a_page_that_takes_long_is_overtaken_and_one_that_takes_too_long_is_ended(site: Site, crawl: Crawl) -> None:
    site.content |= {f"/{slug}": takes(0, slug) for slug in SLUGS}
    site.content |= {"/long": takes(3, "chess-en"), "/endless": takes(60, "cheese-en")}
    paths = [f"/{slug}" for slug in SLUGS]
    paths[3:3] = ["/long", "/endless"]
    settings: dict[str, Any] = {"NEARDUP_EXTRACTOR": SLOW, "NEARDUP_MAX_SECONDS": 1.5, **IN_ORDER}
    result = crawl(paths, NEARDUP_WORKERS=3, **settings)
    assert sorted(result.paths) == sorted(paths)
    assert result.paths[-1] == "/endless"
    assert result.paths.index("/long") > 5, "others need not wait for it"
    assert (result.count("unjudged/too_slow"), result.count("workers/replaced"), result.count("unique")) == (1, 1, 9)
    assert result.log.count("A worker that reads pages was ended because a page took more than 6 s") == 1


def test_a_page_whose_process_dies_is_read_by_the_next_one(site: Site, crawl: Crawl, tmp_path: Path) -> None:
    site.content |= {f"/{slug}": f"<!-- dies {tmp_path}/{slug} -->{html(slug)}" for slug in SLUGS[:2]}
    site.content |= {f"/{slug}": html(slug) for slug in SLUGS[2:]}
    result = crawl([f"/{slug}" for slug in SLUGS], NEARDUP_EXTRACTOR=SLOW, NEARDUP_WORKERS=1, **IN_ORDER, **PATIENT)
    assert result.paths == [f"/{slug}" for slug in SLUGS]
    assert (result.count("unique"), result.count("workers/replaced")) == (8, 2)
    assert result.log.count("A worker that reads pages died. Another one replaces it") == 1


def test_no_more_pages_are_on_their_way_than_scrapy_holds(site: Site, crawl: Crawl) -> None:
    body = takes(0.05, "bridge-zh") + "<!--" + "x" * 100_000 + "-->"
    site.content |= {f"/{number}": body for number in range(60)}
    result = crawl(
        [f"/{number}" for number in range(60)],
        NEARDUP_EXTRACTOR=SLOW,
        NEARDUP_WORKERS=1,
        NEARDUP_STORE="memory:",
        CONCURRENT_REQUESTS=4,
        SCRAPER_SLOT_MAX_ACTIVE_SIZE=1_000_000,
        ITEM_PIPELINES={"tests.crawl.project.Held": 10},
    )
    assert result.count("pages") == 60
    assert 5 < result.stats["held"] <= 10 + 4


# What is started in other ways than by the command.

SCRIPT = """
import asyncio, sys, types
import scrapy
from scrapy.crawler import AsyncCrawlerProcess, AsyncCrawlerRunner, CrawlerProcess

print("the script runs")

def own(html, url):
    return html

made_up = types.ModuleType("made_up")  # another process knows nothing of it
made_up.own = own
sys.modules["made_up"] = made_up

class Village(scrapy.Spider):
    name = "village"
    start_urls = {urls!r}
    custom_settings = {settings!r}

    def parse(self, response):
        yield {{"url": response.url}}

def tell(*crawlers):
    for crawler in crawlers:
        print(crawler.stats.get_value("neardup/unique"), crawler.stats.get_value("neardup/workers/replaced"))

{start}
"""
#: A script that starts two crawls at once, and a notebook, in which a loop runs already.
TWO = """
process = CrawlerProcess()
crawlers = [process.create_crawler(Village) for _ in range(2)]
for crawler in crawlers:
    process.crawl(crawler)
process.start()
tell(*crawlers)
"""
NOTEBOOK = """
async def cell():
    crawler = AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False}).create_crawler(Village)
    await AsyncCrawlerRunner({"TWISTED_REACTOR_ENABLED": False}).crawl(crawler)
    tell(crawler)

asyncio.run(cell())
"""


@pytest.fixture
def script(village: Site, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(start: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        quiet = {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "NEARDUP_MAX_SECONDS": 30}
        settings = {"ADDONS": ADDONS, "NEARDUP_STORE": "memory:", "NEARDUP_WORKERS": 2, **quiet, **settings}
        urls = [f"{village.base}/a/{slug}" for slug in SLUGS]
        file = tmp_path / "crawl.py"
        file.write_text(SCRIPT.format(urls=urls, settings=settings, start=start), encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(tmp_path)}
        return subprocess.run(
            [sys.executable, str(file)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=90
        )

    return run


@pytest.mark.parametrize("start", [TWO, NOTEBOOK], ids=["two crawls", "notebook"])
def test_a_script_without_a_guard_runs_once(script: Any, start: str, tmp_path: Path) -> None:
    done = script(start)
    assert done.stdout.splitlines() == ["the script runs", *["8 None"] * (2 if start is TWO else 1)], done.stderr
    assert "Traceback" not in done.stderr
    assert processes(tmp_path) == []


@pytest.mark.parametrize(
    ("extractor", "said"), [("__main__.own", "which workers cannot"), ("made_up.own", "no worker could be started")]
)
def test_an_extractor_that_other_processes_cannot_import_is_called_here(script: Any, extractor: str, said: str) -> None:
    done = script(TWO, NEARDUP_EXTRACTOR=extractor)
    assert done.stdout.splitlines() == ["the script runs", "8 None", "8 None"], done.stderr
    warnings = [line for line in done.stderr.splitlines() if "NEARDUP_WORKERS is off" in line]
    assert len(warnings) == 2, "one for each crawl"
    assert all(said in line for line in warnings)


# Ends.


@pytest.fixture
def job(village: Site, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A crawl with two workers, each of which is at a page that takes some seconds."""
    village.content |= {f"/long/{n}": takes(4, SLUGS[n]) for n in range(2)}
    settings = {"ADDONS": ADDONS, "NEARDUP_WORKERS": 2, "NEARDUP_MAX_SECONDS": 30, "NEARDUP_EXTRACTOR": SLOW}
    settings |= {"TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False}
    urls = [f"{village.base}/long/{n}" for n in range(2)]
    start = "process = CrawlerProcess()\nprocess.crawl(Village)\nprocess.start()"
    file = tmp_path / "crawl.py"
    file.write_text(SCRIPT.format(urls=urls, settings=settings, start=start), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(tmp_path)}
    command = [sys.executable, str(file)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 60
        while len(processes(tmp_path)) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(1.5)  # by now they have started, and read
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT, signal.SIGINT], [signal.SIGKILL]])
def test_ctrl_c_and_a_kill_leave_no_process_behind(
    job: subprocess.Popen[str], tmp_path: Path, signals: list[signal.Signals]
) -> None:
    for one in signals:
        job.send_signal(one)
        time.sleep(0.3)
    _, log = job.communicate(timeout=60)
    if len(signals) == 1 and signals != [signal.SIGKILL]:
        assert "Spider closed (shutdown)" in log
        assert "'neardup/unique': 2" in log, "what is being read is waited for"
    assert "Traceback" not in log
    deadline = time.monotonic() + 30
    while processes(tmp_path):
        assert time.monotonic() < deadline, "it reads for nobody"
        time.sleep(0.1)
