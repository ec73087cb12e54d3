"""Crawls in any order on one state, against a model that knows of pages alone, and all stores against each other.

Two crawls of one process are under way at any time. Their pages are unique, copies, better copies, variants, excerpts,
updated, unchanged or too short; their items come through, are lost, keep others waiting; feeds are stored, crawls end
or are killed, pages are withdrawn, forgotten, expire, and are kept or called copies by hand. The clock is moved by the
test, so all stores give the same ids.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked, Reservation, Ruled
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, remove_manual_verdicts, write_manual_verdicts
from scrapy_neardup.kv.memory import SortedRows
from scrapy_neardup.maintenance.scan import of_host, select_pages, statistics
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Outcome, Page, Verdict
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import STORES
from tests.build import make_detector, pairs, run_machine
from tests.faults import lasting_state
from tests.judge.model import (
    URLS,
    Expected,
    Known,
    OnItsWay,
    Policy,
    State,
    Text,
    Version,
    compared,
    copies_of_each_other,
)
from tests.state.clock import HOUR, Clock
from tests.state.model import small_tables
from tests.state.test_contract import copy_as_killed

TEXTS = st.builds(Text, st.integers(0, 1), st.sampled_from(Version))
POLICIES = st.builds(
    Policy,
    st.booleans(),
    st.sampled_from([frozenset[Kind](), frozenset([Kind.EXCERPT])]),
    st.sampled_from(["first", "longest", ("third.example", "second.example"), ("fourth.example",)]),
)
CRAWL = st.integers(0, 1)
ITEMS = st.sampled_from(["through", "sealed", "coming"])
#: One TTL for all, as a hand that was told of another one would have another place to wait at.
TTL = 24 * HOUR
BOUNDS = st.builds(Bounds, st.sampled_from([None, TTL]), st.sampled_from([None, 1, 3, 5]))
#: What has to be told alike by all stores: outcome, reason, kind, id, and of the match id, URL and similarity.
Told = tuple[object, ...]


class Side:
    """One store with the detectors of its crawls; memory outlives a kill, too."""

    def __init__(self, scheme: str, root: Path) -> None:
        self.scheme, self.root = scheme, root
        self.files = SortedRows[bytes]()
        self.clock = Clock()
        self.detectors: dict[int, Detector] = {}
        self.coming: dict[str, Reservation] = {}
        self.woken: list[tuple[int, str, Text]] = []
        self.open()

    def open(self) -> None:
        with pytest.MonkeyPatch.context() as patch:  # what is taken back at the opening is seen at that time
            patch.setattr("scrapy_neardup.state.records.Clock.now", lambda _: self.clock.now)
            if self.scheme == "memory":
                self.store: PageStore = lasting_state(self.files)
            else:
                self.root.mkdir(exist_ok=True)
                self.store = open_at(STORES[self.scheme], str(self.root / "state"), make_method("cascade", {}).recipe())
        self.clock.govern(self.store)

    def close(self) -> None:
        self.detectors, self.coming = {}, {}
        self.store.close()

    def kill(self) -> None:
        """Go on with what is there now, and not with what a close would make of it."""
        copy = self.root.with_name(self.root.name + "-copy")
        if self.scheme == "memory":
            self.files = SortedRows(self.files)
        else:
            copy_as_killed(self.root, copy)
        self.close()
        if self.scheme != "memory":
            shutil.rmtree(self.root)
            copy.rename(self.root)


def told(ruling: Ruled | Blocked) -> Told:
    if isinstance(ruling, Blocked):
        return "waits", ruling.by.record.url
    verdict, match = ruling.verdict, ruling.verdict.match
    about = (match.id, match.url, match.similarity, match.containment, match.shared) if match else ()
    return verdict.outcome, verdict.reason, verdict.kind, verdict.id, *about


@dataclass
class Crawl:
    """A crawl that is under way: by what it is known, what it makes of copies, and the pages it committed."""

    generation: int
    policy: Policy
    keep: Keep
    committed: list[int] = field(default_factory=list)


class Crawls(RuleBasedStateMachine):
    """What two crawls do with a state, in each of the stores at once."""

    def __init__(self, schemes: Sequence[str], root: Path, seen: Counter[str]) -> None:
        super().__init__()
        self.root, self.seen = root, seen
        root.mkdir()
        self.sides = [Side(one, root / one) for one in schemes]
        self.model = State()
        #: By URL the page that is there for good, whatever is killed: told of apart from the model.
        self.safe: dict[str, int] = {}
        #: How many pages were dropped by crawls that note it.
        self.drops = 0
        self.names = count()
        self.crawls: dict[int, Crawl] = {}
        self.bounds = Bounds()
        self.begin_two()

    def alike(self, act: Callable[[Side], object]) -> object:
        results = [act(side) for side in self.sides]
        assert all(result == results[0] for result in results), results
        return results[0]

    # Crawls.

    def begin(self, at: int, policy: Policy, keep: Keep) -> None:
        who = f"spider {next(self.names)}"

        def begin(side: Side) -> int:
            side.detectors[at] = make_detector(
                side.store, who=who, drops=policy.drops, keep=keep, policy=policy.keep, also_copies=policy.also_copies
            )
            return side.detectors[at].generation

        generation = self.alike(begin)
        assert isinstance(generation, int)
        self.crawls[at] = Crawl(generation, policy, keep)
        self.model.crawls[generation] = who

    def begin_two(self) -> None:
        self.begin(0, Policy(), Keep.EVIDENCE)
        self.begin(1, Policy(drops=False, keep=("second.example",)), Keep.NOTHING)

    @rule(at=CRAWL, policy=POLICIES, keep=st.sampled_from(Keep))
    def one_crawl_ends_and_another_begins(self, at: int, policy: Policy, keep: Keep) -> None:
        self.end(at)
        self.begin(at, policy, keep)

    def end(self, at: int) -> None:
        """Items that have not arrived never will; what is not sealed counts until the state is opened again."""
        crawl = self.crawls.pop(at)
        for one in [one for one in self.model.coming.values() if one.crawl == at]:
            self.settle(one, through=False, sealed=False)
        left = self.alike(lambda side: side.detectors.pop(at).end())
        assert left == len(self.model.unsealed_of(crawl.generation))
        if not left:
            del self.model.crawls[crawl.generation]

    # Pages.

    @rule(at=CRAWL, pages=st.lists(st.tuples(st.sampled_from(URLS), TEXTS, ITEMS), min_size=1, max_size=5))
    def pages_come(self, at: int, pages: list[tuple[str, Text, str]]) -> None:
        for url, text, item in pages:
            self.comes_at(at, url, text, item)
            self.says_what_the_model_says()

    def comes_at(self, at: int, url: str, text: Text, item: str) -> None:
        if self.judge(at, url, text) and item != "coming":
            self.settle(self.model.coming[url], through=True, sealed=item == "sealed")

    @precondition(lambda self: self.model.pages)
    @rule(at=CRAWL, which=st.integers(0, 9), text=TEXTS, change=st.sampled_from(["nothing", "text", "url"]), item=ITEMS)
    def a_page_comes_again(self, at: int, which: int, text: Text, change: str, item: str) -> None:
        """The same text at the same URL, another one there, or one of its family elsewhere."""
        known = list(self.model.pages.values())[which % len(self.model.pages)]
        url = URLS[which % len(URLS)] if change == "url" else known.url
        family = Text(known.text.family, text.version)
        self.comes_at(at, url, {"nothing": known.text, "text": text, "url": family}[change], item)

    def judge(self, at: int, url: str, text: Text) -> bool:
        crawl = self.crawls[at]
        self.expire(1)
        expected = self.model.judge(url, text, crawl.policy)
        rulings = [self.check(side.detectors[at], text.page(url), knows_bytes=at == 0) for side in self.sides]
        found = {told(ruling) for ruling in rulings}
        assert len(found) == 1, found
        for side, ruling in zip(self.sides, rulings, strict=True):
            if isinstance(ruling, Ruled) and ruling.reservation is not None:
                side.coming[url] = ruling.reservation
        ruling = rulings[0]
        if isinstance(ruling, Blocked):
            by = self.waits_for(url, text, crawl.policy, expected)
            assert ruling.by.record.url in by, f"{expected} and not waiting for {ruling.by.record.url}"
            self.wait((at, url, text), ruling.by.record.url)
            return False
        verdict = ruling.verdict
        self.seen[verdict.headline] += 1
        self.seen["by hand"] += verdict.by_hand
        if expected.originals and verdict.outcome in (Outcome.UNIQUE, Outcome.UPDATED) and not verdict.group:
            return self.stays_an_original(at, url, text, ruling, expected)
        if expected.originals:
            return self.follow(at, url, text, verdict, expected)
        assert verdict.outcome is expected.outcome, f"{verdict.sentence()}, and not {expected}"
        assert (ruling.reservation is not None) is expected.passes
        if expected.id:
            assert verdict.id == expected.id
            self.model.see(expected.id)
        if expected.passes:
            assert ruling.reservation is not None
            self.comes(at, Known(ruling.reservation.record.id, url, text, ruling.reservation.record.id))
        return expected.passes

    def check(self, detector: Detector, page: Page, *, knows_bytes: bool) -> Ruled | Blocked:
        """One of the two crawls first asks whether the bytes of the page are known, as a crawl does."""
        unchanged = detector.check_bytes(page.url, page.body) if knows_bytes else None
        self.seen["same bytes"] += unchanged is not None
        return unchanged or detector.check(page)

    def stays_an_original(self, at: int, url: str, text: Text, ruling: Ruled, expected: Expected) -> bool:
        """All that a delivered page copies came after it, or it is much longer than what it copies."""
        policy = self.crawls[at].policy
        assert Outcome.UNIQUE in {
            self.model.outcome_of_copy(url, text, group, policy) for group, _ in expected.originals
        }
        assert ruling.reservation is not None
        self.seen["as original"] += 1
        id = ruling.reservation.record.id
        self.comes(at, Known(id, url, text, id, is_kept_as_original=True))
        return True

    def waits_for(self, url: str, text: Text, policy: Policy, expected: Expected) -> frozenset[str]:
        """The URLs of the pages for which one may wait: that it may copy, or that are to lead the group before it."""
        by = expected.by
        for group, _ in expected.originals:
            if self.model.outcome_of_copy(url, text, group, policy) in (Outcome.BETTER, Outcome.UPDATED):
                by |= self.model.rivals(group)
        return by

    def follow(self, at: int, url: str, text: Text, verdict: Verdict, expected: Expected) -> bool:
        """A copy was found: it is one of a page that is there, and is filed under the group of that, or leads it.

        Returns whether it passes.
        """
        assert verdict.match
        group = verdict.group or verdict.match.id
        variant = {is_variant for id, is_variant in expected.originals if id == group}
        assert variant, f"{verdict.sentence()}, and not {expected}"
        assert verdict.by_hand is expected.by_hand
        policy = self.crawls[at].policy
        outcome = Outcome.DUPLICATE if verdict.by_hand else self.model.outcome_of_copy(url, text, group, policy)
        leads = outcome is not Outcome.DUPLICATE
        self.seen[f"as {outcome.value}"] += 1
        assert verdict.outcome is outcome, f"{verdict.sentence()}, and not {outcome}"
        assert int(verdict.similar_id, 16) == group
        if outcome is not Outcome.UPDATED:
            assert verdict.match.url != url, "a page is never its own duplicate"
            standing = self.model.standing(group, besides=url)
            assert standing
            assert standing.url == verdict.match.url
        passes = expected.passes or leads
        self.drops += not passes and self.crawls[at].keep is not Keep.NOTHING
        dropped = None if passes or verdict.by_hand else (text, policy.also_copies, verdict.kind)
        kept = 0 if passes else self.model.keeps_its_place(url, group)
        if kept:
            assert verdict.id == kept
            before = self.model.pages[kept]
            if dropped and not (before.is_original or before.delivered):
                self.model.pages[kept] = replace(before, dropped=dropped)
            self.model.see(kept, group)
            return False
        assert (url in self.sides[0].coming) is passes
        copy = self.sides[0].coming[url].record if passes else self.sides[0].store.record(verdict.id)
        assert copy is not None
        if leads:
            assert not self.model.rivals(group)
        else:
            assert bool(copy.keys) in variant
        known = Known(verdict.id, url, text, group, bool(copy.keys), passes, leads, dropped)
        if passes:
            self.comes(at, known)
        else:
            self.model.add(known, 0, self.model.newest.get(url, 0))
            self.model.see(known.id)
            self.safe[url] = known.id
        return passes

    def comes(self, at: int, known: Known) -> None:
        before = self.model.find(known.url)
        if before is not None and before.is_delivered:
            known = replace(known, since=before.original if before.leads and known.is_original else before.age)
        self.model.coming[known.url] = OnItsWay(known, at, self.model.newest.get(known.url, 0))

    def wait(self, page: tuple[int, str, Text], by: str) -> None:
        self.seen["waits"] += 1
        self.model.coming[by].waiting.append(page)
        for side in self.sides:
            side.coming[by].when_settled(lambda woken=side.woken: woken.append(page))  # type: ignore[misc]

    @precondition(lambda self: self.model.coming)
    @rule(which=st.integers(0, 4), through=st.booleans(), sealed=st.booleans())
    def an_item_arrives_or_is_lost(self, which: int, through: bool, sealed: bool) -> None:
        coming = list(self.model.coming.values())
        self.settle(coming[which % len(coming)], through=through, sealed=sealed)

    def settle(self, one: OnItsWay, *, through: bool, sealed: bool) -> None:
        """The pages that waited for it ask again, unless their crawl is over."""
        known = one.known
        for side in self.sides:
            reservation = side.coming.pop(known.url)
            if through:
                side.detectors[one.crawl].commit(reservation, sealed=sealed)
            else:
                side.detectors[one.crawl].release(reservation)
        del self.model.coming[known.url]
        if through:
            crawl = self.crawls[one.crawl]
            replaces = one.replaces if one.replaces in self.model.pages else self.model.newest.get(known.url, 0)
            self.model.add(known, 0 if sealed else crawl.generation, replaces)
            self.model.see(known.id)
            crawl.committed.append(known.id)
            if sealed:
                self.safe[known.url] = known.id
        for side in self.sides:
            assert side.woken == one.waiting
            side.woken.clear()
        for at, url, text in one.waiting:
            if at in self.crawls:
                self.judge(at, url, text)

    @rule(at=CRAWL, which=st.integers(0, 5))
    def a_page_is_taken_back(self, at: int, which: int) -> None:
        """One that this crawl committed, sealed or not; taken back once more it stays gone."""
        committed = self.crawls[at].committed
        if which < len(committed):
            id = committed[-1 - which]
            for side in self.sides:
                side.detectors[at].roll_back(id)
            self.model.roll_back(id)
            self.safe = {url: safe for url, safe in self.safe.items() if safe != id}

    @rule(at=CRAWL, of=st.lists(st.booleans(), max_size=5))
    def a_feed_is_stored(self, at: int, of: list[bool]) -> None:
        """It holds those of the crawl's pages that ``of`` says; all without it."""
        crawl = self.crawls[at]
        unsealed = self.model.unsealed_of(crawl.generation)
        ids = [id for id, is_stored in zip(unsealed, of, strict=False) if is_stored] if of else unsealed
        for side in self.sides:
            side.detectors[at].seal(ids if of else None)
        for id in ids:
            if id in self.model.pages:
                url = self.model.pages[id].url
                self.safe[url] = max(id, self.safe.get(url, 0))
            self.model.seal(crawl.generation, [id])

    # Expiry.

    @rule(hours=st.sampled_from([1, 10, 30]))
    def time_passes(self, hours: int) -> None:
        self.model.now += hours * HOUR
        for side in self.sides:
            side.clock.now = self.model.now

    @rule(bounds=BOUNDS)
    def pages_expire(self, bounds: Bounds) -> None:
        """From now on within these bounds; as many steps are taken as come round once."""
        self.bounds = bounds
        self.expire(25)
        free = [self.model.pages[id] for id in self.model.free()]
        overdue = self.model.now - TTL * 17 / 16 - 1
        assert not bounds.ttl or not [page for page in free if self.model.sights[page.url] < overdue]
        assert not free or not bounds.exceeded(len(self.model.pages))

    def expire(self, steps: int) -> None:
        """What goes may go: it was not seen for long, or was too much, and then older than what stays."""
        model, bounds, was_free = self.model, self.bounds, self.model.free()
        if bounds == Bounds():
            return
        self.alike(lambda side: [side.store.expire(bounds) for _ in range(steps)])
        left = {record.id for record in self.sides[0].store.records()}
        gone = model.pages.keys() - left
        assert gone <= was_free
        assert left <= model.pages.keys()
        surplus = {id for id in gone if not bounds.ttl or model.seen(id) >= model.now - bounds.ttl}
        assert not surplus or len(left) >= (bounds.max_pages or 0)
        assert not surplus or bounds.max_pages
        seen_once = [id for id in was_free & left if model.seen(id) <= id / 1e9 + 60]
        assert not [id for id in surplus if any(one < id and model.seen(one) < model.seen(id) for one in seen_once)]
        self.seen["expired"] += len(gone)
        for id in gone:
            model.remove(id)
        self.safe = {url: safe for url, safe in self.safe.items() if safe not in gone}

    # States.

    @rule(killed=st.booleans())
    def the_process_is_killed_or_closes_all(self, killed: bool) -> None:
        if killed:
            for side in self.sides:
                side.kill()
            self.again()
        else:
            self.close_and_open()
        self.begin_two()

    @rule(url=st.sampled_from(URLS))
    def a_site_is_forgotten(self, url: str) -> None:
        """While no crawl is under way; with its originals go their copies."""
        self.close_and_open()
        host = of_host(url.removeprefix("http://").rstrip("/"))
        ids = [id for id, page in self.model.pages.items() if page.url == url]
        ids = sorted({*ids, *self.model.copies_of(ids)})
        for side in self.sides:
            forgetting, _ = select_pages(side.store, host)
            assert sorted(forgetting) == ids
            assert side.store.forget(forgetting) == len(ids)
        for id in ids:
            self.model.remove(id)
        self.safe = {url: safe for url, safe in self.safe.items() if safe not in ids}
        self.says_what_the_model_says()
        self.is_sound()
        self.begin_two()

    @rule(url=st.sampled_from(URLS), said=st.sampled_from([*ManualKind, None]), other=st.sampled_from(URLS))
    def somebody_judges_a_page(self, url: str, said: ManualKind | None, other: str) -> None:
        """By hand, while no crawl is under way; or takes it back."""
        self.close_and_open()
        for side in self.sides:
            if said is None:
                remove_manual_verdicts(side.store, url)
            else:
                write_manual_verdicts(side.store, ManualVerdict(url, said, other, 1))
        self.model.said.pop(url, None)
        if said is not None:
            self.model.said[url] = said, other
        if said is ManualKind.KEEP:
            self.model.kept.add(url)
        self.is_sound()
        self.begin_two()

    def close_and_open(self) -> None:
        for at in list(self.crawls):
            self.end(at)
        for side in self.sides:
            side.close()
        self.again()

    def again(self) -> None:
        """What is there for good is there, and nothing else."""
        self.crawls.clear()
        self.model.coming.clear()
        taken_back = self.model.take_back()
        for side in self.sides:
            side.woken.clear()
            side.open()
            assert side.store.rolled_back == taken_back
            there = {record.url: record.id for record in side.store.records()}
            assert there == self.safe
            assert side.store.pages == len(there)
        self.says_what_the_model_says()
        self.is_sound()

    def is_sound(self) -> None:
        lost = sum(self.model.standing(page.original) is None for page in self.model.pages.values())
        for side in self.sides:
            found = check(side.store)
            assert found.sound, found
            assert found.pages == len(self.model.pages)
            assert statistics(side.store).copies_without_original == lost

    # What must hold.

    @invariant()
    def says_what_the_model_says(self) -> None:
        pages = self.model.pages
        filed = sum(len(page.keys) for page in pages.values())
        for side in self.sides:
            store = side.store
            assert store.pages == len(pages)
            records = list(store.records())
            assert [record.id for record in records] == sorted(pages)
            for record in records:
                page = pages[record.id]
                assert (record.url, record.original, record.delivered) == (page.url, page.original, page.delivered)
                assert (record.is_original, record.keys, record.sketch) == (page.is_original, page.keys, page.sketch)
                assert bool(record.dropped) is (page.dropped is not None)
            newest = {url: found.id for url in URLS if (found := store.find(url))}
            assert newest == self.model.newest
            for url, id in newest.items():  # a variant is also seen in the copies of it, which the model cannot tell
                seen = store.last_seen(url)
                assert seen == self.model.sights[url] or (pages[id].is_variant and seen > self.model.sights[url])
                self.model.sights[url] = seen
            assert sum(1 for row in store.rows(b"k") for _ in pairs(row)) == filed
            assert {int.from_bytes(key[1:], "big") for key, _ in store.rows(b"e")} <= pages.keys()
            assert sum(1 for _ in store.rows(b"j")) == len(self.model.unsealed)
            assert sum(1 for _ in store.rows(b"d")) == (self.drops if store.is_persistent else 0)

    @invariant()
    def what_is_safe_is_there(self) -> None:
        """Until a later version of its URL is sealed in its place."""
        assert set(self.safe.values()) <= self.model.pages.keys()

    @invariant()
    def copies_are_of_another_url_and_of_originals(self) -> None:
        """But for an earlier version of the same page, until it goes."""
        pages = self.model.pages
        for page in pages.values():
            original = pages.get(page.original)
            if original is not None and original is not page:
                assert original.is_original
                assert original.url != page.url or self.model.newest[page.url] != original.id

    @invariant()
    def each_article_counts_once(self) -> None:
        """But for those that somebody wants to be kept."""
        found = copies_of_each_other(self.model.pages.values())
        assert not {pair for pair in found if self.model.kept.isdisjoint(pair)}

    def teardown(self) -> None:
        for side in self.sides:
            side.close()
        shutil.rmtree(self.root)


def walk(schemes: Sequence[str], directory: Path, examples: int) -> Counter[str]:
    """Returns how often each verdict came."""
    if "leveldb" in schemes and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed, so there is no LevelDB")
    number, seen = count(), Counter[str]()
    made: Callable[[], Crawls] = lambda: Crawls(schemes, directory / str(next(number)), seen)  # noqa: E731
    with small_tables():
        # What random runs find is found by the long ones.
        run_machine(made, examples, 40, derandomize=examples < 100)
    assert next(number) >= examples
    return seen


def test_the_texts_are_what_they_are_called() -> None:
    for family in [0, 1]:
        first, edited, variant, further, excerpt = (Text(family, version) for version in list(Version)[:5])
        assert compared(edited, first).certain, family
        assert compared(variant, first).duplicate, family
        assert compared(variant, first).similarity < 0.9, family
        assert compared(further, variant).certain, family
        assert compared(further, variant).similarity < 0.9, family
        assert not compared(further, first).duplicate, family
        assert compared(excerpt, first).kind is Kind.EXCERPT, family
        assert compared(Text(1 - family, Version.FIRST), first).kind is None


def test_crawls_in_memory_do_what_the_model_does(tmp_path: Path) -> None:
    seen = walk(["memory"], tmp_path, 8)
    assert min(seen["unique"], seen["same bytes"]) > 0


@pytest.mark.slow
def test_crawls_in_any_order_leave_and_say_what_the_model_does_in_all_stores(tmp_path: Path) -> None:
    seen = walk([scheme for scheme in STORES if scheme != "leveldb" or find_spec("plyvel")], tmp_path, 20)
    # Each version has another sentence.
    kinds = {outcome.value for outcome in Outcome if outcome is not Outcome.MINOR_UPDATE}
    assert {"expired", *kinds} <= {headline.split()[0] for headline in seen}, seen
    assert min(seen["as duplicate"], seen["as better"], seen["by hand"]) > 0, seen


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
@pytest.mark.parametrize("scheme", STORES)
def test_crawls_in_a_great_many_orders_leave_and_say_what_the_model_does(scheme: str, tmp_path: Path) -> None:
    """An hour for each store, where its files are in memory."""
    seen = Counter[str]()
    for part in range(20):  # what Hypothesis holds of its runs grows with their number
        (tmp_path / str(part)).mkdir()
        seen += walk([scheme], tmp_path / str(part), 1000)
    assert {"as duplicate", "as better", "as updated", "as original"} <= seen.keys(), seen
