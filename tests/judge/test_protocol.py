"""How crawlers share pages on their way, driven through all orders of their steps.

A small model of ``server/in_flight`` and its leases: crawlers that each have one copy of the same article, and somebody
who opens the state and takes back what is left. Each step is one script on the server, and anything may happen between
two: a process is killed, a lease ends though its process goes on (it slept, its network or its clock was off), an item
is lost. One crawler may be so slow that the others give its page up. All states that can be reached are gone through.
That the real code does these steps is shown in ``test_interleavings``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

import pytest


class At(Enum):
    """Where a crawler is."""

    START = 1
    ASK = 2
    AWAY = 3
    WAIT = 4
    LOOK = 5
    DROP = 6
    RESERVED = 7
    COMMITTED = 8
    # And its ends.
    KEPT = 9
    DROPPED = 10
    RELEASED = 11
    LOST = 12
    DEAD = 13
    #: It gave up and delivered, and nobody knows.
    PASSED = 14


ENDS = {At.KEPT, At.DROPPED, At.RELEASED, At.LOST, At.DEAD, At.PASSED}


class Lease(Enum):
    """Who is at work on a crawl."""

    OWN = 1
    NOBODY = 2
    OTHER = 3


class Rule(Enum):
    """How conflicts are settled: ours, and what would not do."""

    FIRST_FILED = "who filed first"
    OLDER_ID = "the older id, as a clock gave it"
    BACK_AT_ANY_TIME = "who filed first, and a lease may be taken up again though taking back was begun"
    IGNORE_DEAD = "who filed first, and one whose lease has ended is passed over and left there"
    BY_THE_CLOCK = "who filed first, and whoever waits too long passes, and is not filed"
    ALL_AT_ONCE = "who filed first, and whoever waits too long for one gives up all"


@dataclass(frozen=True)
class Crawler:
    at: At = At.START
    earlier: frozenset[int] = frozenset()
    seen: frozenset[int] = frozenset()
    #: Whom it is about to take away.
    away: int = -1
    lease: Lease = Lease.OWN
    #: Whether the state knows its crawl.
    known: bool = True
    #: Whether somebody has begun to take it back.
    taken: bool = False
    #: Times that its lease may still end though it goes on.
    slips: int = 1

    @property
    def is_ours(self) -> bool:
        """Whether a script that expects its lease would go on, and renew it."""
        return self.known and not self.taken and self.lease is not Lease.OTHER


@dataclass(frozen=True)
class World:
    crawlers: tuple[Crawler, ...]
    pending: tuple[int, ...] = ()
    committed: frozenset[int] = frozenset()
    sealed: frozenset[int] = frozenset()
    deaths: int = 1
    #: Which crawler holds its place for longer than anybody waits.
    slow: int = -1

    def put(self, n: int, crawler: Crawler, **server: object) -> World:
        crawlers = (*self.crawlers[:n], crawler, *self.crawlers[n + 1 :])
        return replace(self, crawlers=crawlers, **server)  # type: ignore[arg-type]

    def without(self, n: int) -> tuple[int, ...]:
        return tuple(one for one in self.pending if one != n)

    @property
    def is_over(self) -> bool:
        return all(crawler.at in ENDS for crawler in self.crawlers)


def steps(world: World, rule: Rule) -> Iterator[World]:
    """What may happen next."""
    for n, crawler in enumerate(world.crawlers):
        if crawler.at not in ENDS:
            yield from own_steps(world, n, crawler, rule)
            if crawler.lease is Lease.NOBODY and (crawler.is_ours or (rule is Rule.BACK_AT_ANY_TIME and crawler.known)):
                yield world.put(n, replace(crawler, lease=Lease.OWN, taken=False))
            if crawler.lease is Lease.OWN and crawler.slips:
                yield world.put(n, replace(crawler, lease=Lease.NOBODY, slips=crawler.slips - 1))
            if world.deaths:
                yield world.put(n, replace(crawler, at=At.DEAD), deaths=world.deaths - 1)
        elif crawler.lease is Lease.OWN and crawler.known:
            yield world.put(n, replace(crawler, lease=Lease.NOBODY))  # given back at the end, or it runs out
        yield from taken_back(world, n, crawler)


def own_steps(world: World, n: int, crawler: Crawler, rule: Rule) -> Iterator[World]:
    there = world.committed | world.sealed
    held = replace(crawler, lease=Lease.OWN)
    if crawler.at is At.START:
        if not crawler.is_ours:
            yield world.put(n, replace(crawler, at=At.LOST))
            return
        earlier = frozenset(world.pending)
        if rule is Rule.OLDER_ID:
            earlier = frozenset(one for one in earlier if one < n)  # whenever that was filed
        yield world.put(n, replace(held, at=At.ASK, earlier=earlier, seen=there), pending=(*world.pending, n))
    elif crawler.at is At.ASK:
        yield world.put(n, asked(world, crawler, rule))
    elif crawler.at is At.AWAY:
        after = replace(crawler, at=At.LOOK, away=-1)
        if world.crawlers[crawler.away].lease is Lease.NOBODY:  # it may have gone in another way, too
            after = replace(after, earlier=crawler.earlier - {crawler.away})
            yield world.put(n, after, pending=world.without(crawler.away))
        else:
            yield world.put(n, after)
    elif crawler.at is At.WAIT:
        yield world.put(n, replace(crawler, at=At.LOOK))
        yield from given_up(world, n, crawler, rule)
    elif crawler.at is At.LOOK:
        yield world.put(n, replace(crawler, at=At.ASK, seen=there))
    elif crawler.at is At.DROP:
        yield world.put(n, replace(crawler, at=At.DROPPED), pending=world.without(n))
    elif crawler.at is At.RESERVED:
        yield world.put(n, replace(crawler, at=At.RELEASED), pending=world.without(n))
        if n in world.pending and crawler.is_ours:
            yield world.put(
                n, replace(held, at=At.COMMITTED), pending=world.without(n), committed=world.committed | {n}
            )
        else:
            yield world.put(n, replace(crawler, at=At.LOST))
    elif crawler.at is At.COMMITTED:
        if crawler.is_ours:
            after = replace(held, at=At.KEPT)
            yield world.put(n, after, committed=world.committed - {n}, sealed=world.sealed | {n})
        else:
            yield world.put(n, replace(crawler, at=At.LOST))


def given_up(world: World, n: int, crawler: Crawler, rule: Rule) -> Iterator[World]:
    """It has waited long enough. A crawler that is alive and not slow is done by then."""
    are_heard = all(one in world.pending and is_heard(world, one) for one in crawler.earlier)
    if rule is Rule.BY_THE_CLOCK:
        if world.slow in crawler.earlier or not are_heard:
            yield world.put(n, replace(crawler, at=At.PASSED), pending=world.without(n))
    elif are_heard and world.slow in crawler.earlier:
        left = crawler.earlier - {world.slow} if rule is not Rule.ALL_AT_ONCE else frozenset[int]()
        yield world.put(n, replace(crawler, at=At.LOOK, earlier=left))


def is_heard(world: World, n: int) -> bool:
    """Whether a crawl renews its lease."""
    return world.crawlers[n].at is not At.DEAD and world.crawlers[n].lease is Lease.OWN


def asked(world: World, crawler: Crawler, rule: Rule) -> Crawler:
    """What the second way to the server says, and what follows from it."""
    if crawler.seen & (world.committed | world.sealed):
        return replace(crawler, at=At.DROP)
    gone = crawler.earlier - set(world.pending)
    if gone:
        return replace(crawler, at=At.LOOK, earlier=crawler.earlier - gone)
    left = {one for one in crawler.earlier if is_left(world, one)}
    if left and rule is Rule.IGNORE_DEAD:
        return replace(crawler, at=At.LOOK, earlier=crawler.earlier - left)
    if left:
        return replace(crawler, at=At.AWAY, away=min(left))
    return replace(crawler, at=At.WAIT if crawler.earlier else At.RESERVED)


def is_left(world: World, n: int) -> bool:
    return n in world.pending and world.crawlers[n].lease is Lease.NOBODY


def taken_back(world: World, n: int, crawler: Crawler) -> Iterator[World]:
    """Somebody who opens the state; killed at any step, whereupon the lease ends that was taken."""
    if crawler.lease is Lease.NOBODY and crawler.known:
        yield world.put(n, replace(crawler, lease=Lease.OTHER, taken=True))
    if crawler.lease is Lease.OTHER:
        if world.deaths:
            yield world.put(n, replace(crawler, lease=Lease.NOBODY), deaths=world.deaths - 1)
        if n in world.pending:
            yield replace(world, pending=world.without(n))
        elif n in world.committed:
            yield replace(world, committed=world.committed - {n})
        else:
            yield world.put(n, replace(crawler, lease=Lease.NOBODY, known=False))


def reachable(
    crawlers: int, rule: Rule, *, slips: int = 1, deaths: int = 1, slow: int = -1
) -> dict[World, list[World]]:
    """All worlds that can come of a beginning, each with what may come next."""
    first = World((Crawler(slips=slips),) * crawlers, deaths=deaths, slow=slow)
    found: dict[World, list[World]] = {}
    waiting = [first]
    while waiting:
        world = waiting.pop()
        if world not in found:
            found[world] = list(steps(world, rule))
            waiting += found[world]
    return found


def kept(world: World) -> int:
    """How often the article is delivered."""
    passed = sum(crawler.at is At.PASSED for crawler in world.crawlers)
    return len(world.committed | world.sealed) + passed


@pytest.fixture(scope="module")
def worlds() -> dict[World, list[World]]:
    return reachable(2, Rule.FIRST_FILED)


def test_no_two_keep_one_article_whatever_happens_in_between(worlds: dict[World, list[World]]) -> None:
    assert len(worlds) > 5000
    assert max(map(kept, worlds)) == 1


def test_nor_do_two_of_three() -> None:
    found = reachable(3, Rule.FIRST_FILED, slips=0, deaths=0)
    assert len(found) > 4000
    assert max(map(kept, found)) == 1


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("slips", "deaths"), [(0, 1), (1, 0)])
def test_nor_do_two_of_three_of_which_one_dies_or_all_may_sleep(slips: int, deaths: int) -> None:
    found = reachable(3, Rule.FIRST_FILED, slips=slips, deaths=deaths)
    assert len(found) > 50_000
    assert max(map(kept, found)) == 1


def test_where_nobody_dies_or_loses_an_item_exactly_one_is_kept(worlds: dict[World, list[World]]) -> None:
    ends = [
        world for world in worlds if world.is_over and all(one.at in (At.KEPT, At.DROPPED) for one in world.crawlers)
    ]
    assert {len(world.sealed) for world in ends} == {1}


def test_an_article_that_nobody_kept_is_free_for_the_next_who_comes(worlds: dict[World, list[World]]) -> None:
    """Once all leases have ended and what is left was taken back, nothing of it is there, or it is sealed once."""
    still = [world for world, after in worlds.items() if not after]
    assert still
    for world in still:
        assert world.is_over
        assert (world.pending, world.committed, len(world.sealed) <= 1) == ((), frozenset(), True)
    assert {len(world.sealed) for world in still} == {0, 1}


def test_of_three_only_the_next_one_overtakes_a_slow_one() -> None:
    found = reachable(3, Rule.FIRST_FILED, slips=0, deaths=0, slow=0)
    assert max(map(kept, found)) == 2
    assert max(map(kept, reachable(3, Rule.ALL_AT_ONCE, slips=0, deaths=0, slow=0))) == 3


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("slips", "deaths"), [(0, 1), (1, 0)])
def test_nor_do_two_overtake_it_if_one_dies_or_all_may_sleep(slips: int, deaths: int) -> None:
    found = reachable(3, Rule.FIRST_FILED, slips=slips, deaths=deaths, slow=0)
    assert max(map(kept, found)) == 2


def test_nobody_waits_for_ever_for_a_slow_one() -> None:
    worlds = reachable(2, Rule.FIRST_FILED, slow=0)
    assert max(map(kept, worlds)) == 2
    all_can_end(worlds)


def test_nobody_waits_for_ever(worlds: dict[World, list[World]]) -> None:
    all_can_end(worlds)


def all_can_end(worlds: dict[World, list[World]]) -> None:
    """From wherever things have come, all can come to an end."""
    before: dict[World, list[World]] = {}
    for world, after in worlds.items():
        for one in after:
            before.setdefault(one, []).append(world)
    waiting = [world for world in worlds if world.is_over]
    ending = set(waiting)
    while waiting:
        for one in before.get(waiting.pop(), ()):
            if one not in ending:
                ending.add(one)
                waiting.append(one)
    assert ending == set(worlds)


@pytest.mark.parametrize(
    ("rule", "slips", "deaths"),
    [(Rule.OLDER_ID, 0, 0), (Rule.IGNORE_DEAD, 1, 0), (Rule.BACK_AT_ANY_TIME, 1, 1), (Rule.BY_THE_CLOCK, 1, 0)],
)
def test_what_would_not_do_is_found_out(rule: Rule, slips: int, deaths: int) -> None:
    """With as little trouble as it takes: for the first one none at all."""
    assert max(map(kept, reachable(2, rule, slips=slips, deaths=deaths))) == 2
