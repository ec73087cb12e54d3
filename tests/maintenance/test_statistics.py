"""The numbers of any state are those of a plain count, and the same that a report tells."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, given, settings

from scrapy_neardup.maintenance.lines import PageEntry
from scrapy_neardup.maintenance.statistics import Census, statistics
from scrapy_neardup.report.gather import gather
from scrapy_neardup.state.record import Record
from tests.report.recount import copies, filled, large_state, small_states


def check(pages: list[PageEntry]) -> None:
    store = filled(pages)
    found, totals = statistics(store), gather(store).totals
    assert (found.pages, found.originals, found.copies, found.unjudged, int(found.first_seen), found.last_seen) == (
        *(totals.pages, totals.originals, totals.copies, totals.unjudged, totals.first, totals.last),
    )
    ids = {one.record.id for one in pages}
    assert found.copies_without_original == sum(one.record.original not in ids for one in copies(pages))
    assert found.kinds == Counter((one.evidence and one.evidence.likeness) or "unknown" for one in copies(pages))
    judged = [one.record for one in pages if one.record.is_original or one.record.original != one.record.id]
    sizes = Counter(record.original for record in judged).values()
    assert (found.groups, found.largest_group) == (sum(size > 1 for size in sizes), max(sizes, default=0))


@settings(suppress_health_check=[HealthCheck.too_slow])  # the first one reads the table of all characters
@given(small_states())
def test_the_numbers_of_any_state(pages: list[PageEntry]) -> None:
    check(pages)


def test_the_numbers_of_a_larger_state() -> None:
    check(large_state(1500, 40))


def test_a_copy_that_stands_for_its_group_is_no_variant() -> None:
    census = Census()
    for record in (Record(1, "a", 1, 1.0, (5,)), Record(2, "b", 1, 0.8, (7,)), Record(3, "c", 1, 0.9, (7, 1))):
        census.add(record, None)
    assert (census.copies, census.variants, census.better) == (2, 1, 1)
