"""Boilerplate that a worker assumes: what it learns, and that no fingerprint rests on a wrong assumption."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page, SiteCounts
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.source import PageContent
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.workers import speculation
from scrapy_neardup.workers.speculation import (
    Assumption,
    Boilerplate,
    NeedsState,
    PreparedFingerprint,
    UpdateCursor,
    apply_updates,
)
from scrapy_neardup.workers.tasks import FingerprintTask, ReadTask, receive, send
from tests.build import story
from tests.methods.test_contract import PAGES, every_method
from tests.page.pages import ARTICLE

T = TypeVar("T")
SITE = "moor.example"
FOOTER = "The Moor Gazette is printed on paper from the mill below the weir."


class Counts:
    """Counts of a site with this boilerplate."""

    def __init__(self, own: set[int], everywhere: set[int]) -> None:
        self.own = own
        self.common = own | everywhere

    def pages(self) -> int:
        return 9

    def stood_on(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        return np.zeros(len(sentences), np.uint16)

    def forms(self) -> float:
        return 0.0

    def is_own(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return np.isin(sentences, list(self.own))

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        return np.isin(sentences, list(self.common))


def array(*sentences: int) -> npt.NDArray[np.uint32]:
    return np.array(sentences, np.uint32)


def assumed(boilerplate: Boilerplate, site: str, *sentences: int) -> tuple[list[bool], list[bool]]:
    counts = boilerplate.on_site(site)
    return counts.is_own(array(*sentences)).tolist(), counts.is_common(array(*sentences)).tolist()


def learn(boilerplate: Boilerplate, site: str, state: SiteCounts, *sentences: int) -> None:
    counts = boilerplate.on_site(site)
    counts.is_common(array(*sentences))
    boilerplate.learn(site, state, counts.assumptions)


def test_the_answers_of_a_state_are_assumed_from_then_on() -> None:
    boilerplate = Boilerplate()
    assert assumed(boilerplate, SITE, 1, 2, 3) == ([False] * 3, [False] * 3)
    learn(boilerplate, SITE, Counts({1}, {2}), 1, 2, 3)
    assert assumed(boilerplate, SITE, 1, 2, 3) == ([True, False, False], [True, True, False])
    assert assumed(boilerplate, "mill.example", 1, 2, 3) == ([False] * 3, [False, True, False])
    learn(boilerplate, SITE, Counts(set(), {1}), 1, 2, 3)
    assert assumed(boilerplate, SITE, 1, 2, 3) == ([False] * 3, [True, False, False])


def test_updates_teach_another_process_the_same_each_once() -> None:
    boilerplate, other, sent = Boilerplate(), Boilerplate(), []
    cursor = UpdateCursor(boilerplate)
    for counts, sentences in (
        (Counts({1, 5}, {2}), (1, 2, 3, 5)),
        (Counts({1}, {2}), (1, 5)),
        (Counts({1}, {2}), (1,)),
    ):
        learn(boilerplate, SITE, counts, *sentences)
        taken = cursor.take()
        sent.append(len(taken[1]))
        other = apply_updates(other, taken)
    assert sent == [3, 1, 0]
    assert assumed(other, SITE, 1, 2, 3, 5) == assumed(boilerplate, SITE, 1, 2, 3, 5)
    late = apply_updates(Boilerplate(), UpdateCursor(boilerplate).take())
    assert assumed(late, SITE, 1, 2, 3, 5) == assumed(boilerplate, SITE, 1, 2, 3, 5)


def test_learning_begins_anew_after_too_many_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculation, "_MOST", 10)
    boilerplate, other = Boilerplate(), Boilerplate()
    cursor = UpdateCursor(boilerplate)
    for number in range(20):
        learn(boilerplate, SITE, Counts({number}, set()), number)
        other = apply_updates(other, cursor.take())
    assert len(boilerplate.updates) < 12
    for one in (boilerplate, other):
        assert assumed(one, SITE, 0, 19) == ([False, True], [False, True])


def test_what_only_the_state_knows_is_not_assumed() -> None:
    counts = Boilerplate().on_site(SITE)
    for ask in (counts.pages, counts.forms, lambda: counts.stood_on(array(1))):
        with pytest.raises(NeedsState):
            ask()  # type: ignore[no-untyped-call]  # one of them is a lambda


def test_an_assumption_holds_if_the_state_agrees_on_every_sentence() -> None:
    assumption = Assumption("is_common", array(1, 2), np.array([True, False]))
    assert assumption.holds(Counts({1}, set()))
    assert assumption.holds(Counts({7}, {1}))
    assert not assumption.holds(Counts({1, 2}, set()))
    assert not assumption.holds(Counts(set(), set()))


def piped(value: T) -> T:
    """What arrives of a value."""
    pipe = BytesIO()
    send(pipe, value)
    for part in (b"", pipe.getvalue()[:-1]):
        with pytest.raises(EOFError):
            receive(BytesIO(part))
    pipe.seek(0)
    found = receive(pipe)
    assert type(found) is type(value)
    return found


def prepared(method: Method, page: Page, boilerplate: Boilerplate) -> PreparedFingerprint:
    """A fingerprint as a worker makes it."""
    made = PreparedFingerprint.make(method, page, boilerplate)
    found, nothing = piped([made, None])
    assert found is not None
    assert nothing is None
    found.boilerplate = boilerplate
    return found


@every_method
def test_a_fingerprint_comes_back_as_it_was_made(method: Method) -> None:
    for page in PAGES.values():
        counts = open_store("memory:", {}).on_site(page.site)
        here = method.for_state(page, counts)
        there = prepared(method, page, Boilerplate()).verified(page, counts, method)
        assert there == replace(here, title=there.title)
        assert (there.site, there.boilerplate) == (here.site, here.boilerplate)
        assert there.sentences.tolist() == here.sentences.tolist()
        for other in PAGES.values():
            old = method.fingerprint(other).sketch
            assert method.compare(there, old, frozenset()) == method.compare(here, old, frozenset())


@pytest.fixture
def filled() -> PageStore:
    """A state with twenty pages of a site that have one footer."""
    store, method = open_store("memory:", {}), make_method("cascade", {})
    for number in range(20):
        page = Page(f"http://{SITE}/{number}", text="\n".join([*story(number), FOOTER]), site=SITE)
        store.note(method.with_hashes(store.hashes).fingerprint(page).sentences, SITE)
    return store


def test_a_fingerprint_with_a_wrong_assumption_is_made_anew_and_the_next_is_right(filled: PageStore) -> None:
    method, boilerplate, counts = (
        make_method("cascade", {}).with_hashes(filled.hashes),
        Boilerplate(),
        filled.on_site(SITE),
    )
    page = Page(f"http://{SITE}/new", "A ferry", text="\n".join([*story(30), FOOTER]), site=SITE)
    right = method.for_state(page, counts)
    first = prepared(method, page, boilerplate)
    assert first.fingerprint.sketch != right.sketch
    verified = first.verified(page, counts, method)
    assert verified == replace(right, title=verified.title)
    first.learn(SITE, counts)
    second = prepared(method, page, boilerplate)
    assert all(one.holds(counts) for one in second.assumptions)
    assert second.fingerprint.sketch == right.sketch
    assert second.verified(page, counts, method).boilerplate == right.boilerplate
    empty = open_store("memory:", {}).on_site(SITE)
    assert second.fingerprint.boilerplate
    assert second.verified(page, empty, method) == method.for_state(page, empty)


def test_pages_arrive_as_they_were_sent() -> None:
    pages = [
        Page("a", "渡\ud800口", ("a", "\udfff"), "b", "ferry \ud800 渡口 \U0001f6a2\x00", site=SITE, quotes=(1, 2)),
        Page("b"),
        Page("c", text="渡口", unread="too_large", html=2**63, letters=3),
    ]
    assert piped(FingerprintTask(pages)).pages == pages


@pytest.mark.parametrize(
    "raw",
    [
        PageContent("http://river.example/ferry", ARTICLE),
        PageContent("http://river.example/\ud800渡口", "ferry \ud800 渡口 \U0001f6a2"),
        PageContent("u", ""),
        PageContent("u", b"\xff\x00<p>", "text/html; charset=gbk", is_of_url=False),
        PageContent("u", ARTICLE, metadata=ItemMetadata("\ud800渡口", ("ferry", "渡口"), "One.\nTwo.")),
    ],
)
def test_html_arrives_as_it_was_sent(raw: PageContent) -> None:
    assert piped(ReadTask(raw)).raw == raw


def test_a_malformed_message_is_refused() -> None:
    """A process that read hostile HTML may send anything."""
    kinds = ('["Path", ["x"]]', '["Page", []]', '["array", 0, "O"]', '["bytes", "x"]', '[["Page"], []]')
    for head in (*kinds, "[]", "[" * 9_000, "{"):
        pipe = BytesIO(struct.pack(">QQ", len(head), 0) + head.encode())
        with pytest.raises(ValueError, match=r"."):
            receive(pipe)


def test_other_objects_are_not_sent() -> None:
    for value in (object(), {1: object()}, Method):
        with pytest.raises(TypeError):
            send(BytesIO(), value)
