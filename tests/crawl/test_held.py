"""Pages that wait for feeds, against a dictionary of sets; and how little they take."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Spider

from scrapy_neardup.crawl.feeds import FeedWatch, PagesAwaitingFeeds, Released
from tests.crawl.parts import Exporter, Slot

FEEDS = st.frozensets(st.sampled_from("abc"), min_size=1)
STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 30), FEEDS),
    st.tuples(st.just("remove"), st.integers(1, 30), st.none()),
    st.tuples(st.sampled_from(["stored", "failed"]), st.none(), st.sampled_from("abc")),
)


@given(st.lists(STEPS, max_size=60))
def test_pages_wait_for_all_their_feeds_in_whatever_order_they_come(steps: list[tuple[str, int, str]]) -> None:
    held: PagesAwaitingFeeds[str] = PagesAwaitingFeeds()
    waiting: dict[int, frozenset[str]] = {}
    for step, id, which in steps:
        if step == "add":
            held.add(id, frozenset(which))
            waiting[id] = waiting.get(id, frozenset()) | frozenset(which)
        elif step == "remove":
            assert held.remove(id) == waiting.pop(id, frozenset())
        else:
            of_it = sorted(id for id, feeds in waiting.items() if which in feeds)
            assert held.count(which) == len(of_it)
            if step == "failed":
                assert held.fail(which) == len(of_it)
                waiting = {id: feeds for id, feeds in waiting.items() if which not in feeds}
            else:
                released = held.store(which)
                ready = [id for id in of_it if waiting[id] == {which}]
                bounds = (of_it[0], of_it[-1]) if of_it else (0, 0)
                assert released == Released(len(of_it), *bounds, array("Q", ready))
                waiting = {id: feeds - {which} for id, feeds in waiting.items() if feeds != {which}}
        assert len(held) == len(waiting)
        assert held.feeds() == {feed for feeds in waiting.values() for feed in feeds}


PAGES = 3000
BATCH = 500


def one_feed() -> Exporter:
    return Exporter([Slot()])


def two_feeds() -> Exporter:
    return Exporter([Slot(), Slot(uri="mem://other")])


def two_sorts_of_items() -> Exporter:
    return Exporter([Slot(accepts=lambda n: n == 0), Slot(uri="mem://other", accepts=lambda n: n == 1)])


@pytest.mark.parametrize("make", [one_feed, two_feeds, two_sorts_of_items])
@pytest.mark.parametrize("batch", [0, BATCH])
def test_a_page_that_waits_takes_a_few_bytes(make: Callable[[], Exporter], batch: int) -> None:
    """Two items of each page, one after the other; only the last feed, or the last of its batches, is ever stored."""
    exporter, sealed = make(), array("Q")
    watch = FeedWatch(exporter.as_scrapys(), sealed.extend)
    spider = Spider("any")
    for slot in exporter.slots:
        slot.items = Nothing()
    last = exporter.slots[-1]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for id in range(1 << 60, (1 << 60) + PAGES):
        first = watch.export(0, spider)
        watch.add(id, first)
        if second := watch.export(1, spider):
            watch.add(id, second, first)
        if batch and last.itemcount >= batch:
            last.store(None)
            exporter.slots[-1] = last = Slot(uri=last.uri, accepts=last.accepts, items=Nothing())
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert held < 20 * PAGES, f"{held / PAGES:.1f} bytes a page"
    for slot in exporter.slots:
        slot.store(None)
    assert sorted(sealed) == list(range(1 << 60, (1 << 60) + PAGES))


class Nothing(list[object]):
    """Items that nobody keeps."""

    def append(self, item: object) -> None:
        """It is gone."""
