"""LevelDB opens with half of its files missing and says nothing; the store around it must not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import StoreError, StoreMismatch
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.state import opening
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import record as page
from tests.faults import engine_of

pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")

RECIPE = {"method": "minhash", "seed": 7}
PAGES = 100


def opened(root: Path) -> PageStore:
    return open_at(LevelDB, str(root), RECIPE)


def read_all(store: PageStore) -> None:
    """Read every page; what comes back is right."""
    assert [store.find(page(n).url) for n in range(PAGES)] == [page(n) for n in range(PAGES)]
    assert store.pages == sum(1 for _ in store.kv.scan(b"r")) == PAGES


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state that was closed cleanly, with tables and a log that both hold pages."""
    root = tmp_path / "state"
    for begin, end in ((0, PAGES // 2), (PAGES // 2, PAGES)):
        with closing(opened(root)) as store:
            for n in range(begin, end):
                store.add(page(n))
    return root


def test_what_costs_no_row_is_no_damage(state: Path) -> None:
    with next((state / "db").glob("*.ldb")).open("ab") as table:
        table.write(b"\0")
    (state / "db" / "000999.log").touch()
    (state / "db" / "LOG").write_text("edited")
    (state / "db" / "LOCK").unlink()
    for _ in range(2):
        with closing(opened(state)) as store:
            read_all(store)


def test_another_content_of_the_same_size_is_a_change_except_in_tables(state: Path) -> None:
    with closing(opened(state)) as store:
        engine = engine_of(store)
        assert isinstance(engine, LevelDB)
        before = engine.digest()
        for suffix, changes in (("CURRENT", True), (".ldb", False)):
            [file, *_] = [file for file in state.rglob("*") if file.name.endswith(suffix)]
            kept = file.read_bytes()
            file.write_bytes(bytes([kept[0] ^ 1]) + kept[1:])
            assert (engine.digest() != before) == changes, file
            file.write_bytes(kept)


def test_a_refused_opening_leaves_a_state_that_needs_no_reading(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreMismatch):
        open_at(LevelDB, str(state), {"method": "simhash"})
    monkeypatch.setattr(opening, "row_problems", None)
    with closing(opened(state)) as store:
        read_all(store)


def test_a_file_in_the_place_of_the_directory_db_is_an_error_and_stays(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "db").write_text("in the way")
    with pytest.raises(StoreError) as refused:
        opened(tmp_path / "state")
    assert str(tmp_path / "state") in str(refused.value)
    assert (tmp_path / "state" / "db").read_text() == "in the way"


def test_a_new_state_whose_making_was_cut_short_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "state" / "db").mkdir(parents=True)
    (tmp_path / "state" / "db" / "MANIFEST-000001").write_bytes(b"half")
    store = open_at(LevelDB, str(tmp_path / "state"), {})
    assert store.pages == 0
    store.close()


def test_after_a_failed_write_nothing_is_appended_to_the_log(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(state)
    engine = engine_of(store)
    full = Mock(side_effect=engine.library_error("IO error: No space left on device"))
    monkeypatch.setattr(engine, "_db", Mock(write_batch=full))
    with pytest.raises(StoreError, match="Check the disk"):
        engine.write_rows(Changes(), sync=False)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="takes no more pages"):
        store.add(page(PAGES))
    with pytest.raises(StoreError, match="takes no more pages"):
        store.close()
    with closing(opened(state)) as store:
        read_all(store)
