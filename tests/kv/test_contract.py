"""What every key-value store owes the page store."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from scrapy_neardup.kv import leveldb
from scrapy_neardup.kv import memory as kv_memory
from scrapy_neardup.kv.base import Changes, KeyValueStore
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.leveldb import Temporary
from scrapy_neardup.kv.memory import Memory, SortedRows, Transaction
from scrapy_neardup.state.urls import SERVERS, STORES, parse_url
from tests.server.redis_server import Server

#: Stores, and what lies below a transaction.
KINDS = ["memory", "leveldb", "sqlite", "temporary", "temporary on disk", "dry run", "unix"]


def make_checked(kind: str, folder: Path) -> FileEngine:
    """Open the checked rows of an engine in files."""
    engine = STORES[kind](str(folder / "state"))
    assert isinstance(engine, FileEngine)
    engine.hold()
    engine.accept()
    return engine


@pytest.fixture(params=KINDS)
def kv(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyValueStore]:
    """Every kind of store, empty but for its tally."""
    kind = request.param
    if kind not in ("memory", "sqlite", "unix") and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed, so there is no LevelDB")
    if kind == "temporary on disk":
        monkeypatch.setattr(leveldb, "_MOST", 3)
    store: KeyValueStore
    if kind == "unix":
        server: Server = request.getfixturevalue("redis_server")
        store = SERVERS["unix"](parse_url(server.url(server.new_state()))[1])
    elif kind == "dry run":
        below = make_checked("leveldb", tmp_path)
        below.write(Changes({b"x hidden": b"below", b"x removed": b"below", b"z": b"below"}), sync=True)
        below.close(Changes())
        engine = STORES["leveldb"](str(tmp_path / "state"))
        assert isinstance(engine, FileEngine)
        store = Transaction(engine.look())
        store.write(Changes({}, {b"x hidden", b"x removed", b"z"}), sync=False)
    elif kind.startswith("temporary"):
        store = Temporary(tmp_path)
    elif kind == "memory":
        store = Memory()
    else:
        store = make_checked(kind, tmp_path)
    yield store
    store.close()


def test_it_holds_what_batches_leave_in_a_dictionary(kv: KeyValueStore) -> None:
    draw = random.Random(7)
    keys = [b"x" + draw.randbytes(draw.choice((0, 4, 8, 16))) for _ in range(60)]
    keys += [keys[0][:1] + b"\xff" * 8 + draw.randbytes(2) for _ in range(4)]
    keys += [(keys[1] + b"\0" * 17)[:9] + draw.randbytes(3) for _ in range(6)]
    rows: dict[bytes, bytes] = {}
    for _ in range(9):
        some = draw.sample(keys, 25)
        changes = Changes({key: draw.randbytes(4) for key in some[:15]}, set(some[15:]))
        rows = {key: value for key, value in rows.items() if key not in changes.deletes} | changes.puts
        kv.write(changes, sync=draw.random() < 0.5)
        assert kv.get_all(keys) == [kv.get(key) for key in keys] == [rows.get(key) for key in keys]
        for prefix in {b"x", *keys, *(key[:9] for key in keys)}:
            wanted = sorted(row for row in rows.items() if row[0].startswith(prefix))
            assert list(kv.scan(prefix)) == wanted
            assert list(kv.scan(prefix, reverse=True)) == wanted[::-1]
    if isinstance(kv, Temporary):
        assert bool(kv._rows) is (leveldb._MOST > 3), "more are on the disk"


def test_a_scan_of_many_rows_gives_those_of_its_prefix_alone(kv: KeyValueStore) -> None:
    """The keys lie close to each other, and are more than are read at a time."""
    stem = b"x\xff\xff"
    written = {stem + b"\0" * zeros + tail: tail for zeros in range(300) for tail in (b"", b"\x01", b"\xff")}
    written |= {b"x\xff": b"", b"x\xfe\xff": b"before", b"y": b"behind", b"\xff" * 9: b"last"}
    kv.write(Changes(dict(written)), sync=False)
    for prefix in (stem, stem + b"\0", stem + b"\xff", b"x", b"\xff" * 8, b"\xff" * 9, b"x\xff\xff\x02"):
        expected = sorted(item for item in written.items() if item[0].startswith(prefix))
        assert list(kv.scan(prefix)) == expected
        assert list(kv.scan(prefix, reverse=True)) == expected[::-1]


def test_a_scan_may_begin_anywhere(kv: KeyValueStore) -> None:
    rows = {b"r" + id.to_bytes(8, "big"): b"page" for id in range(5, 50, 5)}
    kv.write(Changes(dict(rows)), sync=False)
    for low in (0, 5, 6, 49, 50):
        key = b"r" + low.to_bytes(8, "big")
        assert list(kv.scan(b"r", start=key)) == [(one, b"page") for one in sorted(rows) if one >= key]
    kv.write(Changes({b"r" + bytes(8): b"page"}, {b"r" + (10).to_bytes(8, "big")}), sync=False)
    assert [key[-1] for key, _ in kv.scan(b"r", start=b"r" + bytes(8))] == [0, 5, 15, 20, 25, 30, 35, 40, 45]
    assert kv.count(b"r") == 9


@pytest.mark.parametrize("reverse", [False, True])
def test_rows_may_change_during_a_scan_and_those_that_stay_come_once(kv: KeyValueStore, reverse: bool) -> None:
    draw = random.Random(11)
    for many in (20, 90):
        keys = [b"x%04d" % number for number in range(2 * many)]
        kv.write(Changes(dict.fromkeys(keys[::2], b"before"), {*keys[1::2]}), sync=False)
        left, found = {*keys[::2]}, list[bytes]()
        for key, value in kv.scan(b"x", reverse=reverse):
            assert value in (b"before", b"later")
            found.append(key)
            gone, new = draw.sample(keys, 2)
            kv.write(Changes({new: b"later"}, {gone} - {new}), sync=False)
            left -= {gone, new}
        assert found == sorted({*found}, reverse=reverse)
        assert left <= {*found}


def test_the_order_of_rows_in_memory_forgets_keys_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_memory, "_MANY", 10)
    rows = SortedRows[int]()
    for number in range(100):
        rows.change({b"%d" % number: number})
        assert list(rows.scan(b"", b"", reverse=False)) == [(b"%d" % number, number)]
        rows.change({}, [b"%d" % number])
    assert len(rows._sorted) <= 12


@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
def test_a_snapshot_has_the_rows_of_its_moment_and_takes_none(kind: str, tmp_path: Path) -> None:
    if kind == "leveldb":
        pytest.importorskip("plyvel")
    engine = STORES[kind](str(tmp_path / "state"))
    assert isinstance(engine, FileEngine)
    with closing(make_checked(kind, tmp_path)) as store:
        store.write(Changes({b"x": b"before"}), sync=False)
        with closing(engine.look()) as snapshot:
            store.write(Changes({b"x": b"after"}), sync=False)
            assert (snapshot.is_held, snapshot.get(b"x"), store.get(b"x")) == (True, b"before", b"after")
            with pytest.raises(RuntimeError, match="for reading only"):
                snapshot.write(Changes({b"x": b"mine"}), sync=False)
