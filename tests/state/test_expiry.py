"""What was not seen for long is forgotten, and of too many pages the oldest, in small steps and nothing too early."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.memory import SortedRows
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state import layout
from scrapy_neardup.state.expiry import FRONTIER, Bounds
from scrapy_neardup.state.opening import close_store, memory_state, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.urls import STORES
from tests.build import pairs
from tests.state.clock import HOUR, Clock
from tests.state.test_contract import ON_SERVER, Place, _place

DAY = Bounds(ttl=24 * HOUR)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", ON_SERVER])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place(request.param, tmp_path / "here", request)


@pytest.fixture(params=[*(scheme for scheme, kind in STORES.items() if kind.is_persistent), ON_SERVER])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    yield from _place(request.param, tmp_path / "here", request)


@pytest.fixture
def store(place: Place, clock: Clock) -> PageStore:
    return clock.govern(place.open())


def url(number: int) -> str:
    return f"https://ferry.example/{number}"


def put(store: PageStore, number: int, *, generation: int = 0, replaces: int = 0, original: int = 0) -> Record:
    id = store.new_id()
    record = Record(id, url(number), original or id, 1.0, (7, id % 2**40), b"sketch")
    store.add(record, Evidence("near"), generation=generation, replaces=replaces)
    return record


def known(store: PageStore) -> list[int]:
    """The numbers of the pages that are there, in a state that holds together."""
    numbers = [int(record.url.rpartition("/")[2]) for record in store.records()]
    assert store.pages == len(numbers)
    ids = {record.id for record in store.records()}
    assert {layout.last_id(key) for key, _ in store.rows(b"e")} <= ids
    assert {id for row in store.rows(b"k") for _, id in pairs(row)} <= ids
    return numbers


def steps(store: PageStore, bounds: Bounds, many: int = 20) -> int:
    return sum(store.expire(bounds) for _ in range(many))


@pytest.mark.parametrize("bounds", [Bounds(10 * HOUR), Bounds(max_pages=40), Bounds(20 * HOUR, 60)])
@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_not_seen_for_longest_goes_in_time_and_nothing_goes_too_early(
    lasting: Place, clock: Clock, bounds: Bounds, seed: int
) -> None:
    """Pages come, are seen again, sealed late, rolled back by another opening, and forgotten."""
    draw = random.Random(seed)
    store = clock.govern(lasting.open())
    generation = store.journal.begin("crawl")
    seen: dict[int, float] = {}
    unsealed: dict[int, int] = {}
    for number in range(100 if store.is_shared else 500):
        clock.now += draw.choice([1, 60, 600, 600, HOUR, 3 * HOUR])
        kind = draw.random()
        if kind < 0.6:
            is_sealed = draw.random() < 0.7
            page = put(store, number, generation=0 if is_sealed else generation)
            seen[number] = clock.now
            if not is_sealed:
                unsealed[number] = page.id
        elif kind < 0.9 and seen:
            again = draw.choice([*seen])
            record = store.find(url(again))
            assert record is not None
            store.touch(record)
            seen[again] = clock.now
        elif kind < 0.98:
            store.journal.seal(generation, unsealed.values())
            unsealed.clear()
        else:
            store = clock.govern(lasting.reopen(store))
            generation = store.journal.begin("crawl")
            seen = {one: when for one, when in seen.items() if one not in unsealed}
            unsealed.clear()
        store.expire(bounds)
        left = set(known(store))
        oldest = min((seen[one] for one in left - unsealed.keys()), default=clock.now)
        for gone in seen.keys() - left:
            is_overdue = bounds.ttl is not None and seen[gone] < clock.now - bounds.ttl + 1
            assert gone not in unsealed
            assert is_overdue or (bounds.exceeded(len(seen)) and seen[gone] <= oldest + 60)
        seen = {one: seen[one] for one in left}
    store.journal.seal(generation, unsealed.values())
    steps(store, bounds, 200)
    assert not bounds.exceeded(store.pages)
    assert all(seen[one] >= clock.now - (bounds.ttl or clock.now) for one in known(store))
    assert known(store)
    store.journal.end(generation)
    assert check(store).sound


def test_the_sight_of_a_copy_is_one_of_the_pages_by_which_it_is_one(store: PageStore, clock: Clock) -> None:
    original, variant, other = (put(store, number) for number in (1, 2, 3))
    store.add(Record(store.new_id(), url(9), original.id), seen=clock.now - HOUR, copied_from=(original,))
    assert store.last_seen(original.url) == int(clock.now), "an earlier one takes no later one back"
    for number in range(10, 14):
        clock.now += 20 * HOUR
        store.add(Record(store.new_id(), url(number), original.id), copied_from=(original, variant))
        steps(store, DAY)
        assert {1, 2} <= set(known(store))
    assert store.find(other.url) is None
    clock.now += 20 * HOUR
    copy = store.find(url(13))
    assert copy is not None
    store.touch(copy, copied_from=(original,))
    clock.now += 20 * HOUR
    steps(store, DAY)
    assert known(store) == [1, 13]
    generation = store.journal.begin("crawl")
    later = put(store, 1, generation=generation, replaces=original.id)
    store.add(Record(store.new_id(), url(2), original.id), copied_from=(original,))
    assert store.find(url(1)) == later, "a copy says nothing of a later version of its original"
    store.journal.roll_back(generation, later.id)
    assert store.find(url(1)) == original


@pytest.mark.parametrize("many", [1, 5])
def test_what_is_free_later_than_what_came_after_goes_first(lasting: Place, clock: Clock, many: int) -> None:
    """Also after the state was closed: pages that were not sealed, and one that has got its place back."""
    store = clock.govern(lasting.open())
    generation = store.journal.begin("crawl")
    sealed_late = [put(store, number, generation=generation).id for number in range(4)]
    rolled_back = put(store, 4)
    later = put(store, 4, generation=generation, replaces=rolled_back.id)
    for number in range(5, 30):
        clock.now += HOUR
        put(store, number)
    for _ in range(many):
        store.expire(Bounds(max_pages=store.pages - 1))
    clock.now += HOUR
    store.journal.roll_back(generation, later.id)
    store.journal.seal(generation, sealed_late)
    store = clock.govern(lasting.reopen(store))
    before = known(store)
    for gone in range(1, 4):
        store.expire(Bounds(max_pages=store.pages - 1))
        assert known(store) == before[gone:]
    clock.now += HOUR
    put(store, 30)
    steps(store, Bounds(max_pages=2))
    assert known(store) == [4, 30], "a roll-back is a sight"
    steps(store, Bounds(max_pages=1))
    assert known(store) == [30]
    assert check(store).sound


def test_a_page_that_arrives_late_expires_with_those_that_came_before_it(store: PageStore, clock: Clock) -> None:
    """Its id is older than the frontier of the queue."""
    late = [Record(id, url(id), id) for id in (store.new_id(), store.new_id())]
    for number in range(1, 30):
        put(store, number)
    clock.now += 48 * HOUR
    steps(store, Bounds(ttl=24 * HOUR, max_pages=1))
    assert known(store) == []
    store.add(late[0])
    clock.now += HOUR
    put(store, 30)
    steps(store, Bounds(max_pages=1))
    assert known(store) == [30]
    store.add(late[1])
    clock.now += 48 * HOUR
    steps(store, DAY)
    assert known(store) == []


def test_a_page_that_waits_twice_goes_once(store: PageStore, clock: Clock) -> None:
    """On a server as a page of today, elsewhere as one that was sealed twice."""
    generation, first = store.journal.begin("crawl"), put(store, 0)
    clock.now += 48 * HOUR
    assert steps(store, DAY) == 1
    page = put(store, 1)
    clock.now += 20 * HOUR
    store.touch(page)
    steps(store, Bounds(max_pages=0), 1)
    store.journal.seal(generation, [page.id, first.id])
    clock.now += 48 * HOUR
    assert steps(store, DAY) == 1
    assert known(store) == []
    assert store.kv.count(layout.QUEUE) == 0


@pytest.mark.parametrize("bounds", [DAY, Bounds(max_pages=10), Bounds(24 * HOUR, 10)])
def test_each_step_is_small(store: PageStore, clock: Clock, bounds: Bounds, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [put(store, number) for number in range(300)]
    clock.now += 48 * HOUR
    for page in kept[:100]:
        store.touch(page)
    reads = [0]
    get, scan = store.kv.get, store.kv.scan

    def counted(key: bytes) -> bytes | None:
        reads[0] += 1
        return get(key)

    def counted_rows(prefix: bytes, **how: Any) -> Iterator[tuple[bytes, bytes]]:
        for row in scan(prefix, **how):
            reads[0] += 1
            yield row

    monkeypatch.setattr(store.kv, "get", counted)
    monkeypatch.setattr(store.kv, "scan", counted_rows)
    gone = 0
    while store.pages > 10 and (store.pages > 100 or bounds.max_pages):
        reads[0] = 0
        this = store.expire(bounds)
        gone += this
        assert this <= 8
        assert reads[0] <= 120
    assert gone in (200, 290)
    reads[0] = 0
    assert steps(store, DAY, 100) == 0
    steps(store, bounds, 20)
    reads[0] = 0
    assert store.expire(bounds) == 0
    assert reads[0] == 0, "once it has come round there is nothing to look at for a while"


def test_what_was_deleted_at_the_beginning_is_not_passed_again(lasting: Place, clock: Clock) -> None:
    """Each scan begins where the last one ended: from the first key on LevelDB would pass all that was deleted."""
    store = clock.govern(lasting.open())
    lows: list[int] = []
    scan = store.kv.scan

    def spy(prefix: bytes, *, start: bytes = b"", reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        if start:
            lows.append(layout.last_id(start))
        return scan(prefix, start=start, reverse=reverse)

    store.kv.scan = spy  # type: ignore[method-assign]
    for number in range(60):
        clock.now += HOUR
        put(store, number)
        store.expire(Bounds(5 * HOUR, 10))
    oldest = next(store.records()).id - HOUR * 10**9
    lows.clear()
    clock.now += HOUR
    put(store, 60)
    store.expire(Bounds(5 * HOUR, 10))
    assert lows
    assert all(low >= oldest for low in lows if low != layout.last_id(layout.QUEUE))


@pytest.mark.parametrize("is_dry", [True, False])
def test_expiry_in_memory_does_not_pass_again_what_is_gone(
    is_dry: bool, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run hides the rows of its snapshot. Half of the pages were seen again, so they have rows in the queue."""
    passed = [0]

    def has(rows: SortedRows[bytes], key: object) -> bool:
        passed[0] += 1
        return dict.__contains__(rows, key)

    monkeypatch.setattr(SortedRows, "__contains__", has)
    costs = []
    for many in (100, 400):
        place, clock.last = f"sqlite://{tmp_path}/{many}", 0
        store = clock.govern(open_store(place, {}) if is_dry else memory_state({}))
        pages = [Record(id, url(id), id, 1.0, (id % 2**40,)) for id in (store.new_id() for _ in range(many))]
        for page in pages:
            store.add(page)
        if is_dry:
            close_store(store)
            store = clock.govern(open_store(place, {}, dry_run=True))
        clock.now += 48 * HOUR
        for page in pages[::2]:
            store.touch(page)
        passed[0] = 0
        assert steps(store, DAY, many) == many // 2
        clock.now += 48 * HOUR
        assert steps(store, DAY, many) == many // 2
        costs.append(passed[0])
        assert known(store) == []
        close_store(store)
    assert costs[1] < 6 * costs[0], costs


def test_a_clock_that_was_ahead_for_a_while_keeps_no_page_for_ever(store: PageStore, clock: Clock) -> None:
    clock.now += 10_000 * HOUR
    put(store, 1)
    clock.now -= 10_000 * HOUR
    put(store, 2)
    clock.now += 48 * HOUR
    steps(store, DAY)
    assert known(store) == [1], "the sight of which is yet to come"


def test_without_bounds_nothing_goes_and_a_damaged_frontier_is_told_of(lasting: Place, clock: Clock) -> None:
    store = clock.govern(lasting.open())
    for number in range(20):
        put(store, number)
    clock.now += 10**8
    assert steps(store, Bounds()) == 0
    assert store.kv.get(FRONTIER) is None
    assert len(known(store)) == 20
    assert steps(store, DAY) == 20
    packed = store.kv.get(FRONTIER)
    assert packed is not None
    store.write(Changes({FRONTIER: packed[:-1]}))
    with pytest.raises(StoreDamaged, match="frontier of its expiry"):
        lasting.reopen(store)
