"""Full disks: no page that was acknowledged is lost. Kills: see ``damages`` and ``tests/crawl/test_dying``."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.urls import STORES
from tests.build import record

RECIPE = {"method": "minhash", "seed": 7}
CHILD = """
import os, sys
from scrapy_neardup.errors import StoreError
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from scrapy_neardup.state.record import Record

def say(*words):
    print(*words, flush=True)

def open_state():
    return open_at(STORES[sys.argv[1]], sys.argv[2], {"method": "minhash", "seed": 7})

def add(store, n, generation=0):
    id = store.new_id()
    url = f"https://news.example.cn/{n}.html"
    store.add(Record(id, url, id, 1.0, (1, n), b"sketch" * 50), generation=generation)
    return id, url
"""

FULL = """
import resource

store = open_state()
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), hard))

def fill(first, last):
    failures = 0
    for n in range(first, last):
        before = store.pages
        try:
            id, url = add(store, n)
        except StoreError as error:
            assert store.pages == before
            failures += 1
            if failures == 1:
                say("failed", type(error).__name__, error)
            if failures == 20:
                return
        else:
            say("sealed", id, url)

fill(0, 5000)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fill(5000, 5100)
if sys.argv[4] == "close":
    try:
        store.close()
    except StoreError:
        say("close failed")
"""


def command(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", CHILD + script, *arguments]


def run(script: str, *arguments: str) -> str:
    done = subprocess.run(command(script, *arguments), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def opened(kind: str, path: Path) -> PageStore:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    return open_at(STORES[kind], str(path), RECIPE)


def ids_of(store: PageStore) -> list[int]:
    """The ids of all pages, newest first, which have a key in common."""
    ids = [page.id for page in store.records()][::-1]
    assert store.pages == len(ids)
    assert store.postings(1, len(ids) + 9) == ids
    return ids


pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("kind", "limit", "ending"),
    [("leveldb", 100_000, "close"), ("leveldb", 123_456, "exit"), ("sqlite", 150_000, "close")],
)
def test_a_full_disk_costs_no_page_that_was_acknowledged(kind: str, limit: int, ending: str, tmp_path: Path) -> None:
    """The limit on the size of a file stands for the end of the disk; it is lifted again halfway."""
    pytest.importorskip("resource", reason="only POSIX limits the size of files")
    opened(kind, tmp_path / "state").close()
    lines = run(FULL, kind, str(tmp_path / "state"), str(limit), ending).splitlines()
    told = [line.split(" ", 2) for line in lines]
    failure = next(words for words in told if words[0] == "failed")
    assert failure[1] == "StoreError"
    assert str(tmp_path / "state") in failure[2]
    sealed = [int(words[1]) for words in told if words[0] == "sealed"]
    assert len(sealed) > 20
    with closing(opened(kind, tmp_path / "state")) as store:
        assert ids_of(store) == sealed[::-1]
        store.add(record(9999))
        assert store.find(record(9999).url) == record(9999)
