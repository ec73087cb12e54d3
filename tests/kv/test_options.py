"""Options change how a state is opened, and nothing of what is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.kv.options import DEFAULT, Options, read_options
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES
from tests.faults import engine_of

RECIPE = {"method": "minhash", "seed": 7}
OTHER = Options(cache=2**20, write_buffer=2**16)


def page(n: int) -> Record:
    id = 1_700_000_000_000_000_000 + n
    return Record(id, f"https://news.example.cn/{n}.html", id, 1.0, (1, n + 50), b"sketch" * 100)


def test_a_size_may_have_a_unit() -> None:
    for said, size in [(9, 9), ("7", 7), ("7 B", 7), ("2kB", 2048), (" 64 MB", 64 * 2**20), ("1.5gb", 3 * 2**29)]:
        assert read_options("NEARDUP_STORE_OPTIONS", {"cache": said}).cache == size


@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
def test_a_state_may_be_opened_with_other_options_each_time(kind: str, tmp_path: Path) -> None:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    url = STORES[kind].url(str(tmp_path / "state"))
    for turn, options in enumerate((OTHER, DEFAULT, OTHER)):
        store = open_store(url, RECIPE, options=options)
        assert engine_of(store).options == options
        for n in range(300):
            store.add(page(1000 * turn + n))
        for n in range(1000 * turn + 300):
            assert store.find(page(n).url) == (page(n) if n % 1000 < 300 else None)
        assert len(store.postings(1, 1000)) == 300 * (turn + 1)
        close_store(store)
