"""Random steps against a model made of dictionaries: whatever happens, the store says what the model says."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Engine
from scrapy_neardup.kv.memory import Memory
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state import layout, records
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.urls import SERVERS, STORES, parse_url
from tests.build import pairs, run_machine
from tests.faults import Disk
from tests.server.redis_server import Server
from tests.state.model import Pages, small_tables
from tests.state.test_contract import ON_SERVER, copy_as_killed

T = TypeVar("T")
RECIPE = {"method": "minhash", "seed": 7}
URLS = [f"https://news.example.cn/{name}" for name in ("a", "b", "c", "新闻")]
KEYS = [0, 1, 2**40 - 1]
SITE = "river.example"
LONG = pytest.mark.timeout(3600)
#: Without 0, by which the pages of a site are counted, as a sentence of them all.
SENTENCES = [1, 2, 64, 2**32 - 1]


@dataclass
class Model(Pages[Record]):
    """What the store should hold, of pages and of sentences."""

    # On how many pages of their one site sentences stood; and what of that is written, which no page takes back.
    noted: Counter[int | str] = field(default_factory=Counter)
    written: Counter[int | str] = field(default_factory=Counter)


class Steps(RuleBasedStateMachine):
    """What a crawl does with a store. Two crawls are under way at any time."""

    def __init__(self, kind: type[Engine], root: Path) -> None:
        super().__init__()
        self.kind, self.root = kind, root
        self.names = count()
        self.ahead = 0.0
        self.model = Model()
        self.store = self.open()
        self.begin_two()

    def open(self) -> PageStore:
        self.root.mkdir(exist_ok=True)
        store = open_at(self.kind, str(self.root / "state"), RECIPE)
        store.clock.now = lambda: time.time() + self.ahead  # type: ignore[method-assign]
        return store

    def do(self, step: Callable[..., T], *given: Any, **options: Any) -> T:
        """Do one thing that writes at most once."""
        return step(*given, **options)

    def begin(self) -> int:
        who = f"crawl {next(self.names)}"
        generation = self.do(self.store.journal.begin, who)
        self.model.crawls[generation] = who
        return generation

    def begin_two(self) -> None:
        self.generations = [self.begin(), self.begin()]

    @rule(
        url=st.sampled_from(URLS),
        keys=st.sets(st.sampled_from(KEYS)),
        crawl=st.sampled_from([None, 0, 1]),
        sketch=st.binary(max_size=3),
    )
    def add(self, url: str, keys: set[int], crawl: int | None, sketch: bytes) -> None:
        """File a page, for good if ``crawl`` is None; it replaces the one that its URL is known by."""
        id = self.store.new_id()
        page = Record(id, url, id, 1.0, tuple(sorted(keys)), sketch)
        generation = 0 if crawl is None else self.generations[crawl]
        known = self.store.find(url)
        replaces = known.id if known else 0
        self.do(self.store.add, page, Evidence(title=url), generation=generation, replaces=replaces)
        self.model.add(page, generation, replaces)

    @rule(crawl=st.integers(0, 1), of=st.lists(st.integers(0, 2), max_size=8), unknown=st.booleans())
    def seal(self, crawl: int, of: list[int], unknown: bool) -> None:
        """Seal some of a crawl's pages: its unsealed ones that ``of`` does not hold back."""
        generation = self.generations[crawl]
        mine = self.model.unsealed_of(generation)
        ids = [id for at, id in enumerate(mine) if not of or of[at % len(of)] > 0]
        if unknown:
            ids = [1, *ids, *ids[:1]]
        self.do(self.store.journal.seal, generation, ids)
        self.model.seal(generation, ids)

    @rule(crawl=st.integers(0, 1), which=st.integers(0, 5))
    def roll_back(self, crawl: int, which: int) -> None:
        """Roll back a page that is sealed or this crawl's, or one that has long gone."""
        generation = self.generations[crawl]
        theirs = {id for id, (of_which, _) in self.model.unsealed.items() if of_which != generation}
        mine = sorted({*self.model.pages, *self.model.unsealed} - theirs, reverse=True)
        id = mine[which] if which < len(mine) else 1
        self.do(self.store.journal.roll_back, generation, id)
        self.model.roll_back(id)

    @rule(url=st.sampled_from(URLS))
    def touch(self, url: str) -> None:
        known = self.store.find(url)
        if known is not None:
            self.do(self.store.touch, known)
            assert self.store.last_seen(url) > 0

    @rule(hours=st.integers(0, 2), most=st.sampled_from([None, 1, 2, 4]))
    def expire(self, hours: int, most: int | None) -> None:
        """Pages that were last seen before so many hours, if any, and those that are too many: all that may go."""
        self.ahead += hours * 3600
        before, bounds = set(self.model.pages), Bounds(hours * 3600 - 60 if hours else None, most)
        free = {id for id in before - self.model.unsealed.keys() if id in self.model.newest.values()}
        gone = sum(self.do(self.store.expire, bounds) for _ in range(3 + len(before)))
        left = {record.id for record in self.store.records()}
        assert before - left <= free
        assert len(before - left) == gone
        assert not bounds.ttl or not left & free
        assert not most or len(left) <= most or not left & free
        for id in before - left:
            self.model.remove(id)

    @rule(sentences=st.lists(st.sampled_from(SENTENCES)))
    def note(self, sentences: list[int]) -> None:
        self.store.note(np.array(sentences, np.uint32), SITE)
        self.model.noted.update({*sentences, SITE})

    @rule(crawl=st.integers(0, 1))
    def end_and_begin(self, crawl: int) -> None:
        generation = self.generations[crawl]
        left = len(self.model.unsealed_of(generation))
        assert self.do(self.store.journal.end, generation) == left
        if not left:
            del self.model.crawls[generation]
        self.generations[crawl] = self.begin()

    @invariant()
    def says_what_the_model_says(self) -> None:
        store, model = self.store, self.model
        assert store.pages == len(model.pages)
        ids = [layout.last_id(key) for key, _ in store.kv.scan(b"r")]
        assert ids == [layout.last_id(key) for key, _ in store.kv.scan(b"e")] == sorted(model.pages)
        assert len(list(store.kv.scan(b"u"))) == len(model.newest)
        assert [store.record(id) for id in ids] == [model.pages[id] for id in ids]
        for url in URLS:
            assert store.find(url) == model.find(url)
        for key in KEYS:
            filed = sorted((id for id, page in model.pages.items() if key in page.keys), reverse=True)
            assert store.postings(key, 1000) == filed
            assert store.postings(key, 2) == filed[:2]
        assert sum(1 for row in store.kv.scan(b"k") for _ in pairs(row)) == sum(
            len(page.keys) for page in model.pages.values()
        )
        assert sum(1 for _ in store.kv.scan(b"j")) == len(model.unsealed)
        stood = store.on_site(SITE).pages_on_site(np.array(SENTENCES, np.uint32)).tolist()
        assert stood == [min(256, model.noted[one]) for one in SENTENCES]
        assert store.on_site(SITE).pages() == min(256, model.noted[SITE])

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.root, ignore_errors=True)


class LastingSteps(Steps):
    """The same for a store that outlives its process."""

    def again(self) -> None:
        self.store = self.open()
        assert self.store.rolled_back == self.model.take_back()
        assert not self.model.unsealed
        self.says_what_the_model_says()
        self.begin_two()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.model.written = self.model.noted.copy()
        self.again()

    @rule()
    def crash(self) -> None:
        """Go on with a copy of the files as they are now, and not with what a close would make of them."""
        copy = self.root.with_name(self.root.name + "-copy")
        copy_as_killed(self.root, copy)
        self.store.close()
        shutil.rmtree(self.root)
        copy.rename(self.root)
        self.model.noted = self.model.written.copy()
        self.again()


class FailingSteps(LastingSteps):
    """The same for a disk whose writes fail now and then: what was asked for then has not happened."""

    def __init__(self, kind: type[Engine], root: Path) -> None:
        self.disk = Disk()
        super().__init__(kind, root)

    def open(self) -> PageStore:
        self.disk.fail_at(0)
        store = self.disk.open()
        store.clock.now = lambda: time.time() + self.ahead  # type: ignore[method-assign]
        return store

    @rule()
    def fail_soon(self) -> None:
        self.disk.fail_at(1)

    def do(self, step: Callable[..., T], *given: Any, **options: Any) -> T:
        before, pages, writes = dict(self.disk.rows), self.store.pages, self.disk.writes
        try:
            found = step(*given, **options)
        except StoreError:
            assert (self.disk.rows, self.store.pages) == (before, pages)
            return step(*given, **options)
        assert self.disk.writes <= writes + 1
        return found

    def reopen(self) -> None:
        self.disk.fail_at(0)  # a close that fails is a kill
        super().reopen()

    def teardown(self) -> None:
        self.disk.fail_at(0)
        super().teardown()

    @rule()
    def crash(self) -> None:
        self.model.noted = self.model.written.copy()
        self.again()


class ServerSteps(LastingSteps):
    """The same for a store on a server, where each state has a name."""

    def __init__(self, server: Server, root: Path) -> None:
        self.server, self.state = server, server.new_state()
        super().__init__(SERVERS["unix"], root)

    def open(self) -> PageStore:
        kind, location = parse_url(self.server.url(self.state))
        store = open_at(kind, location, RECIPE)
        store.clock.now = lambda: time.time() + self.ahead  # type: ignore[method-assign]
        return store

    @rule()
    def crash(self) -> None:
        copy = self.server.new_state()
        self.server.copy(self.state, copy)
        self.store.close()
        self.state = copy
        self.again()  # with all that was noted

    def teardown(self) -> None:
        self.store.close()
        self.server.client.flushdb()


def walk(scheme: str, directory: Path, examples: int, request: pytest.FixtureRequest) -> None:
    """Walk at random with a kind of store."""
    if scheme == "leveldb" and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed, so there is no LevelDB")
    number = count()
    made: Callable[[], Steps]
    if scheme in SERVERS:
        running: Server = request.getfixturevalue("redis_server")
        made = lambda: ServerSteps(running, directory / str(next(number)))  # noqa: E731
    else:
        steps = {"memory": Steps, "failing": FailingSteps}.get(scheme, LastingSteps)
        kind = STORES.get(scheme, Memory)
        made = lambda: steps(kind, directory / str(next(number)))  # noqa: E731
    with small_tables():
        run_machine(made, examples, 30)
    assert next(number) >= examples


@pytest.mark.parametrize(
    ("scheme", "most", "examples"),
    [
        ("failing", 32, 30),
        *(pytest.param(scheme, 32, 40, marks=pytest.mark.slow) for scheme in STORES),
        pytest.param(ON_SERVER, 32, 15, marks=pytest.mark.slow),
        *(pytest.param("sqlite", most, 25, marks=pytest.mark.slow) for most in (1, 2)),
        *(pytest.param(kind, 32, 2000, marks=[pytest.mark.soak, LONG]) for kind in (*STORES, "failing", ON_SERVER)),
    ],
)
def test_random_steps_do_as_a_model_of_dictionaries(
    scheme: str, most: int, examples: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """``most``: ids in a row of postings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "MOST", most)
        walk(scheme, tmp_path, examples, request)


@pytest.mark.parametrize("scheme", ["sqlite", "leveldb"])
def test_a_killed_state_opens_after_a_version_over_an_unsealed_one_was_rolled_back(scheme: str, tmp_path: Path) -> None:
    """The first version waits for the next opening, and is named by no URL until then."""
    if scheme == "leveldb":
        pytest.importorskip("plyvel")
    (tmp_path / "here").mkdir()
    store = open_at(STORES[scheme], str(tmp_path / "here" / "state"), RECIPE)
    first = store.new_id()
    store.add(Record(first, URLS[0], first))
    crawl, second = store.journal.begin("crawl"), store.new_id()
    store.add(Record(second, URLS[0], second), generation=crawl, replaces=first)
    third = store.new_id()
    store.add(Record(third, URLS[0], third), replaces=second)
    store.journal.roll_back(crawl, third)
    copy_as_killed(tmp_path / "here", tmp_path / "killed")
    store.close()
    with closing(open_at(STORES[scheme], str(tmp_path / "killed" / "state"), RECIPE)) as opened:
        assert (opened.pages, opened.find(URLS[0]), list(opened.records())) == (0, None, [])
        assert check(opened).sound
