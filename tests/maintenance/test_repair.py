"""A damaged state stays as it is; what can be read of it is filed anew in a state that holds together."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from scrapy_neardup.errors import StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.kv import leveldb
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.maintenance import copying, sources
from scrapy_neardup.maintenance.copying import repair
from scrapy_neardup.maintenance.sources import Salvage
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import evidence_key, meta_key, record_key, url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from tests.build import FILE_ENGINES, KINDS, state_files

RECIPE = {"method": "minhash", "seed": 7}
PAGES = 2000
FIRST = 1_700_000_000_000_000_000


def page(n: int) -> Record:
    """The n-th page; what is in it follows from n, so that a wrong byte shows. Every third one is a copy."""
    noise = random.Random(n)
    keys = tuple(noise.getrandbits(40) for _ in range(4))
    id = FIRST + n * 10**9
    if n % 3:
        return Record(id, f"https://news.example/{n}.html", id, 1.0, keys, noise.randbytes(200))
    return Record(id, f"https://copy.example/{n}.html", FIRST + (n - 2) * 10**9, 0.5)


def told(n: int) -> Evidence | None:
    return None if n % 3 else Evidence("near", 0, 0.5, 0.75, n, f"第{n}页", ("一样的句子",))


def seen(n: int) -> int:
    """When the n-th page was last seen, in seconds since 1970."""
    return 1_750_000_000 + n


def fill(store: PageStore) -> None:
    for begin in range(0, PAGES, 500):
        changes = Changes()
        for n in range(begin, begin + 500):
            record, evidence = page(n), told(n)
            store.file(record, changes, seen(n), evidence)
        store.write(changes, added=500)
        store.note(np.arange(begin, begin + 8, dtype=np.uint32), f"{begin}.example")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A state of each kind, closed cleanly; that of LevelDB has tables and a log that both hold pages."""
    folder = tmp_path_factory.mktemp("sound")
    found = {}
    for kind in KINDS:
        if kind == "leveldb":
            pytest.importorskip("plyvel")
        found[kind] = folder / f"state.{kind}"
        with closing(open_at(FILE_ENGINES[kind], str(found[kind]), RECIPE)) as store:
            fill(store)
        if kind == "leveldb":
            for _ in range(2):  # an opening makes tables of the log
                with closing(open_at(FILE_ENGINES[kind], str(found[kind]), None)) as store:
                    store.kv.write(Changes({b"m" + bytes([n]) * 9: b"" for n in range(97, 99)}), sync=True)
                    store.kv.write(Changes(deletes={b"m" + bytes([n]) * 9 for n in range(97, 99)}), sync=True)
    return found


@pytest.fixture
def copy(sound: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    def copied(kind: str) -> Path:
        place = tmp_path / f"state.{kind}"
        if kind == "leveldb":
            return Path(shutil.copytree(sound[kind], place))
        return Path(shutil.copyfile(sound[kind], place))

    return copied


def mend(kind: str, source: Path, to: str = "") -> dict[str, Any]:
    """Repair a state and look at what must be so whatever the damage; the new one is beside it."""
    target = source.parent / f"mended.{to or kind}"
    before = state_files(source.parent, source)
    mended, findings = repair((FILE_ENGINES[kind], str(source)), (FILE_ENGINES[to or kind], str(target)))
    assert state_files(source.parent, source) == before
    beside = {f"{source.name}.witness", f"{target.name}.witness"}
    assert {path.name for path in source.parent.iterdir() if path.suffix != ".lock"} <= {
        source.name,
        target.name,
        *beside,
    }
    assert findings.sound, findings.problems
    return {**mended, "store": str(target)}


def compare(target: Path, kind: str) -> int:
    """How many pages are in a state; each of them is as it was."""
    with closing(open_at(FILE_ENGINES[kind], str(target), RECIPE)) as store:
        assert check(store).sound
        pages = 0
        for record in store.records():
            n = (record.id - FIRST) // 10**9
            assert record == Record.unpack(record.id, page(n).pack())
            assert store.find(record.url) == record
            assert store.evidence(record.id) in (told(n), None)
            assert store.last_seen(record.url) in (seen(n), int(record.first_seen))
            pages += 1
        return pages


Mutation = Callable[[Path], object]


def changed(pattern: str, change: Callable[[bytearray], object]) -> Mutation:
    """Change the bytes of the largest file of this name; "." is the state itself, a file."""

    def mutate(root: Path) -> None:
        file = root if pattern == "." else max(root.glob(pattern), key=lambda file: file.stat().st_size)
        data = bytearray(file.read_bytes())
        change(data)
        file.write_bytes(data)

    return mutate


def cut(share: float, pattern: str = ".") -> Mutation:
    return changed(pattern, lambda data: data.__delitem__(slice(int(len(data) * share), None)))


def flip(share: float, pattern: str) -> Mutation:
    return changed(pattern, lambda data: data.__setitem__(int(len(data) * share), data[int(len(data) * share)] ^ 0x21))


def overwrite(*shares: float, noise: bool = False) -> Mutation:
    """Pages of SQLite's file become zeros, or their head noise; never the first, without which nothing is to be had."""

    def change(data: bytearray) -> None:
        for share in shares:
            at = max(int(len(data) * share) // 4096, 1) * 4096
            new = random.Random(at).randbytes(40) if noise else bytes(4096)
            data[at : at + len(new)] = new

    return changed(".", change)


def delete(pattern: str) -> Mutation:
    return lambda root: next(root.glob(pattern)).unlink()


#: Kind, damage, and the share of pages that is saved at least. In SQLite's file damage is where pages are, and none of
#: those that lead to others.
DAMAGES: dict[str, tuple[str, Mutation, float]] = {
    "nothing": ("leveldb", lambda root: None, 1),
    "CURRENT deleted": ("leveldb", delete("db/CURRENT"), 1),
    "CURRENT emptied": ("leveldb", cut(0, "db/CURRENT"), 1),
    "MANIFEST cut": ("leveldb", cut(0.5, "db/MANIFEST-*"), 1),
    "MANIFEST deleted": ("leveldb", delete("db/MANIFEST-*"), 1),
    "MANIFEST of noise": ("leveldb", flip(0.1, "db/MANIFEST-*"), 1),
    "bit flipped early in a table": ("leveldb", flip(0.05, "db/*.ldb"), 0.9),
    "bit flipped amid a table": ("leveldb", flip(0.5, "db/*.ldb"), 0.9),
    "bit flipped late in a table": ("leveldb", flip(0.9, "db/*.ldb"), 0.9),
    "a table cut": ("leveldb", cut(0.5, "db/*.ldb"), 0),
    "no damage to SQLite": ("sqlite", lambda file: None, 1),
    "a page of zeros": ("sqlite", overwrite(0.6), 0.95),
    "the second page of zeros": ("sqlite", overwrite(0), 0),
    "pages of zeros": ("sqlite", overwrite(0.1, 0.25, 0.45, 0.75), 0.85),
    "a page scribbled over": ("sqlite", overwrite(0.6, noise=True), 0.95),
    "pages scribbled over": ("sqlite", overwrite(0.1, 0.3, 0.45, 0.6, 0.93, noise=True), 0.8),
    "end cut": ("sqlite", cut(0.97), 0.8),
    "end cut, and the secret with it": ("sqlite", cut(0.9013), 0),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_can_be_read_is_saved_and_the_damaged_state_stays(damage: str, copy: Callable[[str], Path]) -> None:
    kind, mutate, share = DAMAGES[damage]
    to = {"nothing": "sqlite", "no damage to SQLite": "leveldb"}.get(damage, kind)  # the copy may be of another kind
    source = copy(kind)
    mutate(source)
    try:
        mended = mend(kind, source, to)
    except StoreError:
        assert share == 0
        assert sorted(path.name for path in source.parent.iterdir() if path.suffix != ".lock") == [source.name]
        return
    saved = compare(source.parent / f"mended.{to}", to)
    assert saved == mended["pages"] >= PAGES * share
    lost, before = mended["known_lost"], mended["pages_before"]
    assert lost >= PAGES - saved if before == PAGES else (before is None and lost <= PAGES - saved)
    if share == 1:
        assert mended["rows"]["counts"] > 0
        assert (mended["known_lost"], mended["unreadable_ranges"], mended["rows"]["evidence"]) == (0, 0, 667)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_a_crawl_that_was_killed_are_left_out_as_when_the_state_is_opened(
    copy: Callable[[str], Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = copy(kind)
    store = open_at(FILE_ENGINES[kind], str(source), RECIPE)
    generation = store.journal.begin("evening")
    new = Record(store.new_id(), "https://evening.example/", 1, keys=(5,))
    store.add(Record(new.id, new.url, new.id, keys=(5,)), generation=generation)
    updated = store.new_id()
    store.add(Record(updated, page(1).url, updated, keys=(6,)), generation=generation, replaces=page(1).id)
    store.close()
    mended = mend(kind, source)
    assert (mended["unsealed"], mended["pages"], mended["known_lost"]) == (2, PAGES, 0)
    with closing(open_at(FILE_ENGINES[kind], mended["store"], RECIPE)) as store:
        assert store.rolled_back.pages == 0
        assert store.find(new.url) is None
        assert store.find(page(1).url) == page(1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_of_two_versions_of_a_url_the_newer_one_is_kept(copy: Callable[[str], Path], kind: str) -> None:
    source = copy(kind)
    newer = Record(page(1).id + 7, page(1).url, page(1).id + 7, keys=(5,))
    with closing(open_at(FILE_ENGINES[kind], str(source), RECIPE)) as store:
        changes = Changes({record_key(newer.id): newer.pack()})
        store._postings.file(newer.keys, newer.id, changes)
        store.write(changes, added=1)
    mended = mend(kind, source)
    assert (mended["replaced"], mended["pages"], mended["known_lost"]) == (1, PAGES, 0)
    with closing(open_at(FILE_ENGINES[kind], mended["store"], RECIPE)) as store:
        assert store.find(newer.url) == newer
        assert store.record(page(1).id) is None


def test_rows_that_are_wrong_are_not_taken_over(copy: Callable[[str], Path]) -> None:
    source = copy("sqlite")
    with closing(open_at(FILE_ENGINES["sqlite"], str(source), RECIPE)) as store:
        changes = Changes({b"zebra": b"", evidence_key(7): told(0).pack(), meta_key("surprise"): b"1"})  # type: ignore[union-attr]
        changes.put(record_key(page(5).id), b"noise")
        changes.put(evidence_key(page(3).id), b"noise")
        store._postings.file((99,), page(4).id, changes)
        changes.put(b"b\0\0", b"noise")
        changes.put(b"u123", b"noise")
        store._postings.remove(page(7).keys[:1], page(7).id, changes)
        changes.delete(url_key(page(8).url, store.hashes))
        store.kv.write(changes, sync=True)
        kinds = set(check(store).counts)
    assert len(kinds) > 4
    mended = mend("sqlite", source)
    assert compare(Path(mended["store"]), "sqlite") == mended["pages"] == PAGES - 1
    assert (mended["broken"], mended["known_lost"], mended["rows"]["evidence"]) == (1, 1, 666)


@pytest.mark.parametrize("recipe", [None, b"noise", b"[1]", b"null"])
def test_without_its_recipe_nothing_is_saved(copy: Callable[[str], Path], recipe: bytes | None) -> None:
    source = copy("sqlite")
    name = meta_key("recipe")
    with closing(open_at(FILE_ENGINES["sqlite"], str(source), RECIPE)) as store:
        store.kv.write(Changes(deletes={name}) if recipe is None else Changes({name: recipe}), sync=True)
    with pytest.raises(StoreError, match=r"The recipe of the state at .* cannot be read"):
        mend("sqlite", source)
    assert {path.name for path in source.parent.iterdir() if path.suffix != ".lock"} == {
        "state.sqlite",
        "state.sqlite.witness",
    }


def test_however_many_rows_of_sqlite_are_damaged_all_others_are_saved(copy: Callable[[str], Path]) -> None:
    source = copy("sqlite")
    with closing(sqlite3.connect(source)) as db:
        keys = db.execute("SELECT k FROM kv WHERE k >= x'72' AND k < x'73'").fetchall()
        db.executemany("UPDATE kv SET v = x'00' WHERE k = ?", keys[::5])
        db.commit()
    mended = mend("sqlite", source)
    assert (mended["pages"], mended["unreadable_ranges"], mended["known_lost"]) == (PAGES * 4 // 5, 0, PAGES // 5)


def test_a_state_of_another_format_is_refused(copy: Callable[[str], Path]) -> None:
    source = copy("sqlite")
    with closing(open_at(FILE_ENGINES["sqlite"], str(source), RECIPE)) as store:
        store.kv.write(Changes({meta_key("recipe"): b'{"format": 99}'}), sync=True)
    with pytest.raises(StoreMismatch, match="format 99"):
        mend("sqlite", source)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_that_is_in_use_is_not_copied(copy: Callable[[str], Path], kind: str) -> None:
    source = copy(kind)
    with closing(open_at(FILE_ENGINES[kind], str(source), RECIPE)), pytest.raises(StoreLocked):
        repair((FILE_ENGINES[kind], str(source)), (FILE_ENGINES[kind], str(source.parent / "mended")))
    assert not (source.parent / "mended").exists()


@pytest.mark.parametrize(
    ("kind", "mutate"),
    [
        ("sqlite", lambda file: file.write_bytes(b"no database " * 999)),
        ("sqlite", cut(0)),
        ("sqlite", cut(0.001)),
        ("leveldb", lambda root: shutil.rmtree(root / "db")),
        ("leveldb", lambda root: [file.write_bytes(b"noise") for file in (root / "db").iterdir()]),
        ("leveldb", lambda root: [file.unlink() for file in (root / "db").iterdir()]),
    ],
)
def test_where_nothing_can_be_read_that_is_said(copy: Callable[[str], Path], kind: str, mutate: Mutation) -> None:
    source = copy(kind)
    mutate(source)
    with pytest.raises(StoreError) as refused:
        mend(kind, source)
    assert str(source) in str(refused.value)
    assert not list(source.parent.glob("*mended*"))
    assert not list(source.parent.glob(".*"))


def test_a_file_of_somebody_else_is_no_state(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as db:
        db.execute("CREATE TABLE theirs (a)")
    with pytest.raises(StoreMismatch, match="no scrapy-neardup state"):
        mend("sqlite", tmp_path / "other.sqlite")


def test_leveldb_may_end_the_process_that_repairs(copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source = copy("leveldb")
    monkeypatch.setattr(leveldb, "_REPAIR", "import os; os.abort()")
    with pytest.raises(StoreError, match=r"can be read \(exit code -?\d+\)"):
        mend("leveldb", source)


@pytest.mark.parametrize("error", [OSError("No space left on device"), KeyboardInterrupt()])
def test_what_fails_amid_the_work_leaves_nothing_behind(
    copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    source = copy("sqlite")
    before = state_files(source.parent, source)
    monkeypatch.setattr(copying, "sound_rows", Mock(side_effect=error))
    with pytest.raises((StoreError, KeyboardInterrupt), match=r"make room|^$"):
        repair((FILE_ENGINES["sqlite"], str(source)), (FILE_ENGINES["sqlite"], str(source.parent / "mended.sqlite")))
    assert state_files(source.parent, source) == before
    assert sorted(path.name for path in source.parent.iterdir() if path.suffix != ".lock") == ["state.sqlite"]


def test_a_copy_that_cannot_be_made_is_told(copy: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    source = copy("sqlite")
    monkeypatch.setattr(shutil, "copyfile", Mock(side_effect=OSError("Input/output error")))
    with pytest.raises(StoreError, match=r"cannot be copied: Input/output error\. .* room for two copies"):
        mend("sqlite", source)


LEAF = 20


class Leaves:
    """Rows in leaves of twenty, some of which cannot be read; a search that ends in such a leaf fails too."""

    def __init__(self, rows: list[Row], bad: set[int]) -> None:
        self.leaves = [rows[at : at + LEAF] for at in range(0, len(rows), LEAF)]
        self.bad = bad

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        ends = [leaf[-1][0] for leaf in self.leaves]
        first = next((at for at, end in enumerate(ends) if end >= low), len(ends) - 1)
        last = next((at for at, end in enumerate(ends) if end >= high), len(ends) - 1)
        order = range(last, first - 1, -1) if reverse else range(first, last + 1)
        for at in order:
            if at in self.bad:
                raise StoreError
            leaf = self.leaves[at]
            yield from (row for row in (reversed(leaf) if reverse else leaf) if low <= row[0] < high)


@pytest.mark.parametrize(
    ("bad", "gaps"),
    [
        (set(), 0),
        ({0}, 1),
        ({49}, 1),
        ({7, 8, 9}, 1),
        ({3, 7, 20, 21, 40}, 4),
        (set(range(0, 50, 2)), 25),
        (set(range(1, 49)), 1),
        (set(range(50)), 1),
    ],
)
def test_all_readable_rows_are_found_once(bad: set[int], gaps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = random.Random(1)
    rows = sorted((b"u" + noise.randbytes(8), noise.randbytes(3)) for _ in range(50 * LEAF))
    found = Salvage(Leaves(rows, bad).rows)
    read = list(found.rows(b"u"))
    assert len(read) == len(set(read))
    assert set(read) == {row for at, row in enumerate(rows) if at // LEAF not in bad}
    assert found.gaps == gaps
    assert bad or read == rows
    monkeypatch.setattr(sources, "_TRIES", 10)
    hasty = Salvage(Leaves(rows, bad).rows)
    assert set(hasty.rows(b"u")) <= set(read), "the search ends"
    assert bool(hasty.gaps) == bool(gaps)


@pytest.mark.parametrize(
    "wrong",
    [
        [(b"u1", b""), (b"u3", b""), (b"u2", b"")],
        [(b"u1", b""), (b"u1", b"")],
        [(b"u1", b""), (b"k1", b"")],
        [(b"u1", b""), (b"v1", b"")],
        [(b"u1", b""), ("u2", b"")],
        [(b"u1", b""), (b"u2", None)],
    ],
)
def test_rows_that_cannot_stand_there_are_not_believed(wrong: list[Row]) -> None:
    def mixed(low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        yield from (reversed(wrong) if reverse else wrong)

    read = list(Salvage(mixed).rows(b"u"))
    assert (b"u1", b"") in read
    assert len(read) == len(set(read))
    assert all(type(key) is type(value) is bytes and key.startswith(b"u") for key, value in read)
