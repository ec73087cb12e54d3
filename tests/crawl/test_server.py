"""Whole crawls whose state is on a server: one after the other, at once, and while server or network are gone."""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.crawl import server_crawl
from scrapy_neardup.crawl.server_crawl import ServerCrawl
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.server.layout import GIVEN_UP, PENDING
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import close_store, open_at, open_store
from scrapy_neardup.state.urls import parse_url
from tests.build import record
from tests.crawl import forked
from tests.crawl.conftest import NEWS, ROOT, Crawl, Site
from tests.crawl.engineless import crawl_items
from tests.crawl.pages import html
from tests.crawl.parts import notes
from tests.processes import wait_until
from tests.server.redis_server import Server, end_leases, running


@pytest.fixture
def url(redis_server: Server) -> str:
    return redis_server.url(redis_server.new_state())


def check_state(url: str) -> None:
    """All is sealed, and every row is there that another one names."""
    store = open_store(url, None)
    assert check(store).sound
    assert list(store.rows(b"j")) == []
    close_store(store)


def test_a_second_crawl_drops_what_the_first_one_kept(news: Site, crawl: Crawl, url: str, tmp_path: Path) -> None:
    settings = {"NEARDUP_STORE": url, "FEEDS": {str(tmp_path / "%(time)s.jsonl"): {"format": "jsonlines"}}}
    first = crawl(NEWS, **settings)
    assert first.paths == NEWS[:2], first.log
    assert (first.count("unique"), first.count("duplicate"), first.count("state/pages")) == (2, 1, 3)
    second = crawl(NEWS, **settings)
    assert second.items == []
    assert (second.count("unchanged"), second.count("duplicate"), second.count("state/pages")) == (2, 1, 3)
    assert second.count("errors") == second.count("taken_back") == 0
    news.content["/bridge-zh"] = html("bridge-zh", "更正：大桥的长度为一千二百米，本站先前的报道有误。")
    third = crawl(NEWS, **settings)
    assert (third.paths, third.count("updated")) == (["/bridge-zh"], 1)
    check_state(url)


def test_pages_are_forgotten_beside_the_judging(news: Site, crawl: Crawl, url: str) -> None:
    crawl(NEWS, NEARDUP_STORE=url)
    news.content |= {f"/{number}": html("bridge-zh") for number in range(3)}
    second = crawl(["/bridge-zh", *(f"/{n}" for n in range(3))], NEARDUP_STORE=url, NEARDUP_MAX_PAGES=2)
    assert second.count("expired") > 0, second.log
    assert second.count("state/pages") == 6 - second.count("expired") == 2


def test_waiting_is_for_servers() -> None:
    with pytest.raises(SettingsError, match="NEARDUP_ON_STORE_ERROR"):
        crawl_items(NEARDUP_STORE="memory:", NEARDUP_ON_STORE_ERROR="wait")


@pytest.mark.parametrize("then", ["close", "wait"])
def test_a_server_that_goes_while_a_crawl_is_at_work(news: Site, crawl: Crawl, then: str) -> None:
    """No item is lost, no verdict guessed; with 'wait' the crawl goes on where it was once the server is back."""
    news.content |= {f"/{number}": html("bridge-zh") for number in range(10)}
    paths = [*NEWS, *(f"/{number}" for number in range(10))]
    with running("--appendonly", "yes", "--appendfsync", "always") as server:
        gone = threading.Thread(target=_restarted, args=(server, then == "wait"))
        gone.start()
        found = crawl(
            paths,
            NEARDUP_STORE=server.url("a"),
            NEARDUP_ON_STORE_ERROR=then,
            DOWNLOAD_DELAY=0.25,
            RANDOMIZE_DOWNLOAD_DELAY=False,
        )
        gone.join()
        assert "does not answer" in found.log
        assert found.log.count("does not answer") <= 2
        if then == "wait":
            assert found.paths == NEWS[:2], found.log
            assert (found.count("duplicate"), found.count("server_gone"), found.count("errors")) == (11, 1, 0)
            assert "answers again" in found.log
        else:
            assert found.count("unjudged/store_failed") == len(found.paths) - found.count("unique") > 0
            assert found.stats["finish_reason"] == "neardup_store_failed"


def _restarted(server: Server, comes_back: bool) -> None:
    while not server.client.keys("{neardup:a}r*"):
        time.sleep(0.01)
    time.sleep(0.6)
    server.stop()
    if comes_back:
        time.sleep(1.5)
        server.start()


def test_the_password_is_nowhere_in_the_log(news: Site, crawl: Crawl) -> None:
    with running() as server:
        server.client.config_set("requirepass", "hush-hush")
        url = server.url("a").replace("unix://", "unix://:hush-hush@")
        found = crawl(NEWS, NEARDUP_STORE=url)
        assert found.paths == NEWS[:2], found.log
        assert "hush-hush" not in found.log + str(found.stats)
        found = crawl(NEWS, NEARDUP_STORE=url.replace("hush-hush", "wrong-one"), NEARDUP_ON_STORE_ERROR="wait")
        assert "refuses this user or password" in found.log
        assert "wrong-one" not in found.log + str(found.stats)
        assert "response_received_count" not in found.stats
        assert found.count("server_gone") == 0, "a server that refuses is not waited for"


async def test_pages_that_the_server_lost_are_counted(url: str, caplog: pytest.LogCaptureFixture) -> None:
    told, method = notes(), make_method("cascade", {})
    kind, location = parse_url(url)
    with closing(open_at(kind, location, method.recipe())) as store:
        assert isinstance(store, RedisStore)
        detector = Detector(method, store, who="test")
        sharing = ServerCrawl(detector, told, waits=True, bounds=None)
        page, lost = Page("http://a.example/", text="渡" * 300), list[object]()
        for _ in range(2):
            async with sharing.judgement() as judgement:
                ruling = await judgement.check(page)
            assert isinstance(ruling, Ruled)
            assert ruling.reservation is not None
            await judgement.unregister()  # as if the server had never heard of it
            judgement.breaks -= 1
            sharing.commit(ruling.reservation, sealed=False)
            await sharing.finish()
            lost.append(told.stats.get_value("neardup/lost_by_server"))
        await sharing.close()
        assert (lost, told.state_failed) == ([1, 2], False)
        assert store.pages == 0
    assert len([line for line in caplog.messages if "has lost confirmed pages" in line]) == 1


async def test_while_a_crawl_runs_dead_ones_are_rolled_back_and_pages_expire(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_crawl, "_PAUSE", 0.01)
    monkeypatch.setattr(server_crawl, "_EXPIRY", 0.0)
    told, method = notes(), make_method("cascade", {})
    kind, location = parse_url(url)
    with closing(open_at(kind, location, method.recipe())) as store, closing(open_at(kind, location, None)) as dead:
        for number in range(3):
            store.add(record(number))
        dead.add(record(9), generation=dead.journal.begin("dead"))
        end_leases(dead)
        detector, bounds = Detector(method, store, who="test"), Bounds(max_pages=2)
        sharing = ServerCrawl(detector, told, waits=False, bounds=bounds)
        await asyncio.to_thread(wait_until, lambda: told.stats.get_value("neardup/state/pages") == 2)
        assert [told.stats.get_value(f"neardup/{name}") for name in ("taken_back", "expired")] == [1, 1]
        assert "1 pages of crawls that no longer answer are rolled back" in caplog.text
        await sharing.close()
        assert not told.state_failed


def start_crawl(url: str, folder: Path, articles: int) -> Any:
    """Each crawl has feeds under a name of its own."""
    job = folder.parent / f"{time.monotonic_ns()}.json"
    feed = {"format": "jsonlines", "batch_item_count": 20}
    settings = {
        "ADDONS": {"scrapy_neardup.Addon": 500},
        "NEARDUP_STORE": url,
        "NEARDUP_WAIT": 20,  # on a busy machine a page may be in flight for seconds
        "DOWNLOADER_MIDDLEWARES": {"tests.crawl.project.Hosts": 10},
        "ITEM_PIPELINES": {"tests.crawl.project.SlowDatabase": 900},
        "FEEDS": {f"whole://{folder}/{job.stem}-%(batch_id)d.jsonl": feed},
        "FEED_STORAGES": {"whole": "tests.crawl.project.WholeFeed"},
    }
    crawl = {"spider": "HostsSpider", "arguments": {"articles": articles}, "settings": settings}
    job.write_text(json.dumps({"crawls": [crawl], "reactor": "asyncio", "out": f"{job}.out"}))
    return forked.start(job, job.with_suffix(".log"))


def names_of(server: Server, url: str, *kinds: bytes) -> list[bytes]:
    """The names in a state that begin like this."""
    prefix = b"{neardup:" + url.rpartition("=")[2].encode() + b"}"
    names = [key[len(prefix) :] for key in server.client.scan_iter(match=prefix + b"*", count=1000)]
    return [name for name in names if name.startswith(kinds)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("crawlers", "kills", "articles", "seed", "lease"),
    [(2, 2, 20, 0, 6), *(pytest.param(8, 14, 300, seed, 30, marks=pytest.mark.soak) for seed in range(3))],
)
def test_of_articles_that_crawls_meet_on_three_hosts_each_is_delivered_once_though_crawls_are_killed(
    redis_server: Server,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crawlers: int,
    kills: int,
    articles: int,
    seed: int,
    lease: int,
) -> None:
    """A delivery counts if its feed was stored and its page sealed. What a killed crawl had, the last one delivers."""
    monkeypatch.setenv("TEST_LEASE", str(lease))
    folder, chance = tmp_path / "feeds", random.Random(seed)
    running = [start_crawl(url, folder, articles) for _ in range(crawlers)]
    try:
        wait_until(lambda: names_of(redis_server, url, b"r"))
        for _ in range(kills):
            time.sleep(0.3 + chance.random())
            number = chance.randrange(crawlers)
            running[number].kill()
            running[number].join()
            running[number] = start_crawl(url, folder, articles)
        for process in running:
            process.join(900)
        log = "".join(file.read_text() for file in tmp_path.glob("*.log"))
        assert [process.exitcode for process in running] == [0] * crawlers, log[-5000:]
        assert "has lost this crawl" not in log, "the machine is so busy that a crawl was silent for its whole lease"
        assert "neardup_store_failed" not in log, log[-5000:]
        for lease_name in names_of(redis_server, url, b"L"):  # of those who were killed, as if it had ended
            redis_server.client.delete(b"{neardup:%s}%s" % (url.rpartition("=")[2].encode(), lease_name))
        running.append(start_crawl(url, folder, articles))
        running[-1].join(300)
        assert running[-1].exitcode == 0
    finally:
        for process in running:
            process.kill()
            process.join()
    store = open_store(url, None)
    sealed = {record.id for record in store.records()}
    lines = [json.loads(line) for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    # A page that is not to be known has no id; a killed crawl may leave a feed whose pages were not sealed.
    delivered = Counter(int(line["url"].rpartition("/")[2]) for line in lines if not line["id"] or line["id"] in sealed)
    assert {family: times for family, times in delivered.items() if times > 1} == {}
    assert delivered.keys() == set(range(articles))
    assert list(store.rows(b"j")) == list(store.rows(b"g")) == []
    assert check(store).sound
    close_store(store)
    kinds = b"p", b"L", b"N", PENDING, GIVEN_UP
    wait_until(lambda: not names_of(redis_server, url, *kinds), "the leases of numbers of killed crawls run out")


def test_a_bad_network_costs_nothing_but_time(news: Site, crawl: Crawl, url: str, redis_server: Server) -> None:
    """No item is lost, none comes twice, no verdict is guessed.

    From the first page on connections break. Then the server is silent for longer than an answer is waited for.
    """
    client, over, chance, broken = redis_server.client, threading.Event(), random.Random(5), list[int]()
    state = url.rpartition("=")[2]

    def work() -> None:
        while not client.exists(f"{{neardup:{state}}}~#") and not over.wait(0.01):
            pass
        while sum(broken) < 12 and not over.wait(chance.uniform(0.02, 0.15)):
            broken.append(client.client_kill_filter(_type="normal", skipme=True))
        redis_server.pause(3)

    copies = [f"/{number}" for number in range(30)]
    news.content |= dict.fromkeys(copies, html("bridge-zh"))
    thread = threading.Thread(target=work)
    thread.start()
    try:
        waits = {"NEARDUP_STORE": url, "NEARDUP_ON_STORE_ERROR": "wait", "DOWNLOAD_DELAY": 0.1}
        found = crawl([*NEWS, *copies], **waits, ITEM_PIPELINES={"tests.crawl.project.Hasty": 1})
    finally:
        over.set()
        thread.join()
    assert sum(broken) >= 12
    assert found.paths == NEWS[:2], found.log
    assert (found.count("unique"), found.count("duplicate"), found.count("errors")) == (2, 31, 0), found.log
    assert found.count("state/pages") == 33
    assert found.log.count("does not answer") <= 3
    check_state(url)


# The spider of docs/en/guides/many-machines.md: two crawlers, one queue (scrapy-redis), one state.

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
        "DOWNLOAD_DELAY": 0.2,
        "TELNETCONSOLE_ENABLED": False,
    }
    command = [sys.executable, "-m", "scrapy", "runspider", "news.py", "-a", "max_idle_time=2"]
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
    feeds = [[json.loads(line) for line in (tmp_path / f"{n}.jsonl").read_text().splitlines()] for n in range(2)]
    kept = [item["url"].rpartition("/")[2] for feed in feeds for item in feed]
    assert sorted(kept) == sorted(ARTICLES), told
    store = open_store(state, None)
    assert store.pages == len(ARTICLES) * HOSTS
    assert check(store).sound
    close_store(store)
    assert redis_server.client.exists("news:requests", "news:start_urls") == 0
