"""What every store owes the detector, whichever way it keeps its bytes.

The suite runs over the registry, so a store that is added there is held to all of it.
"""

from __future__ import annotations

import shutil
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scrapy_neardup.errors import StoreDamaged, StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv import leveldb
from scrapy_neardup.kv.base import Changes, Engine, KeyValueStore
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.leveldb import Temporary
from scrapy_neardup.kv.memory import Memory, Transaction
from scrapy_neardup.kv.tally import KEY
from scrapy_neardup.state import journal, layout, pages
from scrapy_neardup.state import records as base
from scrapy_neardup.state.boilerplate import (
    _BUCKETS,
    ALL_PAGES,
    BLOCKS,
    IN_BLOCK,
    Sentences,
    number_of_site,
    read_counts,
)
from scrapy_neardup.state.opening import close_store, memory_state, open_at, open_rows, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import SERVERS, STORES, parse_url
from tests.server.redis_cluster import Cluster
from tests.server.redis_server import Server

RECIPE: dict[str, Any] = {"method": "minhash", "parameters": {"bands": (16, 8), "seed": 7}, "jieba": "0.42.1"}
OTHER: dict[str, Any] = {"method": "minhash", "parameters": {"bands": (20, 5), "seed": 7}, "jieba": "0.42.1"}
HIGHEST = 2**64 - 1
#: Ids lie so close at most; the lowest bits of those on a server tell who gave them.
STEP = 2 * 0x10000

URL = "https://news.example.cn/2024/05/01/story.html"


def copy_as_killed(directory: Path, copy: Path) -> None:
    """Copy the files of an open state as they are at one moment: what a process that is killed leaves.

    A store may tidy up in the background; a copy during which any file changed is made again.
    """

    def files() -> dict[Path, tuple[int, int]]:
        return {file: (file.stat().st_size, file.stat().st_mtime_ns) for file in directory.rglob("*")}

    for _ in range(100):
        with suppress(OSError):  # a file that goes while it is looked at; shutil's own error is one, too
            before = files()
            shutil.copytree(directory, copy)
            if files() == before:
                return
        shutil.rmtree(copy, ignore_errors=True)
    raise AssertionError(f"{directory} did not keep still")


@dataclass
class Place:
    """Where one state lies; whatever is opened here is closed when the test is over."""

    kind: type[Engine]
    directory: Path
    opened: list[PageStore] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.kind.url(str(self.directory / "state"))

    def open(self, recipe: Mapping[str, Any] = RECIPE) -> PageStore:
        kind, location = parse_url(self.url)
        store = open_at(kind, location, recipe)
        self.opened.append(store)
        return store

    def reopen(self, store: PageStore) -> PageStore:
        store.close()
        return self.open()

    def as_left_by_a_kill(self) -> Place:
        """A copy of the files as they are while the store is open: what a killed process leaves."""
        copy = self.directory.with_name(self.directory.name + "-killed")
        copy_as_killed(self.directory, copy)
        return Place(self.kind, copy, self.opened)

    def remove(self) -> None:
        """Remove the state, which nobody has open."""
        shutil.rmtree(self.directory)


@dataclass
class ServerPlace(Place):
    """Where one state lies on a server; after a kill its leases have ended."""

    server: Server | Cluster | None = None
    state: str = ""

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url(self.state)

    def as_left_by_a_kill(self) -> Place:
        assert self.server is not None
        copy = self.server.new_state()
        self.server.copy(self.state, copy)
        return ServerPlace(self.kind, self.directory, self.opened, self.server, copy)

    def remove(self) -> None:
        """A later copy has another name."""


@dataclass
class TemporaryPlace(Place):
    """A folder for a state that has no URL, and ends with whoever opened it."""

    @property
    def url(self) -> str:
        pytest.skip("It has no URL.")

    def open(self, recipe: Mapping[str, Any] = RECIPE) -> PageStore:
        self.directory.mkdir(exist_ok=True)
        store = open_rows(Temporary(self.directory), recipe)
        self.opened.append(store)
        return store


def open_engine(place: Place) -> KeyValueStore:
    """Open the rows of a state without asking what they mean."""
    engine = place.kind(parse_url(place.url)[1])
    if isinstance(engine, FileEngine):
        engine.hold()
    return engine


def _place(scheme: str, directory: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    if scheme in ("leveldb", *TEMPORARY) and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed, so there is no LevelDB")
    directory.mkdir()
    if scheme in SERVERS:
        server: Server | Cluster = request.getfixturevalue("redis_server" if scheme == ON_SERVER else "cluster")
        place: Place = ServerPlace(SERVERS[scheme], directory, server=server, state=server.new_state())
    elif scheme in TEMPORARY:
        request.getfixturevalue("monkeypatch").setattr(leveldb, "_MOST", TEMPORARY[scheme])
        place = TemporaryPlace(STORES["memory"], directory)
    else:
        place = Place(STORES[scheme], directory)
    yield place
    for store in place.opened:
        store.close()


#: Of the kinds that lie on a server one, as they differ in how it is reached alone; a cluster, too, if asked for.
ON_SERVER = "unix"
ON_CLUSTER = pytest.param("redis+cluster", marks=pytest.mark.soak)


#: A state that ends with its store, and the rows that it holds in memory: all of these tests, and hardly any.
TEMPORARY = {"temporary": 200_000, "temporary on disk": 3}


@pytest.fixture(params=[*STORES, *TEMPORARY, ON_SERVER, ON_CLUSTER])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place(request.param, tmp_path / "here", request)


@pytest.fixture(params=[*(scheme for scheme, kind in STORES.items() if kind.is_persistent), ON_SERVER, ON_CLUSTER])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Every store that outlives its process."""
    yield from _place(request.param, tmp_path / "here", request)


@pytest.fixture(params=[scheme for scheme, kind in STORES.items() if kind.is_persistent])
def on_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Every store that lies at a path, and that one process has to itself."""
    yield from _place(request.param, tmp_path / "here", request)


@pytest.fixture
def store(place: Place) -> PageStore:
    return place.open()


def make(store: PageStore, url: str = URL, *keys: int, sketch: bytes = b"sketch") -> Record:
    id = store.new_id()
    return Record(id, url, id, 1.0, keys, sketch)


def put(store: PageStore, url: str = URL, *keys: int, generation: int = 0, replaces: int = 0) -> Record:
    record = make(store, url, *keys)
    store.add(record, generation=generation, replaces=replaces)
    return record


def content(store: PageStore) -> dict[bytes, bytes]:
    """All that is written down, but for the tally, in which every write is counted."""
    return {key: value for key, value in store.kv.scan(b"") if key != KEY}


def records(store: PageStore) -> int:
    return sum(1 for _ in store.kv.scan(b"r"))


# Ids, records, postings


def test_new_ids_grow_even_when_the_clock_is_set_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store = place.open()
    before = put(store).id
    monkeypatch.setattr(base, "time", SimpleNamespace(time=lambda: 5.0, time_ns=lambda: 5_000_000_000, monotonic=int))
    assert before < store.new_id() < before + STEP
    if place.kind.is_persistent:
        assert before < place.reopen(store).new_id() < before + STEP


def test_a_record_comes_back_as_it_was(store: PageStore) -> None:
    for record in (
        Record(1, URL, 1),
        Record(2, URL, 2, 1.0, (0, (2**40 - 1)), b""),
        Record(HIGHEST, URL, HIGHEST, 1.0, ((2**40 - 1),), bytes(range(256)) * 4),
        Record(3, "", 3, 1.0, (), b"\x00"),
        Record(4, "https://例子.测试/路径?问=答&emoji=\U0001f600", 4, 1.0, (5,), b"\xff" * 1024),
        Record(5, "https://example.cn/lone-surrogate-\udc80", 5),
        Record(6, "https://example.cn/" + "x" * 16_000, 6, 1.0, tuple(range(255)), b"s"),
        Record(7, URL, 3, 0.0),
        Record(8, URL, 3, 0.0, (), b"sketch", delivered=True),
        Record(9, URL, 3, 1.0, (5,), b"sketch", delivered=True),
        Record(10, URL, 3, 0.0, (), b"", dropped=1),
        Record(11, URL, 3, 0.0, (4, 5), b"sketch", dropped=HIGHEST),
        Record(12, URL, 2**62 + 3, 1.0, (4, 5, 2**62 + 3), b"sketch", delivered=True),
    ):
        store.add(record)
        assert store.record(record.id) == store.find(record.url) == record, record.id
    packed = "0300000100000000000000037fff00000000000000010000000000000002000000000000000361736b"
    record = Record(7, "a", 3, 32767 / 65535, (), b"sk", delivered=True, dropped=1, body=2, since=3)
    assert record.pack().hex() == packed, "the layout has another number if this changes"


def test_a_record_that_was_cut_before_its_sketch_is_refused() -> None:
    record = Record(7, "https://a.example/", 3, 1.0, (1, 2), b"sketch")
    packed = record.pack()
    for end in range(len(packed) - len(record.sketch)):
        with pytest.raises(ValueError, match=r"requires a buffer|ends too early"):
            Record.unpack(7, packed[:end])
    with pytest.raises(ValueError, match="does not begin"):
        Record.unpack(7, b"\0" + packed[1:])


def test_urls_too_long_to_be_kept_whole_are_pages_of_their_own(store: PageStore) -> None:
    for character in "页\U0001f600":
        record, other = (make(store, character * 30_000 + end, 4) for end in "ab")
        store.add(record)
        assert store.find(other.url) is None
        store.add(other)
        for one in (record, other):
            back = store.record(one.id)
            assert back is not None
            assert len(back.url) > 16_000
            assert store.find(one.url) == store.find(back.url) == back
            assert store.last_seen(one.url) > 0
            store.journal.roll_back(0, one.id)
        assert store.postings(4, 10) == []


def test_two_urls_with_one_hash_are_two_pages(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Keyed, "of", lambda self, text: 42)
    first, second = put(store, "https://a.example/", 1), put(store, "https://b.example/", 2)
    assert store.find("https://b.example/") == second
    assert store.find("https://a.example/") is None
    assert store.record(first.id) == first
    store.journal.roll_back(0, first.id)
    assert store.find("https://b.example/") == store.record(second.id) == second
    generation = store.journal.begin("crawl")
    later = put(store, "https://b.example/", generation=generation, replaces=second.id)
    other = put(store, "https://c.example/")
    store.journal.roll_back(generation, later.id)
    assert store.find("https://c.example/") == other


# Rolling back


def test_an_earlier_version_that_came_through_later_is_rolled_back_in_one_batch_with_the_other(lasting: Place) -> None:
    store = lasting.open()
    known = put(store, URL, 1)
    generation, early, late = store.journal.begin("killed crawl"), make(store, URL, 2), make(store, URL, 3)
    store.add(late, generation=generation, replaces=known.id)
    store.add(early, generation=generation, replaces=late.id)
    store = lasting.reopen(store)
    assert store.rolled_back == journal.UnsealedPages(2, ("killed crawl",))
    assert (store.find(URL), store.pages, records(store)) == (known, 1, 1)


# When a URL was seen


def test_a_page_of_another_state_brings_its_times_and_its_id(store: PageStore) -> None:
    page = Record(5, URL, 5)
    store.add(page, seen=1_700_000_000.9)
    assert store.last_seen(URL) == 1_700_000_000
    store.touch(page, 1_700_000_009)
    assert (store.last_seen(URL), store.last_seen(f"{URL}?other")) == (1_700_000_009, 0)
    store.touch(page, 2.0**33)  # beyond the year 2106
    assert store.last_seen(URL) == 2**32 - 1
    later = store.new_id() + 10**18
    store.add(Record(later, URL, later))
    assert later < store.new_id() < later + STEP


# Counts of sentences

SITE = "river.example"
#: Sentences that lie in three different blocks of the table for all sites.
MENU: Sentences = np.array([7, 70, 16_000], np.uint32)


def note(store: PageStore, pages: int, sentences: Sentences = MENU) -> None:
    for _ in range(pages):
        store.note(sentences, SITE)


def stood(store: PageStore, sentences: Sentences = MENU) -> list[int]:
    return [int(count) for count in store.on_site(SITE).pages_on_site(sentences)]


def places(store: PageStore) -> set[bytes]:
    """The rows with the counts of the menu, in either table, and the count of the pages of the site."""
    here = store.hashes.halves(np.append(MENU, ALL_PAGES), number_of_site(SITE, store.hashes))
    blocks = {*(here % _BUCKETS // IN_BLOCK).tolist(), *(BLOCKS + MENU % _BUCKETS // IN_BLOCK).tolist()}
    return set(map(layout.block_key, blocks))


def test_after_a_kill_the_counts_of_the_last_five_thousand_pages_are_there(on_disk: Place) -> None:
    store = on_disk.open()
    note(store, pages._COUNTS_EVERY - 1)
    killed = on_disk.as_left_by_a_kill()
    after = killed.open()
    assert stood(after) == [0, 0, 0]
    after.close()
    killed.remove()
    note(store, 101, np.array([7, 900], np.uint32))  # the first one is the page with which they are written
    after = on_disk.as_left_by_a_kill().open()
    assert stood(after, np.array([7, 70, 900], np.uint32)) == [256, 256, 1]
    assert after.pages == records(after) == 0


@pytest.mark.parametrize(
    ("key", "packed", "told"),
    [
        (layout.block_key(3), b"garbage", "block 3 of the counted sentences cannot be unpacked"),
        (layout.block_key(BLOCKS + 3), b"garbage", "of the counted sentences cannot be unpacked"),
        (layout.block_key(2 * BLOCKS), b"garbage", "the counts of forms cannot be unpacked"),
        (layout.block_key(2 * BLOCKS + 1), zlib.compress(bytes(4864)), "there is no block"),
        (layout.block_key(3) + b"x", zlib.compress(bytes(4864)), "is no key of counted sentences"),
    ],
)
def test_damaged_counts_are_refused_and_the_state_stays(lasting: Place, key: bytes, packed: bytes, told: str) -> None:
    store = lasting.open()
    put(store, URL, 1, generation=store.journal.begin("killed crawl"))
    note(store, 16)
    counted = places(store)
    store.kv.write(Changes({key: packed}), sync=True)
    store.close()
    for _ in range(2):
        with pytest.raises(StoreDamaged, match=rf"is damaged: .*{told}.*NEARDUP_STORE"):
            lasting.open()
    kv = open_engine(lasting)
    rows = dict(kv.scan(b"b"))
    assert rows[key] == packed
    assert rows.keys() == {key, *counted}
    kv.accept()
    kv.write(Changes(deletes={key}), sync=True)
    kv.close(Changes())
    store = lasting.open()
    assert store.on_site(SITE).is_common(MENU).all()
    assert store.rolled_back == journal.UnsealedPages(1, ("killed crawl",))


def test_counts_of_another_state_are_added_and_written_at_once(lasting: Place) -> None:
    store, other = lasting.open(), memory_state(RECIPE)
    assert other.counts.rows() == {}
    note(store, 3)
    note(other, 4)
    store.add_counts(read_counts(other.counts.rows().items()), in_both=1)
    assert stood(store) == [1 + 2 + 3 - 1] * 3
    assert dict(store.kv.scan(b"b")) == store.counts.rows()
    assert stood(lasting.reopen(store)) == [5] * 3
    scratch = open_rows(Transaction(Memory()), RECIPE)
    scratch.add_counts(other.counts)
    assert (stood(scratch), [*scratch.kv.scan(b"b")]) == ([4] * 3, []), "nobody reads them again"


# Opening and closing


def test_another_recipe_and_data_without_one_are_refused_and_the_state_stays_as_it_is(lasting: Place) -> None:
    store = lasting.open()
    put(store, URL, 1)
    before = content(store)
    store.close()
    with pytest.raises(StoreMismatch, match=r"parameters.bands is \[16, 8\] in the state and \[20, 5\].*NEARDUP_STORE"):
        lasting.open(OTHER)
    with pytest.raises(StoreMismatch):
        open_store(lasting.url, OTHER)  # it is not kept as open
    store = lasting.open()
    assert (content(store), store.pages) == (before, 1)
    store.kv.write(Changes({b"theirs": b"data"}, {*before}), sync=True)
    store.close()
    with pytest.raises(StoreMismatch, match="NEARDUP_STORE"):
        lasting.open()
    kv = open_engine(lasting)
    assert {key: value for key, value in kv.scan(b"") if key != KEY} == {b"theirs": b"data"}
    kv.close()


#: What uses a store.
USES: tuple[Callable[[PageStore, Record], object], ...] = (
    lambda store, page: store.find(page.url),
    lambda store, page: store.postings(1, 9),
    lambda store, page: store.journal.begin("late"),
    lambda store, page: store.add(page),
    lambda store, page: store.journal.seal(1, [page.id]),
)


def test_a_process_has_one_store_of_a_state_and_its_last_holder_closes_it(lasting: Place) -> None:
    first = open_store(lasting.url, RECIPE)
    assert open_store(lasting.url, dict(RECIPE)) is first
    with pytest.raises(StoreMismatch, match="NEARDUP_STORE"):
        open_store(lasting.url, OTHER)
    close_store(first)
    page = put(first, URL, 1)
    assert first.find(URL) == page
    close_store(first)
    for use in USES:
        with pytest.raises(StoreError, match="is closed") as refused:
            use(first, page)
        assert not isinstance(refused.value, StoreDamaged)
    again = open_store(lasting.url, RECIPE)
    assert (again is not first, again.find(URL)) == (True, page)
    close_store(again)


def test_a_link_to_a_state_leads_to_the_same_store_and_another_kind_to_none(on_disk: Place, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(on_disk.directory, target_is_directory=True)
    first = open_store(on_disk.url, RECIPE)
    assert open_store(on_disk.url.replace("/here/", "/link/"), RECIPE) is first
    other = "leveldb" if on_disk.kind.scheme == "sqlite" else "sqlite"
    with pytest.raises(StoreMismatch):
        open_store(on_disk.url.replace(on_disk.kind.scheme, other, 1), RECIPE)
    close_store(first)
    close_store(first)


def test_a_second_opening_past_the_registry_is_refused_also_after_the_first_was_closed_twice(on_disk: Place) -> None:
    store = on_disk.open()
    page = put(store)
    for _ in range(2):
        with pytest.raises(StoreLocked, match="NEARDUP_STORE"):
            on_disk.open()
        before, store = store, on_disk.reopen(store)
        before.close()
        assert store.find(URL) == page


def test_a_state_that_was_opened_in_one_thread_can_be_closed_in_another(lasting: Place) -> None:
    worker = threading.Thread(target=lasting.open)
    worker.start()
    worker.join()
    (store,) = lasting.opened
    page = put(store)
    assert lasting.reopen(store).find(URL) == page


# Where a state can be


def test_a_directory_that_cannot_be_made_is_an_error_that_names_it(on_disk: Place) -> None:
    (on_disk.directory / "state").write_text("a file where the directory should be")
    kind, location = parse_url(on_disk.url + "/below/it")
    with pytest.raises(StoreError, match="cannot be made") as refused:
        open_at(kind, location, RECIPE)
    assert str(on_disk.directory / "state") in str(refused.value)
    assert (on_disk.directory / "state").read_text() == "a file where the directory should be"


@pytest.mark.skipif(sys.platform != "linux", reason="another system has no /proc")
def test_a_place_where_no_lock_can_be_made_is_not_in_use() -> None:
    with pytest.raises(StoreError, match="cannot be locked"):
        open_at(STORES["sqlite"], "/proc/state.db", RECIPE)


def test_without_plyvel_leveldb_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plyvel", None)
    with pytest.raises(StoreError, match=r"scrapy-neardup\[leveldb\].*sqlite:///path"):
        open_at(STORES["leveldb"], str(tmp_path / "state"), RECIPE)
    assert not (tmp_path / "state").exists()
