"""Copies whose items pass all the same: once delivered they are known under their own URL, and by no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import METHODS
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.sentence_counts import Sentences
from tests.build import answer, kind, make_detector, page, reserve, story

TEXT, OTHER = story(1, 40), story(2, 40)
FIRST = page("first", TEXT, "标题甲", site="a.example")
COPY = page("copy", [*TEXT[1:], "本站转载。"], "标题甲", site="b.example")
#: So different that it speaks for itself, and a page that is like this one and not like the first.
VARIANT = page("second", TEXT[:34] + OTHER[:4], "标题甲", site="a.example")
THIRD = page("third", TEXT[9:34] + OTHER[:4], "别的消息")


@pytest.fixture
def store() -> PageStore:
    return memory_state({})


def crawl(store: PageStore, method: str = "cascade", *, drops: bool = False) -> Detector:
    return make_detector(store, method, drops=drops, keep=Keep.EVIDENCE)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("copy", [COPY, VARIANT], ids=["like the original", "a variant"])
def test_a_delivered_copy_is_unchanged_the_next_time_with_every_method(store: PageStore, name: str, copy: Page) -> None:
    copy = replace(copy, text=FIRST.text, title="另一个标题") if name != "cascade" else copy
    first = answer(crawl(store, method=name), FIRST)
    assert kind(crawl(store, method=name), copy) is Kind.DUPLICATE
    again = answer(crawl(store, method=name), copy)
    assert again.kind is Kind.UNCHANGED
    assert again.similar_id == first.similar_id
    assert again.as_tag()["original"] == FIRST.url
    assert again.as_tag()["similarity"] == 1.0
    assert again.as_tag()["kind"] is None
    assert store.pages == 2


def test_the_sentences_of_a_copy_count_once_it_was_delivered(store: PageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """For its own site: what many sites have copied is not their boilerplate."""
    counted: list[tuple[str, bool]] = []

    def note(sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        assert len(sentences) > 4
        assert page is not None
        counted.append((site, everywhere))

    monkeypatch.setattr(store, "note", note)
    detector = crawl(store)
    answer(detector, FIRST)
    on_its_way = reserve(detector, VARIANT)
    assert counted == [("a.example", True)]
    detector.commit(on_its_way, sealed=True)
    assert counted == [("a.example", True), ("a.example", False)]
    answer(detector, COPY)
    assert len(counted) == 2, "it is like its original, which counted"
