"""What was not seen for long is forgotten, and of too many pages the oldest, in small steps and nothing too early."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state import layout
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.expiry import FRONTIER, Bounds
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import pairs
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.urls import STORES
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


def test_a_page_is_forgotten_once_it_was_not_seen_for_the_ttl_and_not_before(store: PageStore, clock: Clock) -> None:
    put(store, 1)
    clock.now += 23 * HOUR
    put(store, 2)
    clock.now += HOUR - 1
    assert steps(store, DAY) == 0
    clock.now += 2
    assert steps(store, DAY) == 1
    assert known(store) == [2]
    assert store.find(url(1)) is None
    clock.now += 24 * HOUR
    assert steps(store, DAY) == 1
    assert known(store) == []


def test_a_page_that_is_seen_again_is_known_for_another_ttl(store: PageStore, clock: Clock) -> None:
    pages = [put(store, number) for number in range(30)]
    for _ in range(5):
        clock.now += 20 * HOUR
        store.touch(pages[3])
        steps(store, DAY)
    assert known(store) == [3]
    clock.now += 25 * HOUR
    steps(store, DAY)
    assert known(store) == []


@pytest.mark.parametrize("every", [30, 600])
def test_pages_that_were_seen_again_are_not_overlooked(store: PageStore, clock: Clock, every: int) -> None:
    first = put(store, 0)
    clock.now += HOUR / 2
    store.touch(first)
    touched = clock.now
    number = 0
    while clock.now < touched + 1.2 * HOUR:
        assert clock.now > touched + HOUR or store.record(first.id)
        number += 1
        clock.now += every
        put(store, number)
        store.expire(Bounds(ttl=HOUR))
    assert store.record(first.id) is None
    assert store.pages <= 1.2 * HOUR / every + 1


def test_the_sight_of_a_copy_is_one_of_the_pages_by_which_it_is_one(store: PageStore, clock: Clock) -> None:
    original, variant, other = (put(store, number) for number in (1, 2, 3))
    for number in range(10, 14):
        clock.now += 20 * HOUR
        id = store.new_id()
        store.add(Record(id, url(number), original.id), copied_from=(original, variant))
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


def test_a_copy_says_nothing_of_the_time_of_a_later_version_of_its_original(store: PageStore, clock: Clock) -> None:
    original = put(store, 1)
    generation = store.begin("crawl")
    later = put(store, 1, generation=generation, replaces=original.id)
    clock.now += HOUR
    store.add(Record(store.new_id(), url(2), original.id), copied_from=(original,))
    assert store.find(url(1)) == later
    store.roll_back(generation, later.id)
    assert store.find(url(1)) == original


def test_the_sight_of_a_copy_takes_no_later_one_back(store: PageStore, clock: Clock) -> None:
    original = put(store, 1)
    store.add(Record(store.new_id(), url(2), original.id), seen=clock.now - HOUR, copied_from=(original,))
    assert store.last_seen(url(1)) == int(clock.now)


def test_a_page_that_was_seen_again_is_passed_over_once(store: PageStore, clock: Clock) -> None:
    """And goes if it was not seen since."""
    bounds = Bounds(max_pages=10)
    first = put(store, 0)
    for number in range(1, 10):
        clock.now += HOUR
        put(store, number)
    clock.now += HOUR / 2
    store.touch(first)
    for number in range(10, 19):
        clock.now += HOUR
        put(store, number)
        store.expire(bounds)
    assert known(store) == [0, *range(10, 19)]
    for number in range(19, 50):
        clock.now += HOUR
        put(store, number)
        store.expire(bounds)
    assert 0 not in known(store)


def test_the_number_is_held_though_all_pages_are_seen_all_the_time(store: PageStore, clock: Clock) -> None:
    pages: list[Record] = []
    for number in range(100):
        clock.now += HOUR
        pages.append(put(store, number))
        for page in pages:
            if store.record(page.id):
                store.touch(page)
        steps(store, Bounds(max_pages=20), 3)
        assert store.pages <= 20


def test_what_is_not_sealed_stays_until_it_is(store: PageStore, clock: Clock) -> None:
    generation = store.begin("crawl")
    ids = [put(store, number, generation=generation).id for number in range(10)]
    clock.now += 48 * HOUR
    assert steps(store, Bounds(ttl=24 * HOUR, max_pages=3)) == 0
    store.seal(generation, ids[:8])
    steps(store, Bounds(max_pages=3))
    assert known(store) == [7, 8, 9]
    steps(store, DAY)  # at once: whoever looks over the pages had passed these
    assert known(store) == [8, 9]
    store.seal(generation, ids[8:])
    steps(store, DAY)
    assert known(store) == []
    assert store.end(generation) == 0


@pytest.mark.parametrize("many", [1, 5])
def test_what_is_free_later_than_what_came_after_goes_first(lasting: Place, clock: Clock, many: int) -> None:
    """Also after the state was closed: pages that were not sealed, and one that has got its place back."""
    store = clock.govern(lasting.open())
    generation = store.begin("crawl")
    sealed_late = [put(store, number, generation=generation).id for number in range(4)]
    rolled_back = put(store, 4)
    later = put(store, 4, generation=generation, replaces=rolled_back.id)
    for number in range(5, 30):
        clock.now += HOUR
        put(store, number)
    for _ in range(many):
        store.expire(Bounds(max_pages=store.pages - 1))
    clock.now += HOUR
    store.roll_back(generation, later.id)
    store.seal(generation, sealed_late)
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
    late = Record(store.new_id(), url(0), 0)
    late = Record(late.id, late.url, late.id)
    for number in range(1, 30):
        put(store, number)
    clock.now += 48 * HOUR
    steps(store, Bounds(ttl=24 * HOUR, max_pages=1))
    assert known(store) == []
    store.add(late)
    clock.now += HOUR
    put(store, 30)
    steps(store, Bounds(max_pages=1))
    assert known(store) == [30]
    late_too = Record(late.id + 1, url(31), late.id + 1)
    store.add(late_too)
    clock.now += 48 * HOUR
    steps(store, DAY)
    assert known(store) == []


@pytest.mark.parametrize("bounds", [DAY, Bounds(max_pages=10), Bounds(24 * HOUR, 10)])
def test_a_step_is_always_small(
    store: PageStore, clock: Clock, bounds: Bounds, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_many_short_crawls_go_on_where_the_one_before_was(lasting: Place, clock: Clock) -> None:
    """Else those behind many that are seen all the time would never go."""
    store = clock.govern(lasting.open())
    pages = [put(store, number) for number in range(40)]
    clock.now += 48 * HOUR
    for page in pages[:30]:
        store.touch(page)
    for _ in range(12):
        store = clock.govern(lasting.reopen(store))
        store.expire(DAY)
    assert known(store) == list(range(30))
    assert check(store).sound


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


def test_a_clock_that_was_ahead_for_a_while_keeps_no_page_for_ever(store: PageStore, clock: Clock) -> None:
    clock.now += 10_000 * HOUR
    put(store, 1)
    clock.now -= 10_000 * HOUR
    put(store, 2)
    clock.now += 48 * HOUR
    steps(store, DAY)
    assert known(store) == [1], "the sight of which is yet to come"


def test_what_is_said_of_the_hands_must_be_what_was_written(lasting: Place, clock: Clock) -> None:
    store = clock.govern(lasting.open())
    put(store, 1)
    clock.now += 48 * HOUR
    assert steps(store, DAY) == 1
    packed = store.value(FRONTIER)
    assert packed is not None
    store.write(Changes({FRONTIER: packed[:-1]}))
    with pytest.raises(StoreDamaged, match="frontier of its expiry"):
        lasting.reopen(store)


def test_without_bounds_nothing_is_written_and_nothing_goes(place: Place, clock: Clock) -> None:
    store = clock.govern(place.open())
    for number in range(20):
        put(store, number)
    clock.now += 10**8
    assert steps(store, Bounds()) == 0
    assert store.value(FRONTIER) is None
    assert len(known(store)) == 20
