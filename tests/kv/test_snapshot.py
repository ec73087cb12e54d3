"""A state is looked into without its lock: while somebody is at work on it, and without leaving a trace."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from errno import ENOSPC
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from filelock import FileLock

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv import files as engines
from scrapy_neardup.kv import leveldb, sqlite
from scrapy_neardup.kv.files import FileEngine, Moving
from scrapy_neardup.kv.lock import ScratchDirectory
from scrapy_neardup.kv.tally import KEY, RowTally
from scrapy_neardup.state.opening import close_store, open_snapshot, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES
from tests.build import FILE_ENGINES, open_state, put
from tests.faults import tally_problems
from tests.state.test_contract import copy_as_killed

ROOT = Path(__file__).parents[2]
KINDS = [scheme for scheme, kind in STORES.items() if kind.is_persistent]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "leveldb":
        pytest.importorskip("plyvel")
    (tmp_path / "here").mkdir()
    return STORES[request.param].url(str(tmp_path.resolve() / "here" / "state"))


at_work = partial(open_state, recipe={})


@contextmanager
def seen(url: str) -> Iterator[PageStore]:
    with closing(open_snapshot(url)) as store:
        assert store.snapshot is not None
        yield store


def fill(store: PageStore, many: int = 50) -> None:
    for number in range(many):
        put(store, f"http://a.example/{number}", number)


def urls(store: PageStore) -> list[str]:
    return [record.url for record in store.records()]


def files(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def left_open(url: str, tmp_path: Path) -> str:
    """The URL of the state as a killed process leaves it, with two unsealed pages in it, one of them an update."""
    code = (
        "import os, sys; from scrapy_neardup.state.opening import open_store; from tests.build import put;"
        f"store = open_store({url!r}, {{}}); one = put(store, 'http://a.example/1', 5);"
        "crawl = store.journal.begin('morning');"
        "put(store, 'http://a.example/1', 6, generation=crawl, replaces=one.id);"
        "put(store, 'http://a.example/2', generation=crawl); sys.stdout.flush(); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT)
    assert done.returncode == 9
    return url


def test_it_sees_what_was_written_until_now_while_another_is_at_work(url: str) -> None:
    with at_work(url) as store:
        put(store, "http://a.example/1", 5, 6)
        crawl = store.journal.begin("morning")
        second = put(store, "http://a.example/2", 6, generation=crawl)
        before = time.time()
        with seen(url) as look:
            put(store, "http://a.example/3")
            assert (look.is_held, look.pages, urls(look)) == (True, 2, ["http://a.example/1", "http://a.example/2"])
            assert before <= look.as_of <= time.time()
            assert look.postings(6, 10) == store.postings(6, 10)
            assert look.find("http://a.example/3") is None
            assert (look.pending().pages, look.pending().crawls) == (1, ("morning",))
            assert look.journal.is_unsealed(second.id)
            assert not look.journal.is_unsealed(second.id - 1)
            assert tally_problems(look) == []
        with seen(url) as look:
            assert look.pages == 3
        store.journal.seal(crawl, [second.id])
        with seen(url) as look:
            assert look.pending().pages == 0
            assert not look.journal.is_unsealed(second.id)


def test_of_a_closed_state_nothing_changes_and_nothing_is_left(url: str, tmp_path: Path) -> None:
    with at_work(url) as store:
        put(store, "http://a.example/1", 5)
    before = files(tmp_path)
    with seen(url) as look:
        assert (look.is_held, urls(look), look.pending().pages) == (False, ["http://a.example/1"], 0)
        assert (look.scheme, look.kv.size() > 0) == (url.partition(":")[0], True)
    assert files(tmp_path) == before
    assert [path.name for path in (tmp_path / "here").iterdir() if "look" in path.name] == []
    with at_work(url) as store:
        assert store.pages == 1


def test_what_a_killed_crawl_left_is_there_as_what_it_is_and_is_not_rolled_back(url: str, tmp_path: Path) -> None:
    left_open(url, tmp_path)
    before = files(tmp_path)
    for _ in range(2):
        with seen(url) as look:
            assert (look.is_held, look.pages, look.rolled_back.pages) == (False, 3, 0)
            assert (look.pending().pages, look.pending().crawls) == (2, ("morning",))
    assert files(tmp_path) == before
    with at_work(url) as store:
        assert (store.rolled_back.pages, urls(store)) == (2, ["http://a.example/1"])


def test_a_crawl_can_end_while_it_is_looked_at_and_the_next_one_finds_all(url: str) -> None:
    with closing(open_store(url, {})) as store:
        put(store, "http://a.example/1")
        with seen(url) as look:
            put(store, "http://a.example/2")
            close_store(store)
            assert urls(look) == ["http://a.example/1"]
            with at_work(url) as second:
                assert second.pages == 2
                assert urls(look) == ["http://a.example/1"]
        with at_work(url) as third:
            put(third, "http://a.example/3")
    with at_work(url) as store:
        assert store.pages == 3


def test_the_holder_keeps_its_lock_while_others_of_its_process_look(url: str) -> None:
    with at_work(url) as store:
        put(store, "http://a.example/1")
        for _ in range(3):
            with seen(url):
                pass
        code = f"from scrapy_neardup.state.opening import open_store; open_store({url!r}, {{}})"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        assert "Another process is using the state" in done.stderr
        put(store, "http://a.example/2")


def test_damage_is_told_of_as_at_an_opening(url: str, tmp_path: Path) -> None:
    with at_work(url) as store:
        fill(store)
    place = tmp_path / "here" / "state"
    largest = max((path for path in [place, *place.rglob("*")] if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 0xFF
    largest.write_bytes(content)
    before = files(tmp_path)
    with pytest.raises(StoreDamaged):
        open_snapshot(url)
    assert files(tmp_path) == before


def test_an_empty_place_is_refused_and_nothing_is_made(url: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no state at"):
        open_snapshot(url, {})
    assert files(tmp_path) == {}


def test_a_state_that_never_keeps_still_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with at_work(url) as store:
        put(store, "http://a.example/1")
        monkeypatch.setattr(engines, "_TRIES", 3)
        monkeypatch.setattr(engines, "_PAUSE", 0)
        monkeypatch.setattr(FileEngine, "_look", Mock(side_effect=Moving))
        with pytest.raises(StoreError, match=r"changes too fast"):
            open_snapshot(url)
    assert [path.name for path in (tmp_path / "here").iterdir() if "look" in path.name] == []


def test_a_look_that_misses_what_was_written_before_is_made_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the file of the witness were ahead, which it is of a log that was cut."""
    with at_work(url) as store:
        put(store, "http://a.example/1")
        tally = RowTally.unpack(store.kv.get(KEY) or b"")
        later = tally._replace(sequence=tally.sequence + 1, pages=tally.pages + 1)
        assert isinstance(store.kv, FileEngine)
        assert store.kv._witness is not None
        store.kv._witness.note(later, synced=False)
        tries: list[float] = []
        monkeypatch.setattr(engines, "_TRIES", 4)
        monkeypatch.setattr("scrapy_neardup.kv.files.time.sleep", tries.append)
        with pytest.raises(StoreError, match="it ends at write"):
            open_snapshot(url)
        assert len(tries) == 3


def test_a_file_that_a_beginning_crawl_removes_is_no_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(url) as store:
        put(store, "http://a.example/1")
    left, copyfile, read_bytes = [FileNotFoundError("000003.log")], shutil.copyfile, Path.read_bytes

    def fails_once(read: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **how: Any) -> Any:
            if left:
                raise left.pop()
            return read(*given, **how)

        return wrapped

    monkeypatch.setattr(shutil, "copyfile", fails_once(copyfile))
    monkeypatch.setattr(Path, "read_bytes", fails_once(read_bytes))
    with seen(url) as look:
        assert look.pages == 1
    assert not left


def test_the_file_of_a_held_state_is_not_opened_beside_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A close of that file would drop SQLite's locks, if this process holds the state."""
    url = f"sqlite://{tmp_path}/state"
    with at_work(url) as store:
        (tmp_path / "state.witness").unlink()
        monkeypatch.setattr(engines, "_TRIES", 1)
        monkeypatch.setattr(sqlite, "_is_ours", lambda path: pytest.fail("the file was opened"))
        with pytest.raises(StoreDamaged, match=r"witness .* is missing"):
            open_snapshot(url)
        put(store, "http://a.example/1")


def test_the_lock_is_free_even_if_a_refused_state_cannot_be_closed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(url):
        pass
    kind = FILE_ENGINES[url.partition(":")[0]]
    fail = Mock(side_effect=StoreError("the disk is gone"))
    with monkeypatch.context() as broken:
        broken.setattr(kind, "open", fail)
        broken.setattr(kind, "close_files", fail)
        with pytest.raises(StoreError, match="the disk is gone"):
            open_store(url, {})
    with at_work(url) as store:
        assert not store.pages


def test_what_a_killed_look_has_left_goes_with_a_later_one(tmp_path: Path) -> None:
    place = tmp_path / "state"
    left, held, young = (ScratchDirectory(place) for _ in range(3))
    for one in (left, held):
        os.utime(one.path, (time.time() - 7200,) * 2)
    left._lock.release()
    young._lock.release()
    fresh = ScratchDirectory(place)
    assert [one.path.exists() for one in (left, held, young, fresh)] == [False, True, True, True]
    for one in (held, young, fresh):
        one.remove()
        assert not one.path.exists()


def test_a_disk_with_room_for_a_folder_but_no_lock_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FileLock, "acquire", Mock(side_effect=OSError(ENOSPC, "No space left on device")))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(StoreError, match=r"cannot be copied for reading: .* Make room"):
        ScratchDirectory(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


def test_a_fixed_folder_is_copied_elsewhere(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_work(url) as store:
        fill(store)

    monkeypatch.setattr("scrapy_neardup.kv.leveldb.os.link", Mock(side_effect=OSError("another disk")))
    elsewhere = tmp_path / "tmp"
    elsewhere.mkdir()
    made: list[Path] = []

    def mkdtemp(prefix: str, dir: Path | None = None) -> str:
        if dir is not None:
            raise PermissionError("not here")
        made.append(elsewhere / f"{prefix}{len(made)}")
        made[-1].mkdir()
        return str(made[-1])

    monkeypatch.setattr("scrapy_neardup.kv.lock.mkdtemp", mkdtemp)
    with seen(url) as look:
        assert look.pages == 50
        assert tally_problems(look) == []
    assert made
    assert list(elsewhere.iterdir()) == []


def test_a_table_that_is_being_written_gets_no_second_name(tmp_path: Path) -> None:
    """LevelDB, opening the copy, would begin its own tables under the very same names."""
    pytest.importorskip("plyvel")
    url = STORES["leveldb"].url(str(tmp_path.resolve() / "state"))
    with at_work(url) as store:
        fill(store)
        written = [tmp_path / "state" / "db" / f"{number:06}.ldb" for number in range(40)]
        for path in written:
            path.write_bytes(b"half a table")
        with seen(url) as look:
            assert look.pages == 50
            assert {path.stat().st_nlink for path in written[4:]} == {1}  # the log has the number 3
        assert {path.read_bytes() for path in written} == {b"half a table"}


def test_a_manifest_that_was_cut_lets_no_look_write_to_the_tables_of_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LevelDB numbers the new files of the copy above those that the manifest names: they must not be links."""
    pytest.importorskip("plyvel")
    monkeypatch.setattr(leveldb, "_WRITES", 2**16)
    (tmp_path / "here").mkdir()
    with at_work(STORES["leveldb"].url(str(tmp_path.resolve() / "here" / "state"))) as store:
        for number in range(200):
            store.add(Record(number + 1, f"http://a.example/{number}", number + 1, 1.0, (), os.urandom(1500)))
        copy_as_killed(tmp_path / "here", tmp_path / "killed")
    [manifest] = (tmp_path / "killed" / "state" / "db").glob("MANIFEST-*")
    packed = manifest.read_bytes()
    for end in range(50, len(packed), 40):
        manifest.write_bytes(packed[:end])
        before = files(tmp_path / "killed")
        with suppress(StoreError):  # what was cut may have said nothing new
            open_snapshot(STORES["leveldb"].url(str(tmp_path.resolve() / "killed" / "state"))).close()
        assert files(tmp_path / "killed") == before, end


@pytest.mark.parametrize("what", ["grows", "is another"])
def test_a_manifest_that_changes_while_files_are_copied_makes_another_copy(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("plyvel")
    url = STORES["leveldb"].url(str(tmp_path.resolve() / "state"))
    with at_work(url) as store:
        fill(store)
    [manifest] = (tmp_path / "state" / "db").glob("MANIFEST-*")
    copyfile, copied = shutil.copyfile, list[Path]()

    def copy(file: Path, to: Path) -> None:
        copied.append(file)
        if len(copied) == 1 and what == "grows":
            manifest.write_bytes(manifest.read_bytes() + b"\0")
        elif len(copied) == 1:
            copyfile(manifest, manifest.with_name("MANIFEST-000099"))
            (manifest.parent / "CURRENT").write_text("MANIFEST-000099\n")
        copyfile(file, to)

    monkeypatch.setattr(shutil, "copyfile", copy)
    with seen(url) as look:
        assert look.pages == 50
    assert copied.count(copied[0]) == 2


def looks(url: str, seconds: float) -> tuple[int, int]:
    """Look again and again at a state at work; how often, and by how many writes it has gone on."""
    until, many, first, last = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < until or many < 3:
        with seen(url) as look:
            assert look.is_held
            sequence = RowTally.unpack(look.kv.get(KEY) or b"").sequence
            assert sequence >= last
            first, last = first or sequence, sequence
            assert sum(1 for _ in look.rows(b"r")) == look.pages
            if many % 4 == 0:
                assert tally_problems(look) == []  # each record's URL and postings, and no others
                assert all(look.find(record.url) is not None for record in look.records())
                assert look.pending().crawls == ("writer",)
            many += 1
    return many, last - first


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(2.5, marks=pytest.mark.slow), pytest.param(90, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
def test_every_look_at_a_state_at_work_agrees_with_itself(url: str, tmp_path: Path, seconds: float) -> None:
    place = tmp_path / "here" / "state"
    script = [sys.executable, "-m", "tests.kv.writer", url]
    with subprocess.Popen(script, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        tables = {path: path.read_bytes() for path in place.rglob("*.ldb")}
        many, writes = looks(url, seconds)
        for path, content in tables.items():
            if path.exists():
                assert path.read_bytes() == content
        logging.info("%s: %d looks, %d writes", url, many, writes)
        assert writes > 100
        process.communicate("", timeout=60)
        assert process.returncode == 0
    assert [path.name for path in (tmp_path / "here").iterdir() if "look" in path.name] == []
    with at_work(url) as store:
        assert tally_problems(store) == []


@pytest.mark.skipif(os.name != "posix", reason="Modes of files are POSIX.")
def test_a_state_is_for_its_user_alone(url: str, tmp_path: Path) -> None:
    """It holds its secret. What is in a directory of mode 0700 nobody else can reach."""
    umask = os.umask(0)
    try:
        store = open_store(url, {})
        put(store, "http://a.example/", 1)
        at_work = [*(tmp_path / "here").iterdir()]
        close_store(store)
    finally:
        os.umask(umask)
    for path in (*at_work, *(tmp_path / "here").iterdir()):
        if path.exists():
            assert path.stat().st_mode & 0o077 == 0, path
