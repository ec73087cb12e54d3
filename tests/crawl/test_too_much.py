"""Pages that were written to hold up a crawl: it goes on, their items pass, and the next one does not read them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.page.limits import is_risky
from tests.crawl.conftest import ADDONS, ROOT, Crawl, Site
from tests.crawl.pages import html
from tests.started import MARK, processes

#: A tag of so many attributes takes 200 s; a text of so many characters is not judged; so many tags are not parsed.
WIDE = html("bridge-zh").replace("</article>", f"<p{''.join(f' a{n}' for n in range(200_000))}></article>")
LONG = html("tea-zh").replace("</article>", f"<p>{'渡口停航七个月后今天重新开航。' * 40_000}</article>")
TAGS = html("kelp-en").replace("</article>", "<p>" * 100_001)
#: May take long, and does not.
LARGE = html("metro-zh").replace("</article>", f"<p>{'<br>' * 9_000}</article>")
ORDINARY = ["goats-en", "snow-zh", "tram-en", "honey-zh"]
BAD = ["/wide", "/long", "/tags"]
LIMIT = {"NEARDUP_MAX_SECONDS": 2}


@pytest.fixture
def village(site: Site) -> Site:
    site.content |= {"/wide": WIDE, "/long": LONG, "/tags": TAGS, "/large": LARGE}
    site.content |= {f"/{slug}": html(slug) for slug in ORDINARY}
    return site


PATHS = [
    "/wide",
    *(f"/{slug}" for slug in ORDINARY[:2]),
    "/long",
    "/tags",
    "/large",
    *(f"/{one}" for one in ORDINARY[2:]),
]


@pytest.mark.parametrize("reactor", ["asyncio", "select", "none"])
def test_all_items_pass_and_ordinary_pages_are_judged(village: Site, crawl: Crawl, reactor: str) -> None:
    result = crawl(PATHS, reactor=reactor, CONCURRENT_REQUESTS=8, NEARDUP_STORE="memory:", **LIMIT)
    assert sorted(result.paths) == sorted(PATHS)
    before = result.paths[: result.paths.index("/wide")]  # all of them, where the machine has nothing else to do
    assert set(before) & {f"/{slug}" for slug in ORDINARY}, "they wait for the page that takes 2 s"
    assert [result.count(stat) for stat in ("unique", "unjudged/too_slow", "unjudged/too_large")] == [5, 1, 2]
    assert result.count("apart") == 2, "the others are known for what they are, or read at once"
    assert result.log.count(f"unjudged (too_slow): {village.base}/wide passes: reading it takes longer") == 1
    for path in ("/long", "/tags"):
        assert result.log.count(f"unjudged (too_large): {village.base}{path} passes") == 1
    assert "Traceback" not in result.log


def test_what_was_too_much_is_not_read_again_as_long_as_it_is_the_same(village: Site, crawl: Crawl) -> None:
    first, second = (crawl(BAD, **LIMIT) for _ in range(2))
    assert (first.paths, first.count("apart")) == (BAD, 1)
    assert (second.items, second.count("unchanged"), second.count("apart")) == ([], 3, 0)


def test_a_page_whose_reader_dies_passes_and_others_are_read(village: Site, crawl: Crawl) -> None:
    village.content |= {f"/die{n}": f"<!-- die -->{LARGE}" for n in range(2)}
    result = crawl(
        ["/die0", "/large", "/die1", "/goats-en"],
        NEARDUP_EXTRACTOR="tests.crawl.project.deadly_extractor",
        NEARDUP_STORE="memory:",
    )
    assert len(result.items) == 4
    assert (result.count("unjudged/too_large"), result.count("unique"), result.count("apart")) == (2, 2, 3)


def test_an_items_own_text_has_a_limit_too(crawl: Crawl) -> None:
    items = [
        {"url": "http://a.example/1", "text": "渡口停航七个月后今天重新开航。" * 40_000},
        {
            "url": "http://a.example/2",
            "text": "渡口停航七个月后今天重新开航，第一班船载着二十三名乘客驶过河面，鼓起掌来。\ufdfa" * 1_000,
        },
        {"url": "http://a.example/3", "text": "\ufdfa" * 50_000},
    ]
    result = crawl(spider="OwnContentSpider", items=items, NEARDUP_STORE="memory:")
    assert [result.count(stat) for stat in ("unjudged/too_large", "unique")] == [2, 1]
    assert len(result.items) == 3


@pytest.fixture
def job(village: Site, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A crawl that is reading a page which takes 100 s, and may take 5."""
    village.content["/hang"] = f"<!-- hang -->{LARGE}"
    settings = {
        "ADDONS": ADDONS,
        "NEARDUP_MAX_SECONDS": 5,
        "NEARDUP_EXTRACTOR": "tests.crawl.project.deadly_extractor",
        "FEEDS": {f"file://{tmp_path}/feed.jsonl": {"format": "jsonl"}},
    }
    arguments = {"base": village.base, "paths": ["/goats-en", "/hang"]}
    told = {"spider": "PathSpider", "arguments": arguments, "settings": settings}
    out = {"crawls": [told], "reactor": "asyncio", "out": str(tmp_path / "out.json")}
    (tmp_path / "job.json").write_text(json.dumps(out), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT), MARK: str(tmp_path)}
    command = [sys.executable, "-m", "tests.crawl.run", str(tmp_path / "job.json")]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(processes(tmp_path)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(2)  # by now it has started, and reads
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
def test_sigterm_in_the_midst_of_such_a_page_ends_the_crawl_in_order(
    job: subprocess.Popen[str], tmp_path: Path
) -> None:
    begun = time.monotonic()
    job.send_signal(signal.SIGTERM)
    _, log = job.communicate(timeout=60)
    assert job.returncode == 0
    assert time.monotonic() - begun < 30
    assert "Spider closed (shutdown)" in log
    assert "'neardup/unjudged/too_slow': 1" in log
    assert len((tmp_path / "feed.jsonl").read_text("utf-8").splitlines()) == 2
    assert "Traceback" not in log
    assert processes(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up as on Linux")
def test_a_crawl_that_is_killed_leaves_no_reader_behind(job: subprocess.Popen[str], tmp_path: Path) -> None:
    job.kill()
    job.wait()
    deadline = time.monotonic() + 30
    while processes(tmp_path):
        assert time.monotonic() < deadline, "it reads for ever, for nobody"
        time.sleep(0.1)


SCRIPT = """
import scrapy
from scrapy.crawler import CrawlerProcess

print("the script runs")

class Village(scrapy.Spider):
    name = "village"
    start_urls = [{url!r}]
    custom_settings = {settings!r}

    def parse(self, response):
        yield {{"url": response.url}}

process = CrawlerProcess()
crawler = process.create_crawler(Village)
process.crawl(crawler)
process.start()
print(crawler.stats.get_value("neardup/unique"), crawler.stats.get_value("neardup/apart"))
"""


def test_a_script_without_a_guard_runs_once(village: Site, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ADDONS": ADDONS, "NEARDUP_STORE": "memory:", "TELNETCONSOLE_ENABLED": False}
    settings |= {"REMOTE_CONTROL_ENABLED": False, "NEARDUP_MAX_SECONDS": 30}
    script = tmp_path / "crawl.py"
    script.write_text(SCRIPT.format(url=f"{village.base}/large", settings=settings), encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=90
    )
    assert done.stdout.splitlines() == ["the script runs", "1 1"]


def test_the_pages_are_what_they_are_said_to_be() -> None:
    assert all(map(is_risky, (WIDE, TAGS, LARGE)))
    assert not any(is_risky(html(slug)) for slug in ORDINARY)
