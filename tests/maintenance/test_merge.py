"""Two states become one: by URL, with whatever names a page, and with copies across the two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, manual_verdicts, write_manual_verdicts
from scrapy_neardup.maintenance.merge import MergeCounts, merge
from scrapy_neardup.maintenance.sources import PageEntry, sealed_pages
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Outcome, Page
from scrapy_neardup.state.journal import crawls_in
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Keep, Record
from tests.build import page, story
from tests.maintenance.states import Killed, check, dangling, fill, killed_before, pages, rows, state

STATES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def urls(store: PageStore) -> list[str]:
    return sorted(record.url for record in store.records())


def merged(ours: PageStore, theirs: PageStore, method: Method | None = None) -> MergeCounts:
    return merge(theirs, ours, method)


# Whatever the states


@pytest.mark.slow
@STATES
@given(pages(), pages())
def test_a_merge_unites_urls_keeps_originals_and_is_repeatable(ours: list[PageEntry], theirs: list[PageEntry]) -> None:
    one, other = state(ours, notes=1), state(theirs, notes=2)
    gone, before = dangling(one) | dangling(other), rows(other)
    originals = [record for record in one.records() if record.is_original]
    found = merged(one, other)
    check(one)
    assert urls(one) == sorted({*urls(state(ours)), *urls(other)})
    assert dangling(one) <= gone
    assert rows(other) == before
    assert (found.added, found.copies) == (one.pages - len(ours), 0)
    assert found.added + found.known + found.newer == len(theirs)
    records = {record.id: record for record in one.records()}
    assert all(records[record.id].is_original and records[record.id].url == record.url for record in originals)
    for record in records.values():  # no chains
        named = records.get(record.original)
        assert named is None or named.original == named.id
    once = rows(one)
    assert merged(one, other) == MergeCounts(0, len(theirs), 0, 0)
    assert rows(one) == once
    merged(other, state(ours))  # the other way round
    assert {url: one.last_seen(url) for url in urls(one)} == {url: other.last_seen(url) for url in urls(other)}


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    [PageEntry(Record(4, "https://a.example/", 4), 0), PageEntry(Record(5, "https://b.example/", 4, 0.5), 0)],
    [PageEntry(Record(2, "https://b.example/", 2), 9), PageEntry(Record(3, "https://c.example/", 2, 0.5), 9)],
)
@example(
    [PageEntry(Record(1, "https://b.example/", 1), 0)],
    [
        PageEntry(Record(1, "https://a.example/", 1), 0),
        PageEntry(Record(2, "https://b.example/", 2), 1, Evidence("excerpt", like=1)),
    ],
)
@given(pages(4), pages(4))
def test_a_merge_that_was_killed_is_completed_by_another(ours: list[PageEntry], theirs: list[PageEntry]) -> None:
    whole = state(ours)
    merged(whole, state(theirs))
    for writes in range(20):
        one = state(ours)
        try:
            with killed_before(one, writes):
                merged(one, state(theirs))
        except Killed:
            one.journal.roll_back_crawls(crawls_in(one.kv))
            assert one.pages == sum(1 for _ in one.records())
        else:
            break
        check(one)
        assert dangling(one) <= dangling(state(ours)) | dangling(state(theirs))
        merged(one, state(theirs))
        assert rows(one) == rows(whole)
    assert writes <= len(theirs) + 5


# Ids and times


def own(id: int, url: str, seen: int = 5, *keys: int, sketch: bytes = b"sketch") -> PageEntry:
    return PageEntry(Record(id, url, id, 1.0, keys, sketch), seen)


def copy(id: int, url: str, original: int, seen: int = 5, *keys: int) -> PageEntry:
    return PageEntry(Record(id, url, original, 0.5, keys, b"sketch" if keys else b""), seen)


def record(store: PageStore, url: str) -> Record:
    found = store.find(url)
    assert found is not None
    return found


def test_an_id_that_another_page_has_gives_way_with_all_that_names_it() -> None:
    ours = state([own(5, "a"), own(6, "b")])
    like = replace(own(8, "like"), evidence=Evidence("excerpt", like=5))
    theirs = state([own(5, "x", 5, 1), own(6, "y"), own(7, "z"), like, copy(9, "copy of x", 5, 5, 2)])
    assert merged(ours, theirs) == MergeCounts(5, 0, 0, 0)
    ids = {url: record(ours, url).id for url in urls(ours)}
    assert ids == {"a": 5, "b": 6, "z": 7, "like": 8, "copy of x": 9, "x": 10, "y": 11}
    assert record(ours, "copy of x") == replace(record(theirs, "copy of x"), original=10)
    told = ours.evidence(8)
    assert told is not None
    assert told.like == 10
    assert ours.postings(1, 9) == [10]
    assert ours.new_id() > 11
    check(ours)
    before = rows(ours)
    assert merged(ours, theirs) == MergeCounts(0, 5, 0, 0)
    assert rows(ours) == before


def test_of_a_page_that_both_know_the_version_that_was_seen_later_stays_under_our_id() -> None:
    ours = state([own(5, "a", 10, 1), own(6, "b", 10, 1), copy(7, "copy of a", 5)])
    theirs = state([own(2, "a", 11, 2, sketch=b"later"), own(3, "b", 9, 2, sketch=b"earlier"), copy(4, "c", 3)])
    assert merged(ours, theirs) == MergeCounts(1, 1, 1, 0)
    assert record(ours, "a") == Record(5, "a", 5, 1.0, (2,), b"later", since=2)  # delivered there before
    assert record(ours, "b") == Record(6, "b", 6, 1.0, (1,), b"sketch", since=3)
    assert (ours.last_seen("a"), ours.last_seen("b")) == (11, 10)
    assert (record(ours, "copy of a").original, record(ours, "c").original) == (5, 6)
    assert (ours.postings(1, 9), ours.postings(2, 9)) == ([6], [5])
    check(ours)


def test_a_free_id_is_not_that_of_a_missing_original() -> None:
    ours, theirs = state([own(5, "a")]), state([copy(5, "b", 6)])
    assert merged(ours, theirs) == MergeCounts(added=1)
    assert (record(ours, "b").id, record(ours, "b").original) == (7, 6)
    assert merged(ours, theirs) == MergeCounts(known=1)
    ours, theirs = state([own(5, "a"), copy(9, "c", 7)]), state([own(5, "b"), copy(8, "d", 6)])
    assert merged(ours, theirs) == MergeCounts(added=2)
    assert record(ours, "b").id == 10, "copies of either side have the missing originals 6 and 7"
    assert {record.id for record in ours.records()} == {5, 8, 9, 10}


def unjudged(id: int, url: str, seen: int) -> PageEntry:
    return PageEntry(Record(id, url, id, 0.0, (), b"\x01" * 8), seen)


def delivered(filed: PageEntry) -> PageEntry:
    return replace(filed, record=replace(filed.record, delivered=True, sketch=b"sketch"))


def test_which_of_two_versions_stays() -> None:
    for known, theirs, stays in [
        (own(5, "a"), copy(3, "a", 2, 9), "ours"),  # others may stand on it
        (own(5, "a"), unjudged(3, "a", 9), "ours"),  # its text may only have failed to load
        (copy(5, "a", 4), unjudged(3, "a", 9), "ours"),
        (unjudged(5, "a", 5), own(3, "a", 1), "theirs"),  # whenever that was
        (unjudged(5, "a", 5), copy(3, "a", 2, 1), "theirs"),
        (copy(5, "a", 4), own(3, "a", 9), "theirs"),
        (copy(5, "a", 4), copy(3, "a", 2, 9), "theirs"),
        (copy(5, "a", 4), copy(3, "a", 2, 5), "ours"),
        (delivered(copy(5, "a", 4)), copy(3, "a", 2, 9), "ours"),
        (delivered(copy(5, "a", 4)), delivered(copy(3, "a", 2, 9)), "theirs"),
        (copy(5, "a", 4), delivered(copy(3, "a", 2, 9)), "theirs"),
        (delivered(copy(5, "a", 4)), own(3, "a", 9), "theirs"),
    ]:
        ours = state([own(4, "first here"), known])
        merged(ours, state([own(2, "first there"), theirs]))
        found, expected = record(ours, "a"), (known if stays == "ours" else theirs).record
        names = {known.record.original: known.record.original, 2: 2, 3: 5}
        assert (found.id, found.original) == (5, names[expected.original]), known
        assert (found.delivered, found.sketch) == (expected.delivered, expected.sketch), known
        assert ours.last_seen("a") == max(known.seen, theirs.seen)
        check(ours)


@pytest.mark.parametrize("known", [unjudged(5, "a", 1), copy(5, "a", 4, 1)])
def test_a_dropped_copy_of_its_own_earlier_version_becomes_no_original(known: PageEntry) -> None:
    ours, theirs = state([known]), state([copy(9, "a", 5, 8)])  # the group's first page, 5, is gone there
    check(theirs)
    before = record(ours, "a")
    merged(ours, theirs)
    assert record(ours, "a") == before
    assert ours.last_seen("a") == 8
    check(ours)


def test_a_copy_of_what_is_a_copy_here_goes_to_its_original_and_is_no_variant() -> None:
    for leader in ([own(4, "a")], [copy(6, "better, of what is gone", 4, 5, 4)], []):
        ours = state([*leader, copy(5, "b", 4, 9)])
        theirs = state([own(2, "b", 1), copy(3, "c", 2, 5, 7)])
        merged(ours, theirs)
        assert record(ours, "c").original == 4
        assert (record(ours, "c").keys, record(ours, "c").sketch) == ((), b"")
        assert ours.postings(7, 9) == []
        check(ours)


def test_a_copy_that_becomes_an_original_keeps_the_copies_it_has_there() -> None:
    ours = state([own(4, "a"), copy(5, "b", 4, 1)])
    merged(ours, state([own(2, "b", 9), copy(3, "c", 2, 5, 7)]))
    assert record(ours, "b").is_original
    assert (record(ours, "c").original, record(ours, "c").keys) == (5, (7,))


def test_what_is_told_of_a_page_is_kept_where_the_other_side_has_nothing_new_to_say() -> None:
    told = Evidence("same_title", title="渡轮")
    ours = state([replace(own(5, "a"), evidence=told), replace(own(6, "b"), evidence=told)])
    merged(ours, state([own(5, "a", 9), own(6, "b", 9, sketch=b"another text")]))
    assert ours.evidence(5) == told
    assert ours.evidence(6) is None


# Counted sentences


def counts(store: PageStore) -> list[int]:
    return [int(count) for count in store.on_site("river.example").pages_on_site(np.array([1, 2], np.uint32))]


def test_a_merge_that_was_killed_loses_no_counts() -> None:
    """Not even if its pages were sealed already, so that the next merge finds no new one."""
    for writes in range(20):
        ours, theirs = state([own(1, "a")], notes=4), state([own(1, "a", 7), own(3, "c")], notes=5)
        try:
            with killed_before(ours, writes):
                merged(ours, theirs)
        except Killed:
            ours.journal.roll_back_crawls(crawls_in(ours.kv))
        else:
            break
        merged(ours, theirs)
        assert min(counts(ours)) >= 1 + 3 + 4 - 1, writes
    assert 3 < writes < 19


def test_counts_are_added_and_pages_that_both_know_are_not_counted_twice() -> None:
    ours = state([own(1, "a"), own(2, "b")], notes=4)
    apart = state([own(3, "c")], notes=5)
    overlapping = state([own(2, "b"), own(4, "d")], notes=3)
    merged(ours, apart)
    assert counts(ours) == [1 + 3 + 4] * 2
    merged(ours, overlapping)
    assert counts(ours) == [1 + 3 + 4 + 2 - 1] * 2
    merged(ours, overlapping)
    merged(ours, apart)
    assert counts(ours) == [9, 9]


# Copies across states


@pytest.fixture
def cascade() -> Method:
    return make_method("cascade", {})


def crawl(method: Method, found: list[Page], keep: Keep = Keep.EVIDENCE) -> PageStore:
    """What a crawl leaves of these pages."""
    store = memory_state(method.recipe())
    detector = Detector(method, store, who="test", policy=Policy(keep=keep))
    for one in found:
        detector.judge_now(one, sealed=True)
    detector.end()
    return store


def originals(store: PageStore) -> dict[str, str]:
    """The name of each page and that of its original."""
    named = {record.id: record.url.removeprefix("http://").removesuffix(".example/") for record in store.records()}
    return {named[record.id]: named[record.original] for record in store.records()}


TEXT, OTHER = story(1, 40), story(2, 40)
FIRST = page("first", TEXT, "标题甲")
SECOND = page("second", TEXT[:34] + OTHER[:4], "标题甲")
#: Too different from the first to be known for its copy without the second.
THIRD = page("third", TEXT[3:32] + OTHER[:6], "标题乙")


def test_an_original_that_copies_one_of_ours_becomes_its_copy_and_its_copies_go_with_it(cascade: Method) -> None:
    ours, theirs = crawl(cascade, [FIRST, page("a", story(3))]), crawl(cascade, [SECOND, THIRD, page("b", story(4))])
    assert originals(theirs) == {"second": "second", "third": "second", "b": "b"}
    assert record(theirs, THIRD.url).sketch
    assert merged(ours, theirs, cascade) == MergeCounts(3, 0, 0, 1)
    assert originals(ours) == {"first": "first", "a": "a", "second": "first", "third": "first", "b": "b"}
    variant, light = record(ours, SECOND.url), record(ours, THIRD.url)
    assert 0.5 < variant.similarity < cascade.variant_below
    assert (variant.keys, variant.sketch) == (record(theirs, variant.url).keys, record(theirs, variant.url).sketch)
    assert (light.keys, light.sketch) == ((), b"")
    told = ours.evidence(variant.id)
    assert told is not None
    assert (told.kind, told.like, told.shared) == ("near", 0, ())
    assert told.similarity == pytest.approx(variant.similarity, abs=1e-4)
    check(ours)
    before = rows(ours)
    assert merged(ours, theirs, cascade) == MergeCounts(0, 3, 0, 0)
    assert rows(ours) == before


def test_a_copy_that_is_like_enough_is_no_variant_and_what_was_told_of_it_stays(cascade: Method) -> None:
    ours = crawl(cascade, [page("a", story(1))])
    theirs = crawl(cascade, [page("b", story(1), title="Another title")], Keep.TEXTS)
    merged(ours, theirs, cascade)
    found = record(ours, "http://b.example/")
    assert (found.keys, found.similarity) == ((), 1.0)
    told, before = ours.evidence(found.id), theirs.evidence(found.id)
    assert before is not None
    assert told == replace(before, kind="identical", similarity=1.0, containment=1.0)
    assert told.title == "Another title"


def test_what_was_delivered_there_and_is_a_copy_here_is_unchanged_when_it_comes_again(cascade: Method) -> None:
    ours, theirs = crawl(cascade, [page("a", story(1))]), crawl(cascade, [page("b", story(1))])
    merged(ours, theirs, cascade)
    assert record(ours, "http://b.example/").delivered
    detector = Detector(cascade, ours, who="test")
    found = detector.judge_now(page("b", story(1)), sealed=True)
    assert (found.outcome, found.match and found.match.url) == (Outcome.UNCHANGED, "http://a.example/")


def test_a_page_that_was_seen_alone_there_stays_the_copy_that_it_is_here(cascade: Method) -> None:
    ours = crawl(cascade, [page("a", story(1)), page("b", story(1))])
    theirs = crawl(cascade, [page("b", story(1)), page("c", story(1))])
    later = [replace(one, seen=one.seen + 60) for one in sealed_pages(theirs)]
    theirs = fill(memory_state(cascade.recipe()), later)
    assert merged(ours, theirs, cascade) == MergeCounts(1, 0, 1, 1)
    assert originals(ours) == {"a": "a", "b": "a", "c": "a"}
    check(ours)


def test_what_a_variant_leads_to_becomes_a_copy_of_its_original_and_no_variant(cascade: Method) -> None:
    ours = crawl(cascade, [FIRST, SECOND])
    assert merged(ours, crawl(cascade, [THIRD]), cascade) == MergeCounts(1, 0, 0, 1)
    assert originals(ours) == {"first": "first", "second": "first", "third": "first"}
    assert record(ours, THIRD.url).keys == ()
    ours = crawl(cascade, [FIRST, SECOND])
    ours.forget([record(ours, FIRST.url).id])
    assert merged(ours, crawl(cascade, [THIRD]), cascade) == MergeCounts(1, 0, 0, 0)  # a variant of nothing


def test_two_halves_of_a_crawl_have_the_groups_of_the_whole() -> None:
    for name in [name for name in METHODS if not METHODS[name].memory_only]:
        method = make_method(name, {})
        found = [page(f"{seed}-{turn}", story(seed, 12), title=f"标题{seed}") for turn in range(3) for seed in range(5)]
        whole = crawl(method, found)
        ours, theirs = crawl(method, found[:8]), crawl(method, found[8:])
        merged(ours, theirs, method)
        assert originals(ours) == originals(whole), name
        assert sum(one == name for name, one in originals(ours).items()) == 5


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_page_that_is_kept_becomes_nobodys_copy_in_a_merge(cascade: Method, where: str) -> None:
    ours, theirs = crawl(cascade, [FIRST]), crawl(cascade, [SECOND])
    write_manual_verdicts(ours if where == "here" else theirs, ManualVerdict(SECOND.url, ManualKind.KEEP, FIRST.url, 4))
    assert merged(ours, theirs, cascade) == MergeCounts(1, 0, 0, 0, int(where == "there"))
    assert originals(ours) == {"first": "first", "second": "second"}
    assert [one.url for one in manual_verdicts(ours)] == [SECOND.url]
