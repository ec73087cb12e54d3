"""A copy that was dropped and comes again with the same text is dropped again, whatever the state has learned since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.model import Comparison, Kind, Likeness, Page
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from tests.build import answer, find_record, kind, make_detector, story, summary
from tests.judge.test_delivered import FIRST, THIRD, VARIANT

#: Of the length and under the title of the third page, and no copy of anything.
OWN = replace(THIRD, text="".join(story(7, 29)))


def crawl(store: PageStore, **settings: Any) -> Detector:
    return make_detector(store, **{"keep": Keep.EVIDENCE, **settings})


def forget(store: PageStore, one: Page) -> None:
    store.forget([find_record(store, one).id])


@pytest.fixture
def store() -> PageStore:
    """With a page, a copy of that which speaks for itself, and one of this: dropped, and by now like nothing."""
    store = memory_state({})
    for one, verdict in ((FIRST, Kind.UNIQUE), (VARIANT, Kind.DUPLICATE), (THIRD, Kind.DUPLICATE)):
        assert kind(crawl(store), one) is verdict
    forget(store, VARIANT)
    assert kind(crawl(store), replace(THIRD, url="http://new.example/")) is Kind.UNIQUE, "so nothing is like it now"
    forget(store, replace(THIRD, url="http://new.example/"))
    return store


@pytest.mark.parametrize("keep", Keep)
def test_it_is_dropped_again_for_the_same_original_with_the_same_evidence(store: PageStore, keep: Keep) -> None:
    before = find_record(store, THIRD)
    for _ in range(2):
        again = answer(crawl(store, keep=keep), THIRD)
        assert summary(again) == (Kind.DUPLICATE, Likeness.RETITLED, "first")
        assert again.id == before.id
        assert again.match is not None
        assert again.match.similarity == before.similarity
    assert find_record(store, THIRD) == before
    assert store.pages == 2


def test_an_article_of_its_own_passes_though_it_is_as_alike(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    alike = Comparison(find_record(store, THIRD).similarity, 1.0, False, False, False)
    monkeypatch.setattr(Cascade, "compare", lambda *_: alike)
    assert kind(crawl(store), OWN) is Kind.UNIQUE


@pytest.mark.parametrize(
    "settings",
    [{"base": 0.56}, {"min_letters": 41}, {"also_copies": frozenset([Likeness.SAME_TITLE])}],
    ids=["threshold", "least text", "policy"],
)
def test_where_another_rule_decides_it_is_judged_anew(store: PageStore, settings: dict[str, Any]) -> None:
    assert kind(crawl(store, **settings), THIRD) is Kind.UNIQUE


def test_a_page_with_nothing_of_its_own_is_the_copy_it_was(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be boilerplate else, and pass."""
    guarded = Cascade.fingerprint_own
    monkeypatch.setattr(Cascade, "fingerprint_own", lambda *given: replace(guarded(*given), own=0))
    assert kind(crawl(store), THIRD) is Kind.DUPLICATE
    assert answer(crawl(store), OWN).reason == "boilerplate"
