"""Damaged states and full disks: no damage is silent, and no page that was acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.build import record
from tests.kv.damages import RECIPE

ALL = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
@pytest.mark.parametrize(
    ("options", "least"),
    [pytest.param(["--every", "29", "--pages", "60"], 3, marks=pytest.mark.slow), pytest.param([], 100, marks=ALL)],
)
def test_of_all_damages_none_is_silent(kind: str, options: list[str], least: int) -> None:
    """In a process of its own: it forks, and a fork of a process in which LevelDB has its thread waits for ever."""
    if kind == "leveldb":
        pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")
    command = [sys.executable, "-m", "tests.kv.damages", kind, *options]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert min(found["loud"], found["healthy"]) >= least


# Full disks


FULL = """
import resource, sys
from scrapy_neardup.errors import StoreError
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.urls import STORES
from tests.build import record
from tests.kv.damages import RECIPE

store = open_at(STORES[sys.argv[1]], sys.argv[2], {"method": "minhash", "seed": 7})
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), hard))

def fill(first, last):
    failures = 0
    for n in range(first, last):
        before = store.pages
        try:
            store.add(record(n, 1, n, size=300))
        except StoreError as error:
            assert store.pages == before
            failures += 1
            if failures == 1:
                print("failed", type(error).__name__, error, flush=True)
            if failures == 20:
                return
        else:
            print("sealed", record(n).id, flush=True)

fill(0, 5000)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
fill(5000, 5100)
if sys.argv[4] == "close":
    try:
        store.close()
    except StoreError:
        print("close failed", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "limit", "ending"),
    [("leveldb", 100_000, "close"), ("leveldb", 123_456, "exit"), ("sqlite", 150_000, "close")],
)
def test_a_full_disk_costs_no_page_that_was_acknowledged(kind: str, limit: int, ending: str, tmp_path: Path) -> None:
    """The limit on the size of a file stands for the end of the disk; it is lifted again halfway."""
    pytest.importorskip("resource", reason="only POSIX limits the size of files")
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    place = str(tmp_path / "state")
    open_at(STORES[kind], place, RECIPE).close()
    script = [sys.executable, "-c", FULL, kind, place, str(limit), ending]
    done = subprocess.run(script, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = [line.split(" ", 2) for line in done.stdout.splitlines()]
    failure = next(words for words in told if words[0] == "failed")
    assert failure[1] == "StoreError"
    assert place in failure[2]
    sealed = [int(words[1]) for words in told if words[0] == "sealed"]
    assert len(sealed) > 20
    with closing(open_at(STORES[kind], place, RECIPE)) as store:
        assert [page.id for page in store.records()] == sealed
        assert (store.pages, store.postings(1, 9999)) == (len(sealed), sealed[::-1])
        store.add(record(9999))
        assert store.find(record(9999).url) == record(9999)
