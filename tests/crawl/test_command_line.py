"""Scrapy's commands as a newcomer types them: its tools for developers, dry runs, and crawls that are refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from scrapy_neardup.state.opening import open_store
from tests.cli import add_spider, make_project
from tests.crawl import forked
from tests.crawl.conftest import Site
from tests.crawl.pages import article, html

RunScrapy = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def scrapy(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> RunScrapy:
    """Runs a command of Scrapy in the project."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        out = tmp_path_factory.mktemp("command") / "out"
        job = shop / "job.json"
        job.write_text(json.dumps({"command": arguments, "out": str(out)}), encoding="utf-8")
        code, log = forked.run(job, {"BROWSER": "true"})
        job.unlink()
        return subprocess.CompletedProcess(arguments, code, out.read_text("utf-8"), log)

    return run


@pytest.fixture
def shop(site: Site, tmp_path: Path) -> Path:
    """A project with one spider, which has two pages of one article."""
    site.content |= {"/ferry": html("kelp-en"), "/again": html("kelp-en")}
    add_spider(folder := make_project(tmp_path), "daybook")
    with (folder / "shop" / "spiders.py").open("a", encoding="utf-8") as spider:
        spider.write(f"    start_urls = [{site.base + '/ferry'!r}, {site.base + '/again'!r}]\n")
        spider.write('    def parse(self, response):\n        yield {"url": response.url}\n')
    with (folder / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write("TELNETCONSOLE_ENABLED = False\n")
    return folder


TOOLS = [
    ["shell", "-c", "response.text", "{url}"],
    ["fetch", "--spider", "daybook", "{url}"],
    ["parse", "--spider", "daybook", "{url}"],
    ["parse", "--spider", "daybook", "--pipelines", "{url}"],
    ["bench", "-s", "CLOSESPIDER_PAGECOUNT=5"],
]


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS, ids=" ".join)
def test_tools_for_developers_make_no_state_and_wait_for_no_crawl(
    tool: list[str], shop: Path, site: Site, scrapy: RunScrapy
) -> None:
    judges = "--pipelines" in tool
    store = f"sqlite:///{shop}/state.sqlite"
    with nullcontext() if judges else closing(open_store(store, {"some": "recipe"})):
        before = {path for path in shop.rglob("*") if "__pycache__" not in path.parts}
        given = (one.format(url=f"{site.base}/ferry") for one in tool)
        done = scrapy(tool[0], "-s", f"NEARDUP_STORE={store}", *list(given)[1:])
        after = {path for path in shop.rglob("*") if "__pycache__" not in path.parts}
    assert (done.returncode, "Traceback" in done.stderr, "CRITICAL" in done.stderr) == (0, False, False)
    if "shell" in tool or "fetch" in tool:
        assert article("kelp-en")[0] in done.stdout
    if "parse" in tool:
        assert f"'{site.base}/ferry'" in done.stdout
    assert any(path.is_file() for path in after - before) is judges


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ("NEARDUP_STORE=sqlite:///proc/nope/x.db", "NEARDUP_STORE"),
        ("NEARDUP_STORE=sqlite:///tmp/%(colour)s.db", "-a colour="),
        ("NEARDUP_COMIT=item", "Did you mean NEARDUP_COMMIT?"),
        ("TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor", "Remove TWISTED_REACTOR from the settings"),
    ],
)
def test_a_crawl_that_is_refused_says_why_in_one_critical_line(wrong: str, named: str, scrapy: RunScrapy) -> None:
    done = scrapy("crawl", "daybook", "-s", wrong)
    lines = [line for line in done.stderr.splitlines() if " CRITICAL: " in line]
    assert (done.returncode, len(lines), named in lines[0]) == (1, 1, True)
    assert "Traceback" not in done.stderr.partition(lines[0])[0]
    assert "FileNotFoundError" not in done.stderr.replace(lines[0], "")
    assert "item_scraped_count" not in done.stderr


FEEDS = """
FEEDS = {
    "all-%(name)s.jsonl": {"format": "jsonlines", "overwrite": True},
    "ftp://crawler:s3cret@127.0.0.1:1/all.csv": {"format": "csv"},
}
"""


@pytest.mark.slow
def test_a_dry_run_writes_the_feeds_of_the_command_line(shop: Path, scrapy: RunScrapy) -> None:
    with (shop / "shop" / "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(FEEDS)
    with (shop / "shop" / "spiders.py").open("a", encoding="utf-8") as spider:
        spider.write('    custom_settings = {"FEEDS": {"spider.jsonl": {"format": "jsonlines"}}}\n')
    options = ["-o", "dry.jsonl", "-o", "all-%(name)s.jsonl", "-s", "NEARDUP_DRY_RUN=True"]
    done = scrapy("crawl", "daybook", *options)
    assert done.returncode == 0
    assert [path.name for path in shop.glob("*.jsonl")] == ["dry.jsonl"]
    assert len((shop / "dry.jsonl").read_text().splitlines()) == 2
    [line] = [line for line in done.stderr.splitlines() if " WARNING: " in line and "all-%(name)s.jsonl" in line]
    assert ("s3cret" in line, "-O dry.jsonl" in line) == (False, True)
