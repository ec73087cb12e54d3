"""Pages by the time at which they were first seen: few buckets, and none of them lost."""

from __future__ import annotations

from datetime import datetime, timezone

from hypothesis import given
from hypothesis import strategies as st

from scrapy_neardup.report.data import Times
from scrapy_neardup.report.gather import SHOWN, Timeline
from scrapy_neardup.report.words import Words, format_start, format_tick

MINUTE, HOUR, DAY = 60, 3600, 86400
#: A Friday, 09:40:41 in UTC.
FRIDAY = 1_763_718_041
#: The last second that an id can tell, in 2554.
LAST = (2**64 - 1) // 10**9
COLUMNS = ("originals", "copies", "unjudged")


def tallied(pages: list[tuple[int, int]]) -> Times:
    tally = Timeline()
    for seconds, column in pages:
        tally.add(seconds, column)
    return tally.times()


def utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.utc)


def check(found: Times, pages: list[tuple[int, int]]) -> None:
    """Each bucket holds the pages from its start on, and the buckets hold them all."""
    starts = [one.start for one in found.buckets]
    assert starts == sorted(set(starts))
    assert len(starts) <= SHOWN
    assert starts[0] <= min(seconds for seconds, _ in pages)
    for one, end in zip(found.buckets, [*starts[1:], LAST + 1], strict=True):
        there = [column for seconds, column in pages if one.start <= seconds < end]
        assert [getattr(one, name) for name in COLUMNS] == [there.count(column) for column in range(3)]
    assert any(getattr(found.buckets[-1], name) for name in COLUMNS)  # and not one more than is needed
    assert any(getattr(found.buckets[0], name) for name in COLUMNS)


_spans = st.sampled_from([1, MINUTE, HOUR, DAY, 30 * DAY, 366 * DAY, 20_000 * DAY, LAST])


@st.composite
def pages(draw: st.DrawFn) -> list[tuple[int, int]]:
    begin, span = draw(st.integers(0, LAST)), draw(_spans)
    seconds = st.integers(begin, min(LAST, begin + span))
    return draw(st.lists(st.tuples(seconds, st.integers(0, 2)), min_size=1, max_size=60))


@given(pages())
def test_each_page_is_in_the_bucket_of_its_time_in_any_order(seen: list[tuple[int, int]]) -> None:
    found = tallied(seen)
    check(found, seen)
    assert tallied(sorted(seen)) == found
    for one in found.buckets:
        assert format_tick(found.unit, one.start, Words("en"))
        assert format_start(found.unit, one.start)


def test_units_follow_the_span_and_no_pages_have_no_times() -> None:
    spans = {0: "second", 70: "5 seconds", 50 * MINUTE: "minute", 2 * DAY: "hour", 200 * DAY: "week", LAST: "10 years"}
    for span, unit in spans.items():
        seen = [(0, 0), (span, 1)]
        found = tallied(seen)
        assert found.unit == unit
        check(found, seen)
    found = tallied([(FRIDAY, 0), (FRIDAY + 200 * DAY, 1)])
    assert {utc(one.start).strftime("%a%H%M%S") for one in found.buckets} == {"Mon000000"}
    assert Timeline().times() == Times()
