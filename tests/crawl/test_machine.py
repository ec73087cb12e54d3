"""Items, feeds and kills in any order, against a model: each article counts once, none is lost, and what is safe was
delivered.

Detector, delivery and store are the real ones; Scrapy's engine and its exporter are played here.
"""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import dataclass, field

import pytest
from scrapy import Spider

from scrapy_neardup.crawl.delivery import Delivery, End
from scrapy_neardup.crawl.visits import Awaited, JudgedPage
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.kv.memory import SortedRows
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.pages import PageStore
from tests.build import article_page, article_url, make_detector
from tests.crawl.parts import Exporter, Slot, notes, store
from tests.faults import lasting_state

ENDS: tuple[End, ...] = ("scraped", "scraped", "scraped", "dropped", "failed")


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


class Crawls:
    """One crawl after the other on one state; of each family of near-duplicates three pages may come at any time.

    Copies are dropped, or pass and are to be delivered as well.
    """

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.drops, self.many, self.batch = chance.random() < 0.7, chance.randrange(3), chance.randrange(1, 4)
        self.rows = SortedRows[bytes]()
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

    def step(self) -> None:
        """Do any of what may happen."""
        running = [one for one in self.crawl.values() if one.on_their_way]
        does = self.chance.choices(
            ["page", "item", "end", "store", "kill", "close"], [8, 2 * bool(self.crawl), 9 * bool(running), 4, 0.3, 0.3]
        )[0]
        if does == "page":
            self.page_arrives(self.chance.randrange(3), self.chance.randrange(3))
        elif does == "item":
            self.item_arrives(self.chance.choice([*self.crawl.values()]))
        elif does == "end":
            self.item_ends(self.chance.choice(running), self.chance.choice(ENDS), broken=self.chance.random() < 0.1)
        elif does == "store" and (full := self.exporter.full):
            self.is_stored(full.pop(self.chance.randrange(len(full))), fails=self.chance.random() < 0.3)
        elif does == "kill":
            self.next_crawl()
        elif does == "close":
            self.crawl_ends([self.chance.random() < 0.3 for _ in range(2)])
        self.check()

    def page_arrives(self, family: int, version: int) -> None:
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
            self.item_arrives(passed)

    def item_arrives(self, passed: Passed) -> None:
        """Of the same response, so it shares the page; unless that is lost, when its page would be judged anew."""
        passed.page.in_pipelines += 1
        passed.on_their_way += 1

    def item_ends(self, passed: Passed, end: End, *, broken: bool) -> None:
        """``broken``: the first feed cannot write it."""
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

    def is_stored(self, slot: Slot, *, fails: bool) -> None:
        if fails:
            slot.fails()
            with pytest.raises(OSError, match="no room"):
                store(slot)
            return
        store(slot)
        self.stored.add(slot)
        self.delivered.update(slot.items)

    def crawl_ends(self, fails: list[bool]) -> None:
        for passed in list(self.crawl.values()):
            while passed.on_their_way:
                self.item_ends(passed, "dropped", broken=False)
        while self.exporter.full:
            self.is_stored(self.exporter.full.pop(), fails=fails[0])
        for slot, one_fails in zip(self.exporter.slots, fails, strict=False):
            if slot.itemcount:
                self.is_stored(slot, fails=one_fails)
        self.check()
        unsealed = sum(one.url not in self.safe for one in self.crawl.values())
        assert self.detector.end() == unsealed
        self.store.close()
        self.next_crawl()
        assert self.store.rolled_back.pages == unsealed

    def counting(self) -> set[str]:
        return self.safe | {one.url for one in self.crawl.values() if one.kept}

    def check(self) -> None:
        """The state holds the pages that count. Safe pages were delivered, and a kill would leave exactly these."""
        self.safe |= {one.url for one in self.crawl.values() if one.kept and one.feeds <= self.stored}
        assert not self.notes.state_failed
        assert delivered_to(self.store) == self.counting()
        originals = originals_of(self.store)
        families = [name.rpartition("/")[2] for name in originals]
        assert len(families) == len(set(families)), f"kept twice: {originals}"
        assert not self.many or self.safe <= self.delivered
        assert delivered_to(lasting_state(SortedRows(self.rows))) == self.safe


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 400))])
def test_in_any_order_each_article_counts_once_and_what_is_safe_was_delivered(seed: int) -> None:
    for number in range(10):
        crawls = Crawls(random.Random(f"{seed} {number}"))
        for _ in range(60):
            crawls.step()
