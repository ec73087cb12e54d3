"""What the witness beside a state tells of it: it may be behind the state in any way there is, and never ahead."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError
from scrapy_neardup.kv import tally as witness
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.tally import RowTally, Witness, check_bytes, of_row, secret_at
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.layout import pack_seen, record_key, url_key
from scrapy_neardup.state.opening import open_at, open_snapshot
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.urls import default_url
from tests.build import FILE_ENGINES
from tests.build import record as page
from tests.faults import engine_of
from tests.state.test_contract import copy_as_killed

RECIPE = {"method": "minhash", "seed": 7}
KINDS = [kind for kind in ("leveldb", "sqlite") if kind != "leveldb" or find_spec("plyvel")]


def fill(store: PageStore, first: int, last: int) -> None:
    for n in range(first, last):
        store.add(page(n))


class Spot:
    """Where a state lies, with all that belongs to it; nothing else is there."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder = FILE_ENGINES[kind], folder
        self.location = str(folder / f"state.{kind}")
        self.witness = self.kind.witness_of(self.location)

    def open(self) -> PageStore:
        return open_at(self.kind, self.location, RECIPE)

    def fill(self, first: int, last: int) -> None:
        with closing(self.open()) as store:
            fill(store, first, last)

    def count(self) -> int:
        with closing(self.open()) as store:
            return store.pages

    def copied(self, name: str) -> Spot:
        """As a process that is killed now would leave it."""
        copy = self.folder.with_name(name)
        copy_as_killed(self.folder, copy)
        return Spot(self.kind.scheme, copy)

    def database(self) -> Path:
        return Path(self.location) / "db" if self.kind.scheme == "leveldb" else Path(self.location)


@pytest.fixture(params=KINDS)
def spot(request: pytest.FixtureRequest, tmp_path: Path) -> Spot:
    (tmp_path / "here").mkdir()
    return Spot(request.param, tmp_path / "here")


# The file


def tally(sequence: int, *, is_clean: bool = False) -> RowTally:
    return RowTally(b"a state!", sequence, sequence * 2, 2**63 + sequence, is_clean)


@contextmanager
def opened(found: Witness) -> Iterator[Witness]:
    yield found
    found.release()


def read(path: Path) -> Witness:
    with opened(Witness(path)) as found:
        return found


def test_what_was_noted_is_read_again(tmp_path: Path) -> None:
    path, closed = tmp_path / "witness", tally(3, is_clean=True)
    with opened(Witness.create(path, tally(0))) as found:
        assert (found.newest, found.synced) == (tally(0), tally(0))
        found.note(tally(1), synced=True)
        found.note(tally(2), synced=False)
    with opened(Witness(path)) as again:
        assert (again.newest, again.synced, again.was_closed(tally(1))) == (tally(2), tally(1), False)
        again.close(closed, "7:ab")
    with opened(Witness(path)) as last:
        assert (last.newest, last.digest, last.was_closed(closed)) == (closed, "7:ab", True)
        last.note(tally(4), synced=True)
    assert not read(path).was_closed(closed)
    assert RowTally.unpack(closed.pack()) == closed


@pytest.mark.parametrize("slot", [0, 1])
def test_a_line_that_a_power_cut_has_torn_is_not_believed_and_the_other_one_is(slot: int, tmp_path: Path) -> None:
    path = tmp_path / "witness"
    with opened(Witness.create(path, tally(0))) as found:
        for sequence in (1, 2):
            found.note(tally(sequence), synced=True)
    data = bytearray(path.read_bytes())
    data[slot * 512 + 20] ^= 1
    path.write_bytes(data)
    again = read(path)
    assert (again.synced, again._turn) == (tally(1 + slot), 1 - slot)


def test_the_secret_is_read_however_damaged_the_rest_is(tmp_path: Path) -> None:
    path = tmp_path / "witness"
    with opened(Witness.create(path, RowTally.new())) as one:
        assert secret_at(path) is secret_at(tmp_path / "none") is None
        one.keep(b"secret of the state")
    path.write_bytes(b"\0" * 1536 + path.read_bytes()[1536:])
    assert secret_at(path) == b"secret of the state"
    path.write_bytes(path.read_bytes()[:1540] + b"x" + path.read_bytes()[1541:])
    assert secret_at(path) is None


@pytest.mark.parametrize("data", [b"", b"noise" * 400, b" " * 1536, b"\xff" * 1536])
def test_a_file_without_a_whole_line_is_no_witness(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "witness").write_bytes(data)
    with pytest.raises(ValueError, match="none of its lines"):
        Witness(tmp_path / "witness")


def test_the_sum_is_another_if_a_row_ends_elsewhere() -> None:
    assert of_row(b"ab", b"c") != of_row(b"a", b"bc")
    assert check_bytes(b"ab", b"c") != check_bytes(b"a", b"bc")


# A state that was there and is not any more


@pytest.mark.parametrize("emptied", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_a_state_that_is_gone_is_no_new_one(spot: Spot, emptied: bool, killed: bool) -> None:
    with closing(spot.open()) as store:
        fill(store, 1, 21)
        left = spot.copied("killed") if killed else spot
    database, is_sqlite = left.database(), left.kind.scheme == "sqlite"
    database.unlink() if is_sqlite else shutil.rmtree(database)
    if emptied:
        database.touch() if is_sqlite else database.mkdir()
    assert left.kind.exists(left.location)
    # No state of another kind answers for a file of SQLite's.
    assert default_url(left.folder) == left.kind.url(left.location)
    begin = left.witness if is_sqlite else Path(left.location)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=r"20 pages.* To begin again there, delete .*NEARDUP_STORE") as refused:
            left.open()
        for words in (str(left.witness), f"delete {begin}", "check --repair"):
            assert words in str(refused.value)
    begin.unlink() if is_sqlite else shutil.rmtree(begin)
    assert left.count() == 0


def test_a_state_that_nobody_wrote_to_yet_may_begin_again(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a kill while it was made: there is a witness, and nothing that it could speak of."""

    class Cut(BaseException):
        pass

    with monkeypatch.context() as patched:
        patched.setattr(spot.kind, "write", Mock(side_effect=Cut))
        with pytest.raises(Cut):
            spot.open()
    assert spot.witness.exists()
    for _ in range(2):
        assert spot.count() == 0


# Moving


def test_a_state_that_is_moved_as_a_whole_is_the_same(spot: Spot, tmp_path: Path) -> None:
    with closing(spot.open()) as store:
        fill(store, 1, 21)
        killed = spot.copied("killed")
    for left in (spot, killed):
        there = left.folder.rename(tmp_path / f"moved {left.folder.name}")
        with closing(Spot(left.kind.scheme, there).open()) as store:
            assert [store.find(page(n).url) for n in range(1, 21)] == [page(n) for n in range(1, 21)]
            assert check(store).sound


def test_a_closed_state_needs_no_witness_but_one_that_was_left_open_does(spot: Spot) -> None:
    with closing(spot.open()) as store:
        fill(store, 1, 21)
        killed = spot.copied("killed")
    spot.witness.unlink()
    assert spot.count() == 20
    assert spot.witness.exists()
    killed.witness.unlink()
    with pytest.raises(StoreDamaged, match="Keep together") as refused:
        killed.open()
    assert str(killed.witness) in str(refused.value)


def test_the_largest_file_of_sqlite_copied_alone_from_an_open_state_is_refused(tmp_path: Path) -> None:
    """It is whole, of the last time that the log was moved into it, and would pass for a state with fewer pages."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    spot, copy = Spot("sqlite", tmp_path / "here"), Spot("sqlite", tmp_path / "there")
    spot.fill(1, 11)
    with closing(spot.open()) as store:
        fill(store, 11, 21)
        shutil.copyfile(spot.location, copy.location)
    with pytest.raises(StoreDamaged, match=r"state\.sqlite-wal"):
        copy.open()


def test_an_older_copy_and_the_witness_of_another_state_are_told_of(spot: Spot, tmp_path: Path) -> None:
    spot.fill(1, 11)
    old = spot.copied("old")
    spot.fill(11, 21)
    newer, older = spot.witness.read_bytes(), old.witness.read_bytes()
    shutil.rmtree(spot.folder)
    shutil.copytree(old.folder, spot.folder)
    (tmp_path / "other").mkdir()
    other = Spot(spot.kind.scheme, tmp_path / "other")
    other.fill(1, 11)
    for content, told in ((newer, r"with 10 pages, but .* with 20"), (other.witness.read_bytes(), "another state")):
        spot.witness.write_bytes(content)
        with pytest.raises(StoreDamaged, match=told):
            spot.open()
    spot.witness.write_bytes(older)
    assert spot.count() == 10


def in_another_boot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "boot", lambda: b"another boot")


@pytest.mark.parametrize("ending", ["kill", "power cut", "power cut after a seal"])
def test_only_a_power_cut_may_lose_what_is_not_synced(spot: Spot, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(spot.open()) as store:
        generation = store.journal.begin("a crawl")
        fill(store, 1, 11)
        before = spot.copied("before")
        store.add(page(11), generation=generation)  # less than a second later: it is not synced
        if ending == "power cut after a seal":
            store.journal.seal(generation, [page(11).id])
        shutil.copyfile(spot.witness, before.witness)  # it reached the disk, what it speaks of did not
    if ending != "kill":
        in_another_boot(monkeypatch)
    if ending != "power cut":
        with pytest.raises(StoreDamaged, match=r"with 10 pages, but .* with 11"):
            before.open()
        return
    with closing(before.open()) as store:
        assert store.pages == 10
        assert check(store).sound


@pytest.mark.parametrize("later", ["synced", "closed"])
def test_a_state_may_be_ahead_of_its_witness(spot: Spot, later: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = spot.open()
    fill(store, 1, 11)
    old = spot.witness.read_bytes()
    fill(store, 11, 21)
    if later == "synced":
        store.journal.seal(store.journal.begin("a crawl"), [page(1).id])
        left = spot.copied("left")
        store.close()
    else:
        store.close()
        left = spot
    left.witness.write_bytes(old)
    in_another_boot(monkeypatch)
    with closing(left.open()) as store:
        assert store.pages == 20
        assert check(store).sound


def test_a_witness_that_cannot_be_written_stops_no_crawl(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    store = spot.open()
    with monkeypatch.context() as patched:
        patched.setattr(Witness, "_put", Mock(side_effect=OSError("No space left on device")))
        fill(store, 1, 11)
        with pytest.raises(StoreError, match="No space left"):
            store.close()
    assert spot.count() == 10


# What is checked when


def test_all_rows_are_read_at_an_opening_after_a_kill_alone(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(spot.open()) as store:
        fill(store, 1, 11)
        killed = spot.copied("killed")
    found, scan = list[bytes](), spot.kind.scan

    def spy(self: FileEngine, prefix: bytes, **how: Any) -> object:
        found.append(prefix)
        return scan(self, prefix, **how)

    monkeypatch.setattr(spot.kind, "scan", spy)
    for n in range(5):
        spot.fill(20 + n, 20 + n + n % 2)
    assert b"" not in found
    killed.open().close()
    assert b"" in found


def test_rows_that_do_not_fit_are_told_of_after_a_kill(spot: Spot) -> None:
    """Rows go or change without the tally being told, as when what leads to them is damaged."""
    changed = replace(page(5), sketch=b"another sketch")
    with closing(spot.open()) as store:
        fill(store, 1, 11)
        hashes = store.hashes
        cases: list[tuple[Changes, str]] = [
            *((Changes(deletes={next(store.rows(kind))[0]}), "pages|postings|URL") for kind in (b"r", b"k", b"u")),
            (Changes({url_key("http://none.example/", hashes): pack_seen(77, 7)}), "names a page"),
            (Changes({url_key(page(5).url, hashes): pack_seen(page(5).id, 7)[:-1]}), "the URL row .* cannot be read"),
            (Changes({record_key(page(5).id): changed.pack()}), "some rows have changed"),
        ]
    for number, (changes, told) in enumerate(cases):
        case = spot.copied(str(number))
        with closing(case.open()) as store:
            engine_of(store).write_rows(changes, sync=True)
            killed = case.copied(f"killed {number}")
            assert not check(store).sound, told
        for open_killed in (lambda killed=killed: open_snapshot(killed.kind.url(killed.location)), killed.open):
            with pytest.raises(StoreDamaged, match=told):
                open_killed()


def test_a_state_that_is_refused_is_not_taken_for_sound_at_the_next_opening(spot: Spot) -> None:
    spot.fill(0, 9)
    engine = spot.kind(spot.location)
    engine.lock()
    engine.open("", is_held=False)
    engine.reopen()
    engine.write_rows(Changes(deletes={record_key(page(3).id)}), sync=True)
    engine.close_files()
    engine.unlock()
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="8 pages"):
            spot.open()
