"""What is SQLite's own: whose database it is, what it promises the disk, who may open it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError, StoreMismatch
from scrapy_neardup.kv import tally
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state import records
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import record as page
from tests.faults import engine_of

RECIPE = {"method": "minhash", "seed": 7}


def opened(path: Path) -> PageStore:
    return open_at(SQLite, str(path), RECIPE)


def files(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


@pytest.mark.parametrize("mode", ["DELETE", "WAL", "left"])
@pytest.mark.parametrize("application", [0, 0x6E647571])
def test_a_database_of_another_program_is_refused_unchanged(mode: str, application: int, tmp_path: Path) -> None:
    """Also one that was left in midst of writing. Opening it with SQLite would move its log into it."""
    path = tmp_path / "there" / "other.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA journal_mode = {'DELETE' if mode == 'DELETE' else 'WAL'}")
        other.execute(f"PRAGMA application_id = {application}")
        other.execute("CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB NOT NULL)")
        other.execute("INSERT INTO kv VALUES ('their', 'data')")
        other.commit()
        shutil.copytree(path.parent, tmp_path / "left")
    if mode == "left":
        path = tmp_path / "left" / "other.sqlite"
        assert Path(f"{path}-wal").stat().st_size > 0
    before = files(path)
    with pytest.raises(StoreMismatch, match="NEARDUP_STORE") as refused:
        opened(path)
    assert str(path) in str(refused.value)
    assert files(path) == before
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT * FROM kv").fetchall() == [("their", "data")]


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"plain text, no database\n" * 2,
        "不是数据库\n".encode() * 1000,
        bytes(100),
        b"SQLite format 3\x00",
        b"S" * 4096,
    ],
    ids=["a byte", "text", "long text", "zeros", "nothing but the magic", "one page"],
)
def test_a_file_that_is_no_database_is_refused_and_stays_as_it_is(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    # SQLite takes some for a database in which nothing was written; then it is somebody else's.
    with pytest.raises((StoreDamaged, StoreMismatch), match="NEARDUP_STORE") as refused:
        opened(path)
    assert str(path) in str(refused.value)
    assert files(path) == {"notes.txt": data}


def test_an_empty_file_is_begun_as_a_new_state(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    path.touch()
    with closing(opened(path)) as store:
        store.add(page(1))
    with closing(opened(path)) as store:
        assert store.find(page(1).url) == page(1)


def test_what_is_no_file_or_no_database_is_neither_opened_nor_repaired(tmp_path: Path) -> None:
    folder, notes = tmp_path / "state.sqlite", tmp_path / "notes.txt"
    folder.mkdir()
    notes.write_text("notes")
    with pytest.raises(StoreError, match=rf"{folder} is no file, .*NEARDUP_STORE"):
        opened(folder)
    copy = SQLite.damaged_copy(str(notes), tmp_path / "copies")
    with pytest.raises(StoreError, match="no scrapy-neardup state"), copy:
        pass
    assert {file.name for file in tmp_path.rglob("*")} == {"state.sqlite", "notes.txt"}


def test_a_seal_waits_for_the_disk_and_a_commit_each_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    for number in (0, 10):  # a new state, and one that was there
        with closing(opened(tmp_path / "state.sqlite")) as store:
            db, commits, level = engine_of(store)._db, list[str](), ["NORMAL"]

            def told(statement: str, commits: list[str] = commits, level: list[str] = level) -> None:
                if statement.startswith("PRAGMA synchronous = "):
                    level[0] = statement.rpartition(" ")[2]
                elif statement == "COMMIT":
                    commits.append(level[0])

            assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            assert db.execute("PRAGMA synchronous").fetchone() == (1,)
            generation = store.journal.begin("a crawl")
            db.set_trace_callback(told)
            store.add(page(number))
            clock[0] += records.SYNC_EVERY
            store.add(page(number + 1))
            store.add(page(number + 2), generation=generation)
            store.journal.seal(generation, [page(number + 2).id])
            store.touch(page(number))
            db.set_trace_callback(None)
            assert commits == ["NORMAL", "FULL", "NORMAL", "FULL", "NORMAL"]


def test_a_write_that_fails_leaves_the_level_as_it_was(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "state.sqlite")) as store:
        engine = engine_of(store)
        engine._db.execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError):
            engine.write_rows(Changes({b"z": b""}), sync=True)
        engine._db.execute("PRAGMA query_only = OFF")
        assert engine._db.execute("PRAGMA synchronous").fetchone() == (1,)
        store.add(page(1))
        assert store.find(page(1).url) == page(1)


def test_a_row_that_is_not_what_was_written_is_damage_however_it_is_read(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "state.sqlite")) as store:
        engine = engine_of(store)
        engine.write_rows(Changes({b"z": b"value"}), sync=False)
        engine._db.execute("UPDATE kv SET v = x'7676' WHERE k = x'7a'")
        for read in (lambda: engine.get(b"z"), lambda: engine.get_all([b"z"]), lambda: [*engine.rows(b"z", None)]):
            with pytest.raises(StoreDamaged, match="not what was written"):
                read()


@pytest.mark.parametrize(("cause", "is_damage"), [("PRAGMA max_page_count = 10", False), ("DROP TABLE kv", True)])
def test_a_full_disk_is_no_damage_and_a_missing_table_is(cause: str, is_damage: bool, tmp_path: Path) -> None:
    store = opened(tmp_path / "state.sqlite")
    engine = engine_of(store)
    engine._db.execute(cause)
    with pytest.raises(StoreError) as failed:
        engine.write_rows(Changes({b"z": bytes(1_000_000)}), sync=True)
    assert isinstance(failed.value, StoreDamaged) == is_damage
    with suppress(StoreError):
        store.close()


def test_a_log_that_ends_behind_the_last_sync_is_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a power cut leaves of the log: all that was synced, and of the rest as much as got to the disk by itself."""
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "state.sqlite"
    store = opened(path)
    log = Path(f"{path}-wal")
    for n in range(1, 11):
        store.add(page(n))
    store.kv.write(Changes(), sync=True)
    synced = log.stat().st_size
    for n in range(11, 31):
        store.add(page(n))
    copies = []
    for end in (synced - 4096, *range(synced, log.stat().st_size + 1, 1999)):
        copy = tmp_path / str(end)
        shutil.copytree(path.parent, copy)
        with Path(f"{copy / path.name}-wal").open("r+b") as file:
            file.truncate(end)
        copies.append(copy / path.name)
    store.close()
    short, *copies = copies
    with pytest.raises(StoreDamaged, match=r"with 10 pages, but .* with 30"):  # it was no power cut
        opened(copies[0])
    monkeypatch.setattr(tally, "boot", lambda: b"another boot")
    with pytest.raises(StoreDamaged):  # a part of what was synced is missing
        opened(short)
    found = []
    for copied in copies:
        with closing(opened(copied)) as left:
            assert check(left).sound
            assert [left.find(page(n).url) for n in range(1, left.pages + 1)] == [
                page(n) for n in range(1, left.pages + 1)
            ]
            found.append(left.pages)
    assert found[0] == 10
    assert found == sorted(found)
    assert len(set(found)) > 10


def test_a_free_page_that_is_in_use_is_damage_though_every_row_can_be_read(tmp_path: Path) -> None:
    """The next write would go over the rows in it."""
    path = tmp_path / "state.sqlite"
    with closing(opened(path)) as store:
        for n in range(300):
            store.add(page(n))
        store.forget(page(n).id for n in range(250))
    data = bytearray(path.read_bytes())
    trunk = int.from_bytes(data[32:36], "big")  # the first free page lists others
    data[(trunk - 1) * 4096 + 8 : (trunk - 1) * 4096 + 12] = (2).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(StoreDamaged):
        opened(path)
    assert path.read_bytes() == data


def test_a_closed_state_is_one_file_with_its_witness_and_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite"
    with closing(opened(path)) as store:
        store.add(page(1))
        assert store.kv.size() > path.stat().st_size  # the log counts
    assert set(files(path)) == {"state.sqlite", "state.sqlite.witness", "state.sqlite.lock"}


def test_a_file_into_which_half_of_the_log_was_moved_is_a_healthy_state(tmp_path: Path) -> None:
    """Its header tells of pages that it has not: an opening that leaves the log out would call that damage."""
    path, left = tmp_path / "state.sqlite", tmp_path / "left.sqlite"
    with closing(opened(path)) as store:
        for n in range(40):
            store.add(page(n))
        with closing(sqlite3.connect(path)) as reader:  # the last one to close would remove the log
            copy = tmp_path / "whole.sqlite"
            shutil.copyfile(f"{path}-wal", f"{left}-wal")
            shutil.copyfile(f"{path}.witness", f"{left}.witness")
            reader.execute("VACUUM INTO ?", (str(copy),))
        log = Path(f"{left}-wal").read_bytes()
        # The newest frame of the first page, as a checkpoint writes it before all others.
        frames = [log[at : at + 24 + 4096] for at in range(32, len(log) - 4119, 24 + 4096)]
        first = [frame[24:] for frame in frames if frame[:4] == b"\0\0\0\1"][-1]
        whole = path.read_bytes()
        left.write_bytes(first + whole[4096:])
        assert int.from_bytes(first[28:32], "big") * 4096 > left.stat().st_size
    with pytest.raises(sqlite3.DatabaseError), closing(sqlite3.connect(f"{left.as_uri()}?immutable=1", uri=True)) as db:
        db.execute("SELECT count(*) FROM kv").fetchone()
    with closing(opened(left)) as store:
        assert [store.find(page(n).url) for n in range(40)] == [page(n) for n in range(40)]
