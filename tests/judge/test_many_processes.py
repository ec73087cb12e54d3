"""Several processes crawl the same articles at once, and are killed and started again at random: each is kept once."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.opening import close_store, open_store
from tests.judge.crawler_process import ARTICLES, LEASE, NOT_HEARD_OF
from tests.server.redis_server import Server

ROOT = Path(__file__).parents[2]


def started(url: str, number: int, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.judge.crawler_process", url, str(number), str(folder / "feed")]
    with (folder.parent / f"log{number}").open("ab") as log:
        return subprocess.Popen(command, cwd=ROOT, stderr=log)


def crawled(server: Server, tmp_path: Path, processes: int, kills: int, seed: int) -> None:
    folder, chance = tmp_path / "feeds", random.Random(seed)
    folder.mkdir()
    url = server.url(server.new_state())
    running = {number: started(url, number, folder) for number in range(processes)}
    for _ in range(kills):
        time.sleep(0.3 + chance.random())
        number = chance.choice([*running])
        running[number].kill()
        running[number].wait()
        # Not sooner: on a fast machine it would be through before the pages that it left unsealed are taken back, and
        # drop its articles as copies of these. In a crawl they would come again some day.
        time.sleep(1.2 * LEASE)
        running[number] = started(url, number, folder)
    for number, process in running.items():
        code = process.wait(timeout=200)
        while code == NOT_HEARD_OF:
            code = started(url, number, folder).wait(timeout=200)
        assert code == 0, (tmp_path / f"log{number}").read_text()[-3000:]
    time.sleep(1.5 * LEASE)  # what those had who were killed
    store = open_store(url, None)
    lines = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
    sealed = {record.id for record in store.records() if record.is_original}
    # A kill between a feed and its seal leaves the feed, of which the state knows nothing.
    kept = Counter(int(family) for id, family in lines if int(id) in sealed)
    assert kept == dict.fromkeys(range(ARTICLES), 1)
    assert len(sealed) == ARTICLES
    assert check(store).sound
    assert list(store.rows(b"g")) == list(store.rows(b"j")) == []
    close_store(store)
    prefix = b"{neardup:" + url.rpartition("=")[2].encode() + b"}"
    assert list(server.client.scan_iter(match=prefix + b"[pLN!]*", count=1000)) == []
    assert server.client.hkeys(prefix + b"w") == [b"-"]


@pytest.mark.slow
def test_of_articles_that_three_processes_crawl_each_is_kept_once_though_some_are_killed(
    redis_server: Server, tmp_path: Path
) -> None:
    crawled(redis_server, tmp_path, 3, 4, 1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(5))
def test_of_articles_that_eight_processes_crawl_each_is_kept_once_though_many_are_killed(
    redis_server: Server, tmp_path: Path, seed: int
) -> None:
    crawled(redis_server, tmp_path, 8, 30, seed)
