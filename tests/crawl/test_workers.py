"""Crawls whose pages are read in other processes: the same verdicts, nobody held up, no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.conftest import ADDONS, ROOT, SLUGS, Crawl, Site
from tests.crawl.engineless import Result
from tests.crawl.pages import html, with_items
from tests.processes import MARK, processes, wait_until

#: Pages come one after the other, so always in one order; several may be on their way through the pipelines.
IN_ORDER = {"CONCURRENT_REQUESTS": 1, "NEARDUP_STORE": "memory:", "NEARDUP_SECRET": "one for all these crawls"}
PATIENT = {"ITEM_PIPELINES": {"tests.crawl.project.Patient": 10}}
SLOW = "tests.crawl.project.slow_extractor"


def takes(seconds: float, slug: str, extra: str = "") -> str:
    return f"<!-- takes {seconds} -->{html(slug, extra)}"


@pytest.fixture
def village(site: Site) -> Site:
    """Articles and copies of them; earlier ones take longer to read."""
    for number, slug in enumerate(SLUGS):
        site.content[f"/a/{slug}"] = takes(0.1 if number % 2 else 0.0, slug)
        site.content[f"/b/{slug}"] = takes(0.0, slug, "转载自河边日报。")
    site.content["/json"] = (b'{"text": "no page"}', "application/json")
    site.content["/empty"] = "<p>"
    return site


PATHS = [f"/{copy}/{slug}" for slug in SLUGS for copy in "ab"] + ["/json", "/empty", "/gone"]


def outcome(result: Result) -> tuple[list[Any], dict[str, Any]]:
    """The items with their verdicts, and the stats, without what is a time.

    Nor by how much they are alike: that depends on how often sentences were counted, when earlier items came through.
    """
    assert "Traceback" not in result.log, result.log
    kept = ("verdict", "kind", "reason", "original")
    tags = [{**item, "neardup": [item["neardup"][part] for part in kept]} for item in result.items]
    left_out = ("neardup/time", "neardup/state/bytes", "neardup/workers", "neardup/waited")
    ours = {name: many for name, many in result.stats.items() if name.startswith("neardup/")}
    return sorted(tags, key=str), {name: many for name, many in ours.items() if not name.startswith(left_out)}


@pytest.mark.parametrize(("reactor", "extractor"), [("asyncio", SLOW), ("none", "")])
def test_verdicts_are_those_without_workers(village: Site, crawl: Crawl, reactor: str, extractor: str) -> None:
    """Of one item a page, of items with their own HTML, and of items that share their page."""
    for number in range(3):
        path = f"/articles/{number}"
        articles = [takes(0.1, one) + takes(0, one, "转载。") for one in SLUGS[:4]]
        items = [{"url": f"{village.base}{path}/{place}", "html": own} for place, own in enumerate(articles)]
        village.content[path] = with_items("<hr>".join(articles), [*items, {"n": 1}, {"n": 2}])
    for copy in "ab":
        url = f"{village.base}/images/{copy}"
        page = str(village.content[f"/{copy}/{SLUGS[0]}"])
        village.content[f"/images/{copy}"] = with_items(page, ({"name": name, "url": url} for name in range(3)))
    paths = [*PATHS[:6], "/articles/0", "/images/a", "/articles/1", *PATHS[6:], "/articles/2", "/images/b"]
    settings: dict[str, Any] = {**IN_ORDER, **PATIENT, "NEARDUP_EXTRACTOR": extractor, "DROP_DUPLICATES": False}
    settings |= {"in_order": True, "reactor": reactor}
    without, with_two = (crawl(paths, NEARDUP_WORKERS=many, **settings) for many in (0, 2))
    assert without.stats["arrived"] == with_two.stats["arrived"]
    own = [4 + 2 for number in range(3)]
    assert len(without.items) == len(PATHS) + sum(own) + 2 * 3
    assert without.count("duplicate") > len(SLUGS) / 2
    assert outcome(with_two) == outcome(without)
    assert "neardup/workers/replaced" not in with_two.stats


def test_a_spider_of_large_items_waits(crawl: Crawl) -> None:
    """Scrapy counts neither items of ``start()`` nor what items bring; 25 of these are 5 MB."""
    settings: dict[str, Any] = {"NEARDUP_STORE": "memory:", "NEARDUP_EXTRACTOR": SLOW, "NEARDUP_WORKERS": 2}
    settings |= {"ITEM_PIPELINES": {"tests.crawl.project.Held": 10}, "CONCURRENT_REQUESTS": 4}
    result = crawl(spider="LargeItemsSpider", count=120, **settings)
    assert len(result.items) == 120
    assert result.stats["neardup/pages"] == 120
    assert 25 <= result.stats["held"] < 60


def test_a_page_that_takes_too_long_is_overtaken_and_one_whose_process_dies_is_read_by_the_next_one(
    site: Site, crawl: Crawl, tmp_path: Path
) -> None:
    site.content |= {f"/{slug}": takes(0, slug) for slug in SLUGS} | {"/endless": takes(60, "cheese-en")}
    site.content["/tea-zh"] = f"<!-- dies {tmp_path}/tea -->{html('tea-zh')}"
    paths = [f"/{one}" for one in (*SLUGS[:3], "endless", *SLUGS[3:])]
    # A page that a worker begins with may take four times as long.
    settings: dict[str, Any] = {"NEARDUP_EXTRACTOR": SLOW, "NEARDUP_MAX_SECONDS": 1.5, **IN_ORDER}
    result = crawl(paths, NEARDUP_WORKERS=3, **settings)
    assert sorted(result.paths) == sorted(paths)
    before = {*paths} - {"/endless", "/tea-zh"}  # a worker that starts anew may take as long
    assert before <= {*result.paths[: result.paths.index("/endless")]}, "others need not wait for it"
    assert (result.count("unjudged/too_slow"), result.count("workers/replaced"), result.count("unique")) == (1, 2, 8)
    assert result.log.count("A worker that reads pages ") == 1


SCRIPT = """
import sys, types
import scrapy
from scrapy.crawler import CrawlerProcess

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
#: A script that starts a crawl for each extractor, all at once.
PROCESS = """
process = CrawlerProcess()
crawlers = []
for extractor in "", "__main__.own", "made_up.own":
    settings = {**Village.custom_settings, "NEARDUP_EXTRACTOR": extractor}
    crawlers.append(process.create_crawler(type("Village", (Village,), {"custom_settings": settings})))
for crawler in crawlers:
    process.crawl(crawler)
process.start()
tell(*crawlers)
"""
QUIET = {"ADDONS": ADDONS, "TELNETCONSOLE_ENABLED": False, "REMOTE_CONTROL_ENABLED": False, "NEARDUP_MAX_SECONDS": 30}


def start_script(folder: Path, start: str, urls: list[str], **settings: Any) -> subprocess.Popen[str]:
    settings = {**QUIET, "NEARDUP_WORKERS": 2, **settings}
    file = folder / "crawl.py"
    file.write_text(SCRIPT.format(urls=urls, settings=settings, start=start), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(folder)}
    command = [sys.executable, str(file)]
    return subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def test_a_script_without_a_guard_runs_once_and_calls_what_other_processes_cannot_import(
    village: Site, tmp_path: Path
) -> None:
    urls = [f"{village.base}/a/{slug}" for slug in SLUGS]
    with start_script(tmp_path, PROCESS, urls, NEARDUP_STORE="memory:") as process:
        out, log = process.communicate(timeout=90)
    assert out.splitlines() == ["the script runs", *["8 None"] * 3], log
    assert processes(tmp_path) == []
    lines = [line for line in log.splitlines() if "NEARDUP_WORKERS is off" in line]
    assert len(lines) == 2
    assert all(any(one in line for line in lines) for one in ("which workers cannot", "no worker could be started"))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
def test_ctrl_c_and_a_kill_leave_no_process_behind(village: Site, tmp_path: Path) -> None:
    """Crawls with two workers; each reads a page that takes some seconds."""
    begun = f"<!-- begun {tmp_path}/begun -->"
    village.content |= {f"/long/{n}": begun + takes(3, SLUGS[n]) for n in range(2)}
    urls = [f"{village.base}/long/{n}" for n in range(2)]
    start = "process = CrawlerProcess()\nprocess.crawl(Village)\nprocess.start()"
    signals = {"one": [signal.SIGINT], "two": [signal.SIGINT, signal.SIGINT], "kill": [signal.SIGKILL]}
    with ExitStack() as stack:
        crawls = {}
        for name in signals:
            (tmp_path / name).mkdir()
            crawls[name] = process = start_script(tmp_path / name, start, urls, NEARDUP_EXTRACTOR=SLOW)
            stack.enter_context(process)
            stack.callback(process.kill)
        wait_until(lambda: len([*tmp_path.glob("begun-*")]) == 2 * len(signals), seconds=60)
        for name, process in crawls.items():
            for one in signals[name]:
                process.send_signal(one)
                time.sleep(0.3)
        logs = {name: process.communicate(timeout=60)[1] for name, process in crawls.items()}
    assert "Spider closed (shutdown)" in logs["one"]
    assert "'neardup/unique': 2" in logs["one"], "what is being read is waited for"
    assert not any("Traceback" in log for log in logs.values())
    wait_until(lambda: not any(processes(tmp_path / name) for name in signals))
