"""LevelDB opens with half of its files missing and says nothing; the store around it must not."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError, StoreMismatch
from scrapy_neardup.kv.leveldb import LevelDB
from scrapy_neardup.kv.tally import Witness
from scrapy_neardup.state import opening
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import record as page

pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")

RECIPE = {"method": "minhash", "seed": 7}
PAGES = 500


def opened(root: Path) -> PageStore:
    return open_at(LevelDB, str(root), RECIPE)


def read_all(store: PageStore) -> None:
    """Read every page in every way; what comes back is right."""
    assert store.pages == PAGES
    for n in range(PAGES):
        expected = page(n)
        assert store.record(expected.id) == expected
        assert store.find(expected.url) == expected
        for key in expected.keys:
            assert store.postings(key, 9) == [expected.id]
    assert sum(1 for _ in store.kv.scan(b"r")) == PAGES


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()} if directory.exists() else {}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state that was closed cleanly, with tables and a log that both hold pages."""
    root = tmp_path_factory.mktemp("sound") / "state"
    for begin, end in ((0, PAGES // 2), (PAGES // 2, PAGES * 3 // 4), (PAGES * 3 // 4, PAGES)):
        with closing(opened(root)) as store:
            for n in range(begin, end):
                store.add(page(n))
    sizes = {file.suffix or file.name.split("-")[0]: file.stat().st_size for file in (root / "db").iterdir()}
    assert min(sizes[".ldb"], sizes[".log"]) > 10_000
    assert sizes["MANIFEST"] > 100
    return root


@pytest.fixture
def state(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "state"))


def one(pattern: str) -> Callable[[Path], Path]:
    def find(root: Path) -> Path:
        return max(root.glob(pattern), key=lambda file: file.stat().st_size)

    return find


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut_seven_bytes(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def grow(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def delete(file: Path) -> None:
    if file.is_dir():
        shutil.rmtree(file)
    else:
        file.unlink()


def flip(at: float) -> Callable[[Path], None]:
    def mutate(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[int(len(data) * at)] ^= 1
        file.write_bytes(data)

    return mutate


def write(data: bytes) -> Callable[[Path], None]:
    return lambda file: (file.write_bytes(data), None)[1]


REFUSED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "CURRENT deleted": ("db/CURRENT", delete),
    "CURRENT names another manifest": ("db/CURRENT", write(b"MANIFEST-000001\n")),
    "MANIFEST truncated": ("db/MANIFEST-*", truncate),
    "MANIFEST bit flipped in the middle": ("db/MANIFEST-*", flip(0.5)),
    "MANIFEST deleted": ("db/MANIFEST-*", delete),
    "table truncated": ("db/*.ldb", truncate),
    "table deleted": ("db/*.ldb", delete),
    "log shorter by seven bytes": ("db/*.log", cut_seven_bytes),
    "log deleted": ("db/*.log", delete),
    "log bit flipped in the middle": ("db/*.log", flip(0.5)),
    "all files deleted": ("db", delete),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", REFUSED)
def test_a_damaged_state_is_refused_and_opens_when_that_is_undone(damage: str, state: Path, sound: Path) -> None:
    pattern, mutate = REFUSED[damage]
    target = one(pattern)(state)
    mutate(target)
    before = contents(state / "db")
    for _ in range(2):  # a second try is no more lenient than the first
        with pytest.raises(StoreDamaged) as refused:
            opened(state)
        message = str(refused.value)
        assert str(state) in message
        assert "NEARDUP_STORE" in message
        assert contents(state / "db") == before
        assert [path.name for path in state.parent.iterdir()] == [state.name]

    intact = sound / target.relative_to(state)
    if intact.is_dir():
        shutil.copytree(intact, target)
    else:
        shutil.copyfile(intact, target)
    with closing(opened(state)) as store:
        read_all(store)


HARMLESS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "table longer by a byte": ("db/*.ldb", grow),
    "another log": ("db", lambda files: write(b"")(files / "000999.log")),
    "LevelDB's own chatter": ("db/LOG", write(b"edited")),
    "LevelDB's lock": ("db/LOCK", delete),
}


@pytest.mark.parametrize("damage", HARMLESS)
def test_what_costs_no_row_is_no_damage(damage: str, state: Path) -> None:
    pattern, mutate = HARMLESS[damage]
    mutate(one(pattern)(state))
    for _ in range(2):
        with closing(opened(state)) as store:
            read_all(store)


def test_a_digest_that_cannot_be_written_is_an_error_of_the_store_and_frees_the_lock(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    store = opened(state)
    with monkeypatch.context() as patched:
        patched.setattr(Witness, "close", full)
        with pytest.raises(StoreError, match="No space left"):
            store.close()
    with closing(opened(state)) as store:
        read_all(store)


def test_a_refused_opening_leaves_a_state_that_need_not_be_read_whole(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
