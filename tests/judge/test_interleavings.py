"""Two crawlers on a real server, whose steps are driven through all orders: what each sends goes when it is told to.

A plan names who goes next, step by step; behind its end they take turns. A run shows where somebody else could have
gone: that is the next plan, until there is none that is new.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge import remote
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.server.program import Program
from tests.judge.test_shared import Crawler, Opening, page
from tests.server.redis_server import Server, end_leases

#: Turns of the loop after which whoever can go has come to the gate.
_TURNS = 8


@dataclass(eq=False)
class Gate:
    """Where each program of a crawler waits until it is let through."""

    crawler: Crawler
    waiting: list[asyncio.Future[None]] = field(default_factory=list)
    passing: int = 0
    is_open: bool = False
    is_dead: bool = False

    def __post_init__(self) -> None:
        send = self.crawler.link.run

        async def gated(program: Program) -> list[Any]:
            if not self.is_open:
                turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self.waiting.append(turn)
                await turn
            if self.is_dead:
                raise StoreError("its process is no more")
            self.passing += 1
            try:
                return await send(program)
            finally:
                self.passing -= 1

        self.crawler.link.run = gated  # type: ignore[method-assign]

    def step(self) -> None:
        """Let one program through; one that nobody waits for any more does not count."""
        turn = self.waiting.pop(0)
        if not turn.done():
            turn.set_result(None)

    def open(self) -> None:
        self.is_open = True
        while self.waiting:
            self.step()

    async def still(self) -> None:
        """Wait until all that was let through is done, and what follows has come to the gate."""
        left = _TURNS
        while left:
            await asyncio.sleep(0 if not self.passing else 0.0002)
            left = _TURNS if self.passing else left - 1
        self.waiting = [turn for turn in self.waiting if not turn.done()]


@dataclass
class Run:
    """What came of a plan: who could have gone at each step, who did, who thinks that its item counts, what is kept."""

    could: list[tuple[str, ...]] = field(default_factory=list)
    did: list[str] = field(default_factory=list)
    through: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)


async def crawl(name: str, crawler: Crawler, run: Run) -> None:
    """A copy of the one article comes, and its item comes through. It would give up at once who is heard of."""
    async with crawler.crawl.judgement() as judgement:
        while isinstance(ruling := await judgement.check(page(name)), Blocked):
            await judgement.wait(ruling.by, 0)
    if ruling.reservation is not None:
        crawler.crawl.commit(ruling.reservation, sealed=True)
        await crawler.crawl.finish()
        if not crawler.errors:
            run.through.append(name)


async def played(opening: Opening, plan: Sequence[str], trouble: tuple[int, str, str] = (-1, "", "")) -> Run:
    """``trouble``: behind which step, what, and whose: a process is killed, or a lease ends and its process goes on."""
    run, (step, what, whose) = Run(), trouble
    async with AsyncExitStack() as stack:
        gates = {name: Gate(await stack.enter_async_context(opening())) for name in "ab"}
        tasks = {name: asyncio.ensure_future(crawl(name, gate.crawler, run)) for name, gate in gates.items()}
        turns = dict.fromkeys(gates, 0)
        while True:
            for gate in gates.values():
                await gate.still()
            could = tuple(name for name, gate in gates.items() if gate.waiting)
            if not could:
                break
            at = len(run.did)
            name = plan[at] if at < len(plan) and plan[at] in could else min(could, key=lambda one: (turns[one], one))
            run.could.append(could)
            run.did.append(name)
            turns[name] += 1
            gates[name].step()
            await gates[name].still()
            if at == step:
                end_leases(gates[whose].crawler.store)
                if what == "kill":
                    gates[whose].crawler.store.leases.crawls.clear()
                    gates[whose].is_dead = True
                    tasks[whose].cancel()
                    gates[whose].open()
            assert at < 100, run.did
        for gate in gates.values():
            gate.open()
        for task in tasks.values():
            with suppress(asyncio.CancelledError, StoreError):
                await task
        store = gates["a" if gates["b"].is_dead else "b"].crawler.store
        run.kept = [record.url for record in store.records() if record.is_original]
    return run


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for another looks again when it is told to."""
    monkeypatch.setattr(remote, "_SOON", 0)
    monkeypatch.setattr(remote, "_LATE", 0)


def plans(run: Run, fixed: int, until: int) -> list[list[str]]:
    return [
        [*run.did[:at], other]
        for at in range(fixed, min(until, len(run.did)))
        for other in run.could[at]
        if other != run.did[at]
    ]


@pytest.mark.parametrize("until", [8, pytest.param(14, marks=pytest.mark.soak)])
def test_two_crawlers_in_all_orders_of_their_steps_keep_an_article_once(redis_server: Server, until: int) -> None:
    async def all_orders() -> int:
        waiting: list[tuple[list[str], int]] = [([], 0)]
        runs = 0
        while waiting:
            plan, fixed = waiting.pop()
            run = await played(Opening(redis_server), plan)
            assert len(run.through) == len(run.kept) == 1, run
            runs += 1
            waiting += [(more, len(more)) for more in plans(run, fixed, until)]
        return runs

    assert asyncio.run(all_orders()) >= until


def troubles(seed: int, runs: int, server: Server) -> set[tuple[str, int]]:
    """Random plans with random trouble; what came of it, by what was done and how many are kept."""
    chance, found = random.Random(seed), set[tuple[str, int]]()

    async def many() -> None:
        for _ in range(runs):
            plan = [chance.choice("ab") for _ in range(14)]
            what = chance.choice(["kill", "sleep"])
            run = await played(Opening(server), plan, (chance.randrange(10), what, chance.choice("ab")))
            assert len(run.kept) <= 1, (plan, run)
            assert len(run.through) <= len(run.kept), (plan, run)
            if what == "sleep":
                assert len(run.kept) == 1, (plan, run)
            found.add((what, len(run.kept)))

    asyncio.run(many())
    return found


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("seed", "runs"), [(1, 25), *(pytest.param(n, 500, marks=pytest.mark.soak) for n in range(20))]
)
def test_nor_do_both_if_one_is_killed_or_its_lease_ends_at_any_step(redis_server: Server, seed: int, runs: int) -> None:
    assert ("kill", 1) in troubles(seed, runs, redis_server)
