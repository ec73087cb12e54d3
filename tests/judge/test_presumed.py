"""What is presumed of boilerplate: what is learned of it, and that no fingerprint is taken that rests on an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.judge import speculation
from scrapy_neardup.judge.fingerprint_tasks import Prepared, Texts, packed, packed_title, pages_of, unpacked
from scrapy_neardup.judge.speculation import Asked, Boilerplate, NotAtHand
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page, SiteCounts
from scrapy_neardup.page.worker import Message
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from tests.judge.test_detector import story
from tests.methods.test_contract import PAGES, every_method

SITE = "moor.example"
FOOTER = "The Moor Gazette is printed on paper from the mill below the weir."


class Known:
    """Counts of a site, of which everything is said here."""

    def __init__(self, own: set[int], common: set[int]) -> None:
        self.own = own
        self.common = own | common

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


def numbers(*found: int) -> npt.NDArray[np.uint32]:
    return np.array(found, np.uint32)


def said(known: Boilerplate, site: str, *sentences: int) -> tuple[list[bool], list[bool]]:
    of_site = known.of(site)
    return of_site.is_own(numbers(*sentences)).tolist(), of_site.is_common(numbers(*sentences)).tolist()


def learn(known: Boilerplate, site: str, state: SiteCounts, *sentences: int) -> None:
    of_site = known.of(site)
    of_site.is_common(numbers(*sentences))
    known.learn(site, state, of_site.asked)


def test_what_a_state_says_is_presumed_from_then_on() -> None:
    known = Boilerplate()
    assert said(known, SITE, 1, 2, 3) == ([False] * 3, [False] * 3)
    learn(known, SITE, Known({1}, {2}), 1, 2, 3)
    assert said(known, SITE, 1, 2, 3) == ([True, False, False], [True, True, False])
    assert said(known, "mill.example", 1, 2, 3) == ([False] * 3, [False, True, False])
    learn(known, SITE, Known(set(), {1}), 1, 2, 3)
    assert said(known, SITE, 1, 2, 3) == ([False] * 3, [True, False, False])


def test_its_lessons_teach_another_process_the_same() -> None:
    known, other = Boilerplate(), Boilerplate()
    learn(known, SITE, Known({1, 5}, {2}), 1, 2, 3, 5)
    learn(known, SITE, Known({1}, {2}), 1, 5)
    learn(known, SITE, Known({1}, {2}), 1, 5)  # nothing new
    assert len(known.lessons) == 4
    for lesson in known.lessons:
        other.take(lesson)
    assert said(other, SITE, 1, 2, 3, 5) == said(known, SITE, 1, 2, 3, 5)


def test_lessons_that_are_too_many_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speculation, "_MOST", 10)
    known = Boilerplate()
    lessons = known.lessons
    for number in range(20):
        learn(known, SITE, Known({number}, set()), number)
    assert known.lessons is not lessons
    assert len(known.lessons) < 12
    assert said(known, SITE, 0, 19) == ([False, True], [False, True])


def test_what_only_the_state_can_tell_nobody_presumes() -> None:
    of_site = Boilerplate().of(SITE)
    for ask in (of_site.pages, of_site.forms, lambda: of_site.stood_on(numbers(1))):
        with pytest.raises(NotAtHand):
            ask()


def test_what_was_presumed_holds_if_the_state_says_it_of_every_sentence() -> None:
    asked = Asked("is_common", numbers(1, 2), np.array([True, False]))
    assert asked.holds(Known({1}, set()))
    assert asked.holds(Known({7}, {1}))
    assert not asked.holds(Known({1, 2}, set()))
    assert not asked.holds(Known(set(), set()))


def prepared(method: Method, page: Page, known: Boilerplate) -> Prepared:
    """A fingerprint that was made as in another process."""
    of_site = known.of(page.site)
    made = method.for_state(page, of_site)
    title = b"" if made.title is None else packed_title(method.pack_title(made.title))
    answer = Message({"made": [packed(made, title, of_site.asked)]}, title)
    [found] = unpacked(answer, known)
    assert found is not None
    return found


@every_method
def test_a_fingerprint_comes_back_as_it_was_made(method: Method) -> None:
    for page in PAGES.values():
        of_site = open_store("memory:", {}).on_site(page.site)
        here = method.fingerprint_own(page, of_site.is_common, of_site)
        there = prepared(method, page, Boilerplate()).under(page, of_site, method)
        assert there == replace(here, title=there.title)
        assert (there.site, there.boilerplate) == (here.site, here.boilerplate)
        assert there.sentences.tolist() == here.sentences.tolist()
        for other in PAGES.values():
            old = method.fingerprint(other).sketch
            assert method.compare(there, old, frozenset()) == method.compare(here, old, frozenset())


@pytest.fixture
def filled() -> PageStore:
    """A state that has seen a footer on twenty pages of a site."""
    store, method = open_store("memory:", {}), make_method("cascade", {})
    for number in range(20):
        page = Page(f"http://{SITE}/{number}", text="\n".join([*story(number), FOOTER]), site=SITE)
        store.note(method.with_hashes(store.hashes).fingerprint(page).sentences, SITE)
    return store


def test_one_that_presumes_too_little_is_made_anew_and_the_next_one_is_right(filled: PageStore) -> None:
    method, known = make_method("cascade", {}).with_hashes(filled.hashes), Boilerplate()
    page = Page(f"http://{SITE}/new", "A ferry", text="\n".join([*story(30), FOOTER]), site=SITE)
    of_site = filled.on_site(SITE)
    right = method.for_state(page, of_site)
    assert right.boilerplate
    first = prepared(method, page, known)
    assert first.fingerprint.sketch != right.sketch
    assert not all(one.holds(of_site) for one in first.asked)
    assert first.under(page, of_site, method) == replace(right, title=first.under(page, of_site, method).title)
    known.learn(SITE, of_site, first.asked)
    second = prepared(method, page, known)
    assert all(one.holds(of_site) for one in second.asked)
    assert second.fingerprint.sketch == right.sketch
    assert second.under(page, of_site, method).boilerplate == right.boilerplate


def test_one_that_presumes_too_much_is_made_anew(filled: PageStore) -> None:
    method, known = make_method("cascade", {}).with_hashes(filled.hashes), Boilerplate()
    page = Page(f"http://{SITE}/new", text="\n".join([*story(30), FOOTER]), site=SITE)
    known.learn(SITE, filled.on_site(SITE), prepared(method, page, known).asked)
    nothing = open_store("memory:", {}).on_site(SITE)
    assert prepared(method, page, known).fingerprint.boilerplate
    assert prepared(method, page, known).under(page, nothing, method) == method.for_state(page, nothing)


def test_pages_come_out_as_they_were_put_in() -> None:
    pages = [
        Page("a", "渡\ud800口", ("a", "\udfff"), "b", "ferry \ud800 渡口 \U0001f6a2\x00", site=SITE, quotes=(1, 2)),
        Page("b"),
        Page("c", text="渡口", unread="too_large", html=2**63, letters=3),
    ]
    message = Texts(pages).message({"lessons": [(None, 1, True)], "are_all": False})
    assert pages_of(message) == pages
    assert Texts(pages).size == sum(len(page.text) for page in pages)
