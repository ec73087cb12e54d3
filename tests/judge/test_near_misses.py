"""Why a page passed that was nearly a copy: the state keeps the page, the figures and the decision of that moment."""

from __future__ import annotations

from scrapy_neardup.inspect.pages import NearMiss, inspect_pages
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, write_manual_verdicts
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from tests.build import find_record, join_text, kind, make_detector, story

FORM = story(1, 24)


def notice(number: int, own: int = 6) -> Page:
    """A notice in a form: titles and some sentences differ."""
    text = "".join([*FORM, *story(10 + number, own)])
    title = f"第{number}号通告 港口{story(number, 1)[0][:6]}"
    return Page(f"https://town.example/{number}", title, text=text, site="town.example")


def near_miss(store: PageStore, page: Page) -> Evidence:
    evidence = store.evidence(find_record(store, page).id)
    assert evidence is not None
    return evidence


def test_the_page_that_was_nearly_an_original_is_kept_with_the_decision() -> None:
    store = memory_state({}, secret=NO_SECRET)
    detector = make_detector(store, keep=Keep.EVIDENCE)
    first, second, other = notice(1), notice(2), Page("https://a.example/", "梨", text=join_text(*story(99)))
    assert [kind(detector, one) for one in (first, second, other)] == [Kind.UNIQUE] * 3
    evidence = near_miss(store, second)
    assert evidence.near_miss == first.url
    assert evidence.near_why.startswith("similarity 0.")
    assert evidence.near_why.endswith("They are about two things.")
    assert not near_miss(store, first).near_miss
    assert not near_miss(store, other).near_miss
    assert Evidence.unpack(evidence.pack()) == evidence
    (shown,) = inspect_pages(store, [find_record(store, second)])
    assert shown.near_miss == NearMiss(first.url, evidence.near_why)


def test_the_most_similar_one_is_kept() -> None:
    store = memory_state({}, secret=NO_SECRET)
    detector = make_detector(store, keep=Keep.EVIDENCE)
    far, near, page = notice(1, own=12), notice(2), notice(3)
    assert {kind(detector, one) for one in (far, near, page)} == {Kind.UNIQUE}
    assert near_miss(store, page).near_miss == near.url


def test_nothing_is_kept_where_the_user_keeps_nothing_or_a_person_decided() -> None:
    for keep in (Keep.NOTHING, Keep.EVIDENCE):
        store = memory_state({}, secret=NO_SECRET)
        if keep is Keep.EVIDENCE:
            write_manual_verdicts(store, ManualVerdict(notice(2).url, ManualKind.KEEP, "", 0))
        detector = make_detector(store, keep=keep)
        assert {kind(detector, notice(number)) for number in (1, 2)} == {Kind.UNIQUE}
        evidence = store.evidence(find_record(store, notice(2)).id)
        assert evidence is None or not evidence.near_miss
