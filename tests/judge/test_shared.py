"""A crawl on a state that it shares: the verdicts are those of any other store, in two ways to the server and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from unittest.mock import Mock, patch

import pytest
import redis

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge import lists
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, write_manual_verdicts
from scrapy_neardup.judge.remote import Patience, RemoteCrawl
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.server.asynchronous import AsyncLink
from scrapy_neardup.server.connection import Link
from scrapy_neardup.server.engine import Redis
from scrapy_neardup.server.layout import PENDING, STREAM
from scrapy_neardup.server.program import Program
from scrapy_neardup.server.store import RedisStore
from scrapy_neardup.server.transaction import OvertakenError, RemoteTransaction
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import parse_url
from tests.build import pairs, put, story
from tests.server.redis_cluster import Cluster
from tests.server.redis_server import Server, client_of, end_leases, running
from tests.server.test_redis_async import count_sent

METHOD = make_method("cascade", {})


def page(url: str, family: int = 0, *, end: str = "", title: str = "", html: int = 0) -> Page:
    """Pages of one family are copies of each other."""
    return Page(f"http://{url}.example/", title or f"标题{family}", text="".join(story(family, 12)) + end, html=html)


@dataclass
class Crawler:
    """One crawl on the state of a test, with all that its process would have."""

    store: RedisStore
    link: AsyncLink
    crawl: RemoteCrawl
    errors: list[StoreError] = field(default_factory=list)
    lost: list[None] = field(default_factory=list)
    ways: int = 0

    async def judged(self, wanted: Page, *, wait: float = 5.0) -> Ruled:
        """The ruling on a page, which waits for others as a crawl does."""
        async with self.crawl.judgement() as judgement:
            while isinstance(ruling := await judgement.check(wanted), Blocked):
                await asyncio.wait_for(judgement.wait(ruling.by, 2 * wait), wait)
        return ruling

    async def reserve(self, wanted: Page) -> Reservation:
        reservation = (await self.judged(wanted)).reservation
        assert reservation is not None
        return reservation

    async def patient(self, wanted: Page, seconds: float = 0.1) -> Ruled:
        """The ruling on a page that gives up what takes longer."""
        async with self.crawl.judgement() as judgement:
            while isinstance(ruling := await judgement.check(wanted), Blocked):
                await judgement.wait(ruling.by, seconds)
        return ruling

    async def through(self, ruling: Ruled, *, sealed: bool = True) -> Verdict:
        """The item of a page comes through, if the page passes."""
        if ruling.reservation is not None:
            self.crawl.commit(ruling.reservation, sealed=sealed)
        await self.crawl.finish()
        assert self.errors == []
        return ruling.verdict

    async def kept(self, wanted: Page, *, sealed: bool = True) -> Verdict:
        return await self.through(await self.judged(wanted), sealed=sealed)


class Opening:
    """Opens crawlers on one state of a server; they wait for it if there is somebody to tell."""

    def __init__(self, server: Server | Cluster, patience: Patience | None = None) -> None:
        self.state = server.new_state()
        self.url = server.url(self.state)
        self.patience = patience

    @asynccontextmanager
    async def __call__(self, **options: Any) -> AsyncIterator[Crawler]:
        kind, location = parse_url(self.url)
        store = open_at(kind, location, METHOD.recipe())
        assert isinstance(store, RedisStore)
        detector = Detector(METHOD, store, who="test", **options)
        errors, lost = list[StoreError](), list[None]()
        crawl = RemoteCrawl(detector, errors.append, lambda: lost.append(None), self.patience)
        link = crawl.link
        crawler = Crawler(store, link, crawl, errors, lost)
        await link.run(crawl.program())  # connects, so that the first page takes no longer than others
        run = link.run

        async def counted(program: Program) -> list[Any]:
            crawler.ways += 1
            return await run(program)

        link.run = counted  # type: ignore[method-assign]
        try:
            yield crawler
        finally:
            await crawler.crawl.close()
            store.close()


@pytest.fixture
def opening(redis_server: Server) -> Opening:
    return Opening(redis_server)


LONG = "".join(story(5, 30))
PAGES = [
    page("first"),
    page("copy"),
    page("edited", end="编辑部转载。"),
    page("first"),
    page("first", end="后来又添了一句话，说的是别的事情。"),
    page("other", 1),
    page("copy"),
    Page("http://short.example/", "短", text="太短。"),
    Page("http://mark.example/", "短", text="太短。", html=77),
    Page("http://mark.example/", "短", text="太短。", html=77),
    page("kept", 1),
    page("said", 2),
    replace(page("canonical", 3), canonical="http://first.example/"),
    # A minor update, and two notices in one form.
    *(Page("http://long.example/", "渡口", text=start + LONG[len(start) :]) for start in ("", "更新", "更新", "")),
    *(Page(f"http://town.example/{n}", f"第{n}号", text="".join([*story(6, 24), *story(n, 6)])) for n in (11, 12)),
    *(page(f"many{number}", number % 3, end=f"第{number}版。") for number in range(12)),
]


@pytest.mark.parametrize("passing", ["drop", "pass", "longest"])
async def test_verdicts_are_those_of_a_store_in_memory(opening: Opening, passing: str) -> None:
    policy = Policy(keep=Keep.EVIDENCE)
    if passing == "pass":
        policy = replace(policy, passes=lambda verdict: True)
    if passing == "longest":
        policy = replace(policy, keep_policy="longest")
    memory = memory_state(METHOD.recipe())
    said = [
        ManualVerdict("http://kept.example/", ManualKind.KEEP, "", 1),
        ManualVerdict("http://said.example/", ManualKind.COPY, "http://first.example/", 1),
    ]

    def told(verdict: Verdict) -> tuple[object, ...]:
        match = verdict.match
        return (
            *(verdict.outcome, verdict.reason, verdict.kind, verdict.by_hand),
            *((match.url, match.similarity, match.containment, match.shared) if match else ()),
        )

    async with opening(policy=policy) as crawler:
        # The secret decides what sketches say.
        memory.__dict__["hashes"] = crawler.store.hashes
        for store in (memory, crawler.store):
            write_manual_verdicts(store, *said)
        plain = Detector(METHOD, memory, who="test", policy=policy)
        for one in PAGES:
            assert told(await crawler.kept(one)) == told(plain.judge_now(one, sealed=True)), one
        assert crawler.store.pages == memory.pages
        kept = [{one.url: store.evidence(one.id) for one in store.records()} for store in (crawler.store, memory)]
        assert kept[0] == kept[1]
        assert any(one is not None and one.near_miss for one in kept[0].values())
        filed = [sum(len(list(pairs(row))) for row in store.rows(b"k")) for store in (crawler.store, memory)]
        assert filed[0] == filed[1]
        assert check(crawler.store).sound
        assert nobody_is_on_the_way(crawler.store)


def nobody_is_on_the_way(store: RedisStore) -> bool:
    client = client_of(store)
    begin = len(store.kv.link.prefix)
    names = [key[begin:] for key in client.scan_iter(match=store.kv.link.prefix + b"*", count=1000)]
    return not any(name[:1] == b"p" or name == PENDING for name in names)


async def test_a_verdict_takes_two_ways_to_the_server_and_back(opening: Opening) -> None:
    async with opening() as crawler:
        await crawler.kept(page("first"))
        await crawler.kept(page("copy", end="编辑部转载。"))
        for one, outcome in (
            (page("new", 5), Outcome.UNIQUE),
            (page("again", end="转载。"), Outcome.DUPLICATE),
            (page("copy", end="编辑部转载。"), Outcome.DUPLICATE),
            (page("first"), Outcome.UNCHANGED),
            (page("first", 6), Outcome.UPDATED),
        ):
            crawler.ways = 0
            ruling = await crawler.judged(one)
            assert (ruling.verdict.outcome, crawler.ways <= 2) == (outcome, True), (outcome, crawler.ways)
            if ruling.reservation:
                crawler.crawl.release(ruling.reservation)
            await crawler.crawl.finish()
        assert crawler.errors == []


BARE = Page("http://bare.example/", "短", text="太短。", html=77)


@pytest.mark.parametrize(
    ("early", "late", "comes_through", "outcome"),
    [
        (page("first"), page("copy"), True, Outcome.DUPLICATE),
        (page("first"), page("copy"), False, Outcome.UNIQUE),
        (page("first"), page("first", 7), True, Outcome.UPDATED),
        (BARE, BARE, True, Outcome.UNCHANGED),
    ],
)
async def test_a_copy_or_a_version_waits_for_the_page_of_another_crawler(
    opening: Opening, early: Page, late: Page, comes_through: bool, outcome: Outcome
) -> None:
    async with opening() as one, opening() as other:
        first = await one.reserve(early)
        waiting = asyncio.ensure_future(other.kept(late))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        (one.crawl.commit(first, sealed=True) if comes_through else one.crawl.release(first))
        assert (await waiting).outcome is outcome
        assert one.store.pages == (2 if outcome is Outcome.DUPLICATE else 1)
        assert one.errors == []


async def test_a_page_of_a_dead_crawler_goes_with_its_lease(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "lease", 0.4)
    async with opening() as one, opening() as other:
        first = await one.reserve(page("first"))
        place = first.record.id.to_bytes(8, "big") + one.crawl.detector.generation.to_bytes(8, "big")
        async with other.crawl.judgement() as judgement:
            assert not await judgement._is_abandoned(first.record, place), "it has its lease"
        one.store.leases.stop_renewing()  # it is asleep
        ruling = await other.judged(page("copy"))
        assert ruling.verdict.outcome is Outcome.UNIQUE
        one.crawl.commit(first, sealed=True)  # it wakes up
        await one.crawl.finish()
        assert ["others rolled back" in str(error) for error in one.errors] == [True]
        assert ruling.reservation is not None
        other.crawl.commit(ruling.reservation, sealed=True)
        await other.crawl.finish()
        assert [record.url for record in other.store.records()] == ["http://copy.example/"]


async def test_an_outcome_follows_the_commit_that_was_started_before(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening() as ours:
        lost, kept = await ours.reserve(page("lost")), await ours.reserve(page("kept", 1))
        run, late = ours.link.run, iter([0.1, 0.1])  # a commit that must be tried again takes longer

        async def run_late(program: Program) -> Any:
            await asyncio.sleep(next(late, 0.0))
            return await run(program)

        monkeypatch.setattr(ours.link, "run", run_late)
        for reservation in (lost, kept):
            ours.crawl.commit(reservation, sealed=False)
        ours.crawl.roll_back(lost.record.id)
        ours.crawl.seal([kept.record.id])
        await ours.crawl.finish()
        assert ours.errors == []
        assert [record.url for record in ours.store.records()] == [page("kept").url]
        assert list(ours.store.journal.unsealed(ours.crawl.detector.generation)) == []


async def test_a_write_that_others_always_come_before_is_an_error(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening() as one:
        first = await one.reserve(page("first"))
        with monkeypatch.context() as patched:
            patched.setattr(one.store.kv, "raise_for", Mock(side_effect=OvertakenError))
            one.crawl.commit(first, sealed=True)
            await one.crawl.finish()
            with pytest.raises(StoreError, match="others wrote first"):
                one.store.kv.run(partial(put, one.store))
        assert ["others wrote first" in str(error) for error in one.errors] == [True]


async def test_a_crawl_that_was_rolled_back_judges_no_pages(opening: Opening) -> None:
    async with opening() as one:
        await one.kept(page("first"), sealed=False)
        end_leases(one.store)  # it is asleep
        async with opening() as other:
            assert other.store.rolled_back.pages == 1
        with pytest.raises(StoreError, match="others rolled back"):
            await one.judged(page("late", 3))


async def test_nobody_gives_up_a_crawl_that_is_not_heard_of(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "lease", 1.5)
    async with opening() as one, opening() as two, opening() as three:
        await one.judged(page("first"))
        await asyncio.to_thread(one.store.leases.stop_renewing)  # it is killed
        second = asyncio.ensure_future(two.patient(page("second")))
        await asyncio.sleep(0.05)
        third = asyncio.ensure_future(three.patient(page("third")))
        await asyncio.sleep(0.7)
        assert (second.done(), third.done()) == (False, False), "its lease may have been renewed just before"
        ruling = await second
        assert ruling.verdict.outcome is Outcome.UNIQUE
        await asyncio.sleep(0.1)
        assert not third.done(), "it waits anew for the page that has the place now"
        await two.through(ruling)
        assert (await third).verdict.outcome is Outcome.DUPLICATE


async def test_a_page_that_gives_up_a_slow_one_is_waited_for(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Redis, "lease", 1.0)
    async with opening() as one, opening() as two, opening() as three:
        slow = await one.judged(page("first"))
        waiting = [asyncio.ensure_future(crawler.patient(page("copy"), 0.3)) for crawler in (two, three)]
        done, behind = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (ruling,) = (task.result() for task in done)
        assert (ruling.verdict.headline, len(behind)) == ("unjudged (in_flight)", 1)
        await (two if waiting[0] in done else three).through(ruling)
        (last,) = [await task for task in behind]
        assert last.verdict.outcome is Outcome.UNCHANGED, "it has the same URL"
        await one.through(slow)
        assert (await two.judged(page("first"))).verdict.outcome is Outcome.UNCHANGED
        assert (await two.judged(page("copy"))).verdict.outcome is Outcome.UNCHANGED
        assert (one.store.pages, check(one.store).sound) == (2, True)


@pytest.mark.parametrize("slow_comes_first", [True, False])
async def test_a_page_that_gave_up_its_other_version_is_one_page(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, slow_comes_first: bool
) -> None:
    monkeypatch.setattr(Redis, "lease", 1.0)
    async with opening() as one, opening() as two:
        slow = await one.judged(page("first"))
        hasty = await two.patient(page("first", end="编辑部转载。"))
        assert hasty.verdict.headline == "unjudged (in_flight)"
        ends = [(one, slow), (two, hasty)]
        for crawler, ruling in ends if slow_comes_first else ends[::-1]:
            await crawler.through(ruling)
        assert (one.store.pages, check(one.store).sound) == (1, True)


async def test_a_page_that_is_given_up_leaves_its_place(opening: Opening) -> None:
    async with opening() as one, opening() as other:
        await one.judged(page("first"))
        with pytest.raises(asyncio.TimeoutError):
            await other.judged(page("copy"), wait=0.1)
        await other.crawl.finish()
        client = client_of(other.store)
        named = client.scan_iter(match=one.store.kv.link.prefix + b"p*")
        assert len([name for name in named if len(name) == len(one.store.kv.link.prefix) + 9]) == 1


@contextmanager
def lost_answers(link: Link, every: int = 2, then: Callable[[], object] = lambda: None) -> Iterator[None]:
    """The server does what it is told, but the first answer to every second program, or more, does not come."""
    read, seen = link.read_answer, list[Program]()

    def read_answer(program: Program, found: Any) -> Any:
        if program not in seen:
            seen.append(program)
            if len(seen) % every == 1:
                then()
                raise redis.ConnectionError("the way back is broken")
        return read(program, found)

    with patch.object(link, "read_answer", read_answer):
        yield


async def test_what_a_crawl_counts_the_others_know_once_they_have_looked(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page is lost or counted twice, though answers are lost. Copies do not count."""
    monkeypatch.setattr("scrapy_neardup.server.connection._PAUSE", 0.01)

    def counted(crawler: Crawler) -> tuple[int, float]:
        site = crawler.store.on_site("river.example")
        return site.pages(), crawler.store.pages

    async with opening() as one, opening() as other:
        with lost_answers(one.store.kv.link):
            for number in range(3):
                for name in ("page", "copy"):
                    await one.kept(replace(page(f"{name}{number}", number), site="river.example"))
        assert (counted(one), counted(other)) == ((3, 6), (0, 6))
        for crawler in (one, other):
            await crawler.crawl.catch_up()
        assert (counted(one), counted(other)) == ((3, 6), (3, 6))
        assert client_of(one.store).xlen(one.store.kv.link.prefix + STREAM) == 6
        assert nobody_is_on_the_way(one.store)
        assert check(one.store).sound


@pytest.mark.parametrize("is_own", [False, True])
async def test_a_page_whose_registration_got_no_answer_goes_behind_those_that_came_since(
    opening: Opening, is_own: bool
) -> None:
    """Else each of two copies would wait for the other, whether of another crawl or of its own."""
    async with opening() as one, opening() as two:
        other = one if is_own else two
        late = list[asyncio.Future[Verdict]]()
        with lost_answers(one.store.kv.link, 99, lambda: late.append(asyncio.ensure_future(other.kept(page("late"))))):
            found = (await one.kept(page("early"))).outcome, (await late[0]).outcome
        assert found == ((Outcome.UNIQUE, Outcome.DUPLICATE) if is_own else (Outcome.DUPLICATE, Outcome.UNIQUE))


async def test_pages_of_others_that_many_wait_for_are_asked_for_at_once(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opening() as one, opening() as other:
        first = [await one.reserve(page(f"first{number}", number)) for number in range(1, 6)]
        waiting = [asyncio.ensure_future(other.judged(page(f"copy{number}", number))) for number in range(1, 6)]
        await asyncio.sleep(0.4)
        with monkeypatch.context() as patched:
            sent = count_sent(patched)
            await asyncio.sleep(0.7)
        assert 1 <= len(sent) <= 5, "each of five would have asked as often"
        assert max(sent) == 5
        for reservation in first:
            one.crawl.release(reservation)
        verdicts = [ruling.verdict.outcome for ruling in await asyncio.gather(*waiting)]
        assert verdicts == [Outcome.UNIQUE] * 5


async def test_a_drop_fetches_no_other_and_upkeep_trims_them(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "_MOST", 3)
    monkeypatch.setattr(lists, "_STEP", 2)
    async with opening(policy=Policy(keep=Keep.EVIDENCE)) as crawler:
        with monkeypatch.context() as patched:
            patched.setattr(crawler.store.kv, "fetch_all", None)
            await crawler.kept(page("first"))
            for number in range(7):
                assert (await crawler.kept(page(f"copy{number}"))).outcome is Outcome.DUPLICATE
        assert crawler.store.kv.count(b"d") == 7
        before = list(crawler.store.rows(b"d"))
        assert lists.trim(crawler.store, 7) == 3
        assert list(crawler.store.rows(b"d")) == before[4:]


def test_where_a_server_is_waited_for_so_it_is_with_what_a_thread_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the crawl would take the state for lost."""
    told: list[str] = []

    def patience(why: str) -> None:
        told.append("gone" if why else "back")
        if why:
            server.start()

    async def work() -> None:
        async with Opening(server, patience)() as crawler:
            await crawler.kept(page("first"))
            server.stop()
            assert await crawler.crawl.run(lambda: list(crawler.store.rows(b"r")), RemoteTransaction()) != []
            assert crawler.errors == []

    with running("--appendonly", "yes", "--appendfsync", "always") as server:
        asyncio.run(work())
    assert told == ["gone", "back"]


async def test_a_version_whose_answer_was_lost_does_not_replace_one_that_came_since(opening: Opening) -> None:
    """The program that filed it is sent again, and does nothing."""
    async with opening() as one, opening() as other:
        await one.kept(page("first"))
        second = await one.reserve(page("first", end="后来又添了一句话，说的是别的事情。"))
        late = list[asyncio.Future[Verdict]]()
        third = page("first", 4)
        with lost_answers(
            one.store.kv.link, 99, lambda: late.append(asyncio.ensure_future(other.kept(third, sealed=False)))
        ):
            one.crawl.commit(second, sealed=False)
            await one.crawl.finish()
        await late[0]
        newest = other.store.find(second.record.url)
        assert newest is not None
        assert newest.id > second.record.id
        assert check(one.store).sound
