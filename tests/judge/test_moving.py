"""Crawls whose state moves from server to server while they are at work: what was confirmed holds, or comes again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Outcome, Verdict
from scrapy_neardup.server.claims import PageLost
from tests.judge.test_shared import Crawler, Opening, nobody_is_on_the_way, page
from tests.server.redis_cluster import Cluster, caught_up, hears_again, lose_what_comes
from tests.server.redis_server import as_redis_does, running

pytestmark = pytest.mark.slow


class Told(list[str]):
    """What a crawl that waits for its server says of it."""

    def __call__(self, why: str) -> None:
        self.append("gone" if why else "back")


async def comes_through(crawler: Crawler, name: str, family: int) -> Verdict:
    """The verdict on a page whose item comes through a moment later."""
    ruling = await crawler.judged(page(name, family), wait=30)
    if ruling.reservation is not None:
        await asyncio.sleep(0.02)
        crawler.crawl.commit(ruling.reservation, sealed=False)
    return ruling.verdict


async def all_come_through(crawlers: tuple[Crawler, ...], names: list[str], pause: float = 0.0) -> list[Outcome]:
    """Of pages of three families on several crawlers, in the order of their names."""
    tasks = []
    for at, name in enumerate(names):
        tasks.append(asyncio.ensure_future(comes_through(crawlers[at % len(crawlers)], name, at % 3)))
        await asyncio.sleep(pause)
    found = await asyncio.gather(*tasks)
    for crawler in crawlers:
        await crawler.crawl.finish()
        assert crawler.errors == []
    return [verdict.outcome for verdict in found]


def ended(crawlers: tuple[Crawler, ...]) -> None:
    for crawler in crawlers:
        store, generation = crawler.store, crawler.crawl.detector.generation
        store.journal.seal(generation, list(store.journal.unsealed(generation)))
        assert crawler.crawl.detector.end() == 0
    assert check(crawlers[0].store).sound
    assert nobody_is_on_the_way(crawlers[0].store)


def replica_takes_over(cluster: Cluster, state: str) -> None:
    cluster.replica_takes_over(state)


def slot_moves(cluster: Cluster, state: str) -> None:
    cluster.move(state, cluster.another_master(state))


@pytest.mark.parametrize("move", [replica_takes_over, slot_moves])
async def test_verdicts_are_the_same_while_states_move(cluster: Cluster, move: Callable[[Cluster, str], None]) -> None:
    """Two crawlers judge copies of each other's pages while it goes to another node, and from there to another."""
    told = Told()
    opening = Opening(cluster, told)
    async with opening() as one, opening() as two:
        coming = asyncio.ensure_future(all_come_through((one, two), [f"host{n}" for n in range(60)], 0.02))
        for _ in range(2):
            await asyncio.sleep(0.3)
            await asyncio.to_thread(move, cluster, opening.state)
        kinds = await coming
        assert kinds.count(Outcome.UNIQUE) == 3
        assert kinds.count(Outcome.DUPLICATE) == 57
        assert one.store.pages == 60
        assert one.store.kv.link.breaks + two.store.kv.link.breaks > 0
        assert one.lost == two.lost == []
        ended((one, two))
    assert told.count("gone") == told.count("back")


async def test_what_a_killed_node_had_confirmed_to_itself_alone_comes_again(cluster: Cluster) -> None:
    """The crawl waits and goes on; nothing is taken for a copy of what is lost, and nobody waits for it."""
    told = Told()
    opening = Opening(cluster, told)
    async with opening() as one, opening() as two:
        assert (await one.kept(page("held", 0), sealed=False)).outcome is Outcome.UNIQUE
        committed = await one.reserve(page("committed", 1))
        master, other = cluster.master(opening.state), cluster.replica(opening.state)
        await asyncio.to_thread(caught_up, master)
        try:
            lose_what_comes(master, other)
            filed = await one.reserve(page("filed", 2))
            one.crawl.commit(committed, sealed=False)
            await one.crawl.finish()
            assert (await two.judged(page("early", 1))).verdict.outcome is Outcome.DUPLICATE
            await two.crawl.finish()
            master.stop()
        finally:
            hears_again(other)
        one.crawl.commit(filed, sealed=False)
        await one.crawl.finish()
        assert (len(one.lost), one.errors) == (1, [])
        await one.crawl.catch_up()
        assert nobody_is_on_the_way(two.store)
        for name, family, outcome in (
            ("copy0", 0, Outcome.DUPLICATE),
            ("copy1", 1, Outcome.UNIQUE),
            ("copy2", 2, Outcome.UNIQUE),
            ("early", 1, Outcome.DUPLICATE),
            ("filed", 2, Outcome.DUPLICATE),
        ):
            assert (await two.kept(page(name, family), sealed=False)).outcome is outcome, name
        ended((one, two))
    assert told in (["gone", "back"], ["gone", "gone", "back", "back"])


async def test_what_is_on_its_way_stays_so_when_a_crawl_looks_for_what_is_over(cluster: Cluster) -> None:
    opening = Opening(cluster, Told())
    async with opening() as one:
        reserved = await one.reserve(page("reserved"))
        judging = asyncio.ensure_future(one.judged(page("judging", 1)))
        await asyncio.to_thread(cluster.replica_takes_over, opening.state)
        with suppress(StoreError):  # the connection is the one before; as in a crawl it is tried again
            await one.crawl._remove_revived()
        await one.crawl._remove_revived()
        other = (await judging).reservation
        assert other is not None
        for reservation in (reserved, other):
            one.crawl.commit(reservation, sealed=False)
        await one.crawl.finish()
        assert one.errors == one.lost == []
        assert one.store.pages == 2


async def test_a_page_that_is_gone_without_a_break_is_taken_for_one_that_others_took(cluster: Cluster) -> None:
    """So a crawl that was asleep stops."""
    opening = Opening(cluster)
    async with opening() as one:
        reserved = await one.reserve(page("reserved"))
        one.crawl.judgements.clear()
        await one.crawl._remove_revived()  # as if it were over
        one.crawl.commit(reserved, sealed=False)
        await one.crawl.finish()
        assert one.lost == []
        assert [type(error) for error in one.errors] == [PageLost]


@as_redis_does
async def test_a_crawl_waits_for_a_server_that_lacks_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrapy_neardup.server.connection.TRIES", 1)
    monkeypatch.setattr("scrapy_neardup.server.connection._PAUSE", 0.05)
    told = Told()
    with running() as server:
        async with Opening(server, told)() as crawler:
            server.client.config_set("min-replicas-to-write", 1)
            waiting = asyncio.ensure_future(crawler.kept(page("first")))
            while told != ["gone"]:
                await asyncio.sleep(0.02)
            server.client.config_set("min-replicas-to-write", 0)
            assert (await waiting).outcome is Outcome.UNIQUE
            assert told == ["gone", "back"]
