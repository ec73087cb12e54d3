"""Items, feeds and kills in any order, against a model: each article counts once, none is lost, and what is safe was
delivered.

Detector, delivery and store are the real ones; Scrapy's engine and its exporter are played here.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from scrapy import Spider

from scrapy_neardup.crawl.delivery import Delivery, End
from scrapy_neardup.crawl.visits import Awaited, JudgedPage
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.kv.memory import SortedRows
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.pages import PageStore
from tests.build import article_page, article_url, make_detector, run_machine
from tests.crawl.parts import Exporter, Slot, notes, store
from tests.faults import lasting_state

FAMILY = VERSION = st.integers(0, 2)
ENDS: st.SearchStrategy[End] = st.sampled_from(["scraped", "scraped", "dropped", "failed"])


@dataclass(eq=False)
class Passed:
    """The model's view of a page that passed: what became of its items so far, and which feeds were open then.

    ``kept``: one came through while no other was on its way, and none was lost by an error.
    """

    url: str
    page: JudgedPage
    is_original: bool
    on_their_way: int = 0
    scraped: bool = False
    failed: bool = False
    kept: bool = False
    feeds: set[Slot] = field(default_factory=set)


def break_off(item: object) -> None:
    raise TypeError(f"{item} cannot be serialised")


def originals_of(store: PageStore) -> set[str]:
    return {record.url for record in store.records() if record.is_original}


def delivered_to(store: PageStore) -> set[str]:
    """The pages whose items came through, as the state knows them."""
    return originals_of(store) | {record.url for record in store.records() if record.delivered}


class Crawls(RuleBasedStateMachine):
    """One crawl after the other on one state; of each family of near-duplicates three pages may come at any time.

    Copies are dropped, or pass and are to be delivered as well.
    """

    pages = Bundle("pages")

    @initialize(feeds=st.integers(0, 2), batch=st.integers(1, 3), drops=st.booleans())
    def begin(self, feeds: int, batch: int, drops: bool) -> None:
        self.drops = drops
        self.rows = SortedRows[bytes]()
        self.many, self.batch = feeds, batch
        #: The pages that are sealed, and those whose items are in a feed that was stored.
        self.safe: set[str] = set()
        self.delivered: set[str] = set()
        self.next_crawl()

    def next_crawl(self) -> None:
        self.crawl: dict[str, Passed] = {}
        self.store = lasting_state(self.rows)
        self.detector = make_detector(self.store, drops=self.drops)
        slots = [Slot(), Slot(accepts=lambda name: not str(name).startswith("http://2."))]
        self.exporter = Exporter(slots[: self.many], self.batch)
        self.stored: set[Slot] = set()
        self.notes = notes()
        self.delivery = Delivery(self.detector, self.notes, self.exporter.as_scrapys())

    # Items.

    @rule(target=pages, family=FAMILY, version=VERSION)
    def a_page_arrives(self, family: int, version: int) -> object:
        """The first item of a page reaches our pipeline; if the page has to wait, it is given up at once."""
        name, relatives = article_url(family, version), {article_url(family, one) for one in range(3)}
        counting, coming = relatives & self.counting(), set(relatives & self.crawl.keys())
        ruling = self.detector.check(article_page(family, version))
        if isinstance(ruling, Blocked):
            assert coming - counting, f"{name} waits, and none of its family is on its way"
        elif ruling.reservation is None:
            assert counting, f"{name} was dropped ({ruling.verdict.headline}), and none of its family counts"
            assert (ruling.verdict.outcome is Outcome.UNCHANGED) is (name in counting)
            assert self.drops or name in counting
        else:
            assert name not in counting | coming, f"{name} passes twice"
            originals = counting & originals_of(self.store)
            if ruling.verdict.outcome is Outcome.DUPLICATE:
                assert not self.drops
                assert ruling.verdict.match
                assert ruling.verdict.match.url in originals
            else:
                assert not originals, f"{name} passes for itself beside {originals}"
                own = {one for one in coming if self.crawl[one].is_original}
                assert not own, f"{name} passes for itself beside {own}"
            self.crawl[name] = passed = Passed(
                name, JudgedPage(ruling.verdict, ruling.reservation), ruling.reservation.record.is_original
            )
            self.another_item_arrives(passed)
            return passed
        return multiple()

    @rule(passed=pages)
    def another_item_arrives(self, passed: Passed) -> None:
        """Of the same response, so it shares the case; unless that is lost, when its page would be judged anew."""
        if self.crawl.get(passed.url) is passed:
            passed.page.in_pipelines += 1
            passed.on_their_way += 1

    @rule(passed=pages, end=ENDS, broken=st.integers(0, 5).map(lambda number: number == 0))
    def an_item_ends(self, passed: Passed, end: End, broken: bool) -> None:
        """``broken``: the first feed cannot write it."""
        if self.crawl.get(passed.url) is not passed or not passed.on_their_way:
            return
        before = {slot: slot.itemcount for slot in self.exporter.slots}
        feeds: Set[Awaited] = frozenset()
        if end == "scraped":
            if broken and before:
                self.exporter.slots[0].writes = break_off
            feeds, is_written = self.delivery.export(passed.url, Spider("any"))
            for slot in self.exporter.slots[:1]:
                slot.writes = lambda item: None
            end = "scraped" if is_written else "failed"
        self.delivery.note_end(passed.page, end, feeds)
        passed.on_their_way -= 1
        passed.failed |= end == "failed"
        passed.scraped |= end == "scraped"
        passed.feeds |= {slot for slot, count in before.items() if slot.itemcount > count}
        if passed.on_their_way:
            return
        if passed.failed or not passed.scraped:
            del self.crawl[passed.url]
            self.safe.discard(passed.url)
        else:
            passed.kept = True

    # Feeds.

    @rule(data=st.data())
    def a_batch_is_stored(self, data: st.DataObject) -> None:
        if full := self.exporter.full:
            self.is_stored(full.pop(data.draw(st.integers(0, len(full) - 1))), fails=data.draw(st.booleans()))

    def is_stored(self, slot: Slot, *, fails: bool) -> None:
        if fails:
            slot.fails()
            with pytest.raises(OSError, match="no room"):
                store(slot)
            return
        store(slot)
        self.stored.add(slot)
        self.delivered.update(slot.items)

    # Crawls.

    @rule()
    def the_crawl_is_killed(self) -> None:
        self.next_crawl()

    @rule(fails=st.lists(st.booleans(), min_size=2, max_size=2))
    def the_crawl_ends(self, fails: list[bool]) -> None:
        for passed in list(self.crawl.values()):
            while passed.on_their_way:
                self.an_item_ends(passed, "dropped", broken=False)
        while self.exporter.full:
            self.is_stored(self.exporter.full.pop(), fails=fails[0])
        for slot, one_fails in zip(self.exporter.slots, fails, strict=False):
            if slot.itemcount:
                self.is_stored(slot, fails=one_fails)
        self.what_counts_is_in_the_state()
        unsealed = sum(one.url not in self.safe for one in self.crawl.values())
        assert self.detector.end() == unsealed
        self.store.close()
        self.next_crawl()
        assert self.store.rolled_back.pages == unsealed

    # What must hold.

    def counting(self) -> set[str]:
        return self.safe | {one.url for one in self.crawl.values() if one.kept}

    @invariant()
    def what_counts_is_in_the_state(self) -> None:
        self.safe |= {one.url for one in self.crawl.values() if one.kept and one.feeds <= self.stored}
        assert not self.notes.state_failed
        assert delivered_to(self.store) == self.counting()
        originals = originals_of(self.store)
        families = [name.rpartition("/")[2] for name in originals]
        assert len(families) == len(set(families)), f"kept twice: {originals}"

    @invariant()
    def what_is_safe_was_delivered(self) -> None:
        assert not self.many or self.safe <= self.delivered

    @invariant()
    def what_was_killed_leaves_what_is_safe(self) -> None:
        rows = SortedRows(self.rows)
        again = lasting_state(rows)
        assert delivered_to(again) == self.safe


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("examples", "steps"),
    [(10, 30), pytest.param(50, 40, marks=pytest.mark.slow), pytest.param(20_000, 50, marks=pytest.mark.soak)],
)
def test_in_any_order_each_article_counts_once_and_what_is_safe_was_delivered(examples: int, steps: int) -> None:
    run_machine(Crawls, examples, steps)
