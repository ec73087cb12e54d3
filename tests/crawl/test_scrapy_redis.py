"""The spider of docs/en/guides/many-machines.md as it stands: two crawlers, one queue (scrapy-redis), one state."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import close_store, open_store
from tests.crawl.conftest import Site
from tests.crawl.pages import html
from tests.server.redis_server import Server

ROOT = Path(__file__).parents[2]
[SPIDER] = re.findall(
    r"```python\n(from scrapy_redis.*?)```", (ROOT / "docs/en/guides/many-machines.md").read_text("utf-8"), re.DOTALL
)
ARTICLES = ["bridge-zh", "tea-zh", "birds-zh", "rice-zh", "cheese-en"]
HOSTS = 3


def listed(site: Site) -> list[str]:
    """Two lists of articles, each four times on the site; returns the addresses of the lists."""
    links = []
    for host in range(HOSTS):
        for slug in ARTICLES:
            site.content[path := f"/{host}/{slug}"] = html(slug, f"Printed by no. {host}.")
            links.append(f'<a href="{path}">{slug}</a>')
    site.content |= {f"/list{n}": "<html><body>" + "".join(links[n::2]) + "</body></html>" for n in range(2)}
    return [f"{site.base}/list{n}" for n in range(2)]


def test_two_crawlers_with_one_queue_keep_every_article_once(site: Site, redis_server: Server, tmp_path: Path) -> None:
    pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed, so nothing is shown of a shared queue")
    (tmp_path / "news.py").write_text(SPIDER, encoding="utf-8")
    state = redis_server.url(redis_server.new_state())
    settings = {
        "REDIS_URL": f"unix://{redis_server.socket}?db=0",
        "NEARDUP_STORE": state,
        "CONCURRENT_REQUESTS": 1,
        "DOWNLOAD_DELAY": 0.1,
        "TELNETCONSOLE_ENABLED": False,
    }
    command = [sys.executable, "-m", "scrapy", "runspider", "news.py", "-a", "max_idle_time=4"]
    given = [argument for name, value in settings.items() for argument in ("-s", f"{name}={value}")]
    redis_server.client.rpush("news:start_urls", *(json.dumps({"url": url}) for url in listed(site)))
    logs = [(tmp_path / f"{n}.log").open("w") for n in range(2)]
    running = [
        subprocess.Popen([*command, "-o", f"{n}.jsonl", *given], cwd=tmp_path, stderr=log) for n, log in enumerate(logs)
    ]
    codes = [process.wait(timeout=100) for process in running]
    for log in logs:
        log.close()
    told = [(tmp_path / f"{n}.log").read_text() for n in range(2)]
    assert codes == [0, 0], told
    assert all("neardup/pages" in log for log in told), told
    feeds = [[json.loads(line) for line in (tmp_path / f"{n}.jsonl").read_text().splitlines()] for n in range(2)]
    kept = [item["url"].rpartition("/")[2] for feed in feeds for item in feed]
    assert sorted(kept) == sorted(ARTICLES), told
    store = open_store(state, None)
    assert store.pages == len(ARTICLES) * HOSTS
    assert check(store).sound
    close_store(store)
    assert redis_server.client.exists("news:requests", "news:start_urls") == 0
