"""What somebody has said of a page by hand counts for more than what the method says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scrapy_neardup.errors import StoreDamaged
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    remove_manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.sqlite import SQLite
from scrapy_neardup.maintenance.repair import repair
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.layout import judgement_key
from scrapy_neardup.state.opening import memory_state, open_at
from scrapy_neardup.state.pages import PageStore
from tests.build import answer, find_record, kind, page, reserve, story
from tests.judge.test_delivered import COPY, FIRST, THIRD, WITNESS, crawl
from tests.judge.test_drops import is_sound

OTHER = page("other", story(9, 30), "标题丙")


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def keep(store: PageStore, of: Page) -> None:
    write_manual_verdicts(store, ManualVerdict(of.url, ManualKind.KEEP, FIRST.url, 7))


def call_a_copy(store: PageStore, of: Page, other: Page) -> None:
    write_manual_verdicts(store, ManualVerdict(of.url, ManualKind.COPY, other.url, 7))


def dropping(store: PageStore) -> Detector:
    """One more crawl, and what was said before it counts in it."""
    return crawl(store, drops=True)


@pytest.mark.parametrize("copy", [COPY, WITNESS], ids=["like the original", "a witness"])
def test_a_page_that_is_kept_passes_once_and_is_an_original_from_then_on(store: PageStore, copy: Page) -> None:
    answer(dropping(store), FIRST)
    assert kind(dropping(store), copy) is Kind.DUPLICATE
    keep(store, copy)
    told = answer(dropping(store), copy)
    assert (told.kind, told.by_hand, told.likeness) == (Kind.UNIQUE, True, None)
    assert told.as_tag()["reason"] == "by_hand"
    assert told.as_tag()["like"] == FIRST.url
    assert "judged by hand" in told.sentence()
    assert find_record(store, copy).is_original
    assert find_record(store, FIRST).is_original, "its original stays"
    assert kind(dropping(store), copy) is Kind.UNCHANGED
    again = answer(dropping(store), replace(copy, url="http://new.example/"))
    assert (again.kind, again.match and again.match.url) == (Kind.DUPLICATE, copy.url)
    assert is_sound(store)


def test_what_is_edited_and_kept_passes_as_updated(store: PageStore) -> None:
    answer(dropping(store), FIRST)
    keep(store, COPY)
    answer(dropping(store), COPY)
    told = answer(dropping(store), replace(COPY, text=FIRST.text + "另据本站记者。"))
    assert (told.kind, told.by_hand) == (Kind.UPDATED, True)
    assert store.pages == 2


def test_a_page_that_was_no_copy_at_the_time_passes_when_it_is_one_later(store: PageStore) -> None:
    answer(dropping(store), FIRST)
    keep(store, OTHER)
    told = answer(dropping(store), OTHER)
    assert (told.kind, told.by_hand) == (Kind.UNIQUE, False), "nothing was said against"
    assert kind(dropping(store), replace(COPY, url=OTHER.url)) is Kind.UPDATED


def test_what_is_kept_waits_for_nobody_and_others_wait_for_it(store: PageStore) -> None:
    keep(store, COPY)
    detector = dropping(store)
    first = reserve(detector, FIRST)
    kept = reserve(detector, COPY)
    assert detector.check(replace(COPY, url="http://new.example/")) in (Blocked(first), Blocked(kept))
    for one in (first, kept):
        detector.commit(one, sealed=True)
    assert store.pages == 2


def test_a_judgement_that_is_taken_back_counts_no_more(store: PageStore) -> None:
    answer(dropping(store), FIRST)
    keep(store, COPY)
    remove_manual_verdicts(store, COPY.url)
    assert find_manual_verdict(store, COPY.url) is None
    assert kind(dropping(store), COPY) is Kind.DUPLICATE


def test_a_copy_by_hand_is_one_whatever_the_method_says(store: PageStore) -> None:
    detector = dropping(store)
    for one in (FIRST, WITNESS):
        answer(detector, one)
    call_a_copy(store, OTHER, WITNESS)
    told = answer(dropping(store), OTHER)
    assert (told.kind, told.by_hand, told.likeness and told.likeness.value) == (Kind.DUPLICATE, True, "near")
    assert told.match is not None
    assert told.match.url == FIRST.url, "the original of the page that was named"
    assert find_record(store, OTHER).original == find_record(store, FIRST).id
    assert is_sound(store)
    passing = answer(crawl(store), OTHER)
    assert (passing.kind, find_record(store, OTHER).delivered) == (Kind.DUPLICATE, True), "as the policy says of copies"
    assert kind(dropping(store), OTHER) is Kind.UNCHANGED


def test_what_was_delivered_stays_where_it_is_called_a_copy(store: PageStore) -> None:
    detector = dropping(store)
    for one in (FIRST, OTHER):
        answer(detector, one)
    call_a_copy(store, OTHER, FIRST)
    assert kind(dropping(store), OTHER) is Kind.UNCHANGED
    edited = answer(dropping(store), replace(OTHER, text=OTHER.text + "另据本站记者。"))
    assert (edited.kind, edited.by_hand) == (Kind.DUPLICATE, True)
    assert find_record(store, OTHER).is_original
    assert kind(dropping(store), replace(OTHER, url="http://new.example/")) is Kind.DUPLICATE


def test_a_copy_of_what_the_state_does_not_know_is_judged_as_any_page(store: PageStore) -> None:
    call_a_copy(store, OTHER, FIRST)
    assert kind(dropping(store), OTHER) is Kind.UNIQUE


def test_a_copy_of_what_is_on_its_way_waits_for_it(store: PageStore) -> None:
    call_a_copy(store, OTHER, FIRST)
    detector = dropping(store)
    first = reserve(detector, FIRST)
    assert detector.check(OTHER) == Blocked(first)
    detector.commit(first, sealed=True)
    assert kind(detector, OTHER) is Kind.DUPLICATE


def test_two_pages_that_are_copies_of_each_other_are_not_both_dropped(store: PageStore) -> None:
    call_a_copy(store, OTHER, FIRST)
    call_a_copy(store, FIRST, OTHER)
    detector = dropping(store)
    assert [kind(detector, one) for one in (FIRST, OTHER)] == [Kind.UNIQUE, Kind.DUPLICATE]
    assert kind(dropping(store), replace(FIRST, text=FIRST.text + "另据本站记者。")) is Kind.UPDATED
    assert is_sound(store)


def test_the_last_one_counts_and_all_are_told(store: PageStore) -> None:
    odd = ManualVerdict("http://例子.example/\ud800", ManualKind.KEEP, "", 4)
    keep(store, COPY)
    call_a_copy(store, COPY, FIRST)
    write_manual_verdicts(store, odd)
    assert {one.url: one.kind for one in manual_verdicts(store)} == {
        COPY.url: ManualKind.COPY,
        odd.url: ManualKind.KEEP,
    }
    assert find_manual_verdict(store, odd.url) == odd
    assert kind(dropping(store), THIRD) is Kind.UNIQUE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"["),
        (None, json.dumps([COPY.url, "burn", "", 1]).encode()),
        (None, json.dumps([COPY.url, "keep", ""]).encode()),
        (None, json.dumps(["http://else.example/", "keep", "", 1]).encode()),
        (b"n", json.dumps([COPY.url, "keep", "", 1]).encode()),
    ],
    ids=["no JSON", "no such judgement", "no time", "another page", "another key"],
)
def test_a_row_that_is_none_of_a_judgement_is_told_of_and_left_behind_by_repair(
    tmp_path: Path, key: bytes | None, value: bytes
) -> None:
    store = open_at(SQLite, str(tmp_path / "state"), {})
    keep(store, FIRST)
    store.write(Changes({key or judgement_key(COPY.url, store.hashes): value}))
    with pytest.raises(StoreDamaged, match="manual verdict"):
        list(manual_verdicts(store))
    found = check(store)
    assert (dict(found.counts), found.rows["judgement"]) == ({"broken judgement": 1}, 2)
    store.close()
    repair((SQLite, str(tmp_path / "state")), (SQLite, str(tmp_path / "mended")))
    mended = open_at(SQLite, str(tmp_path / "mended"), {})
    assert [one.url for one in manual_verdicts(mended)] == [FIRST.url]
    mended.close()
