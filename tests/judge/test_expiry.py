"""Which pages a crawl keeps known by seeing them, and how many it forgets."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import Mock

import pytest

from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import memory_state
from tests.build import answer, make_detector, outcome, page
from tests.build import story_without_numbers as story
from tests.state.clock import HOUR, Clock

BODY, OTHER = story(1, 20), story(2, 2)
ARTICLE = page("first", BODY)


class Crawl:
    """A crawl whose clock the test moves; ``expired``: the number of pages that it reports as forgotten."""

    def __init__(self, bounds: Bounds, *, drops: bool = True) -> None:
        self.clock, self.expired = Clock(), 0
        self.store = memory_state({})
        self.clock.govern(self.store)
        self.detector = make_detector(self.store, drops=drops, bounds=bounds, on_expired=self.count)

    def count(self, pages: int) -> None:
        self.expired += pages

    def sees(self, wanted: Page) -> Verdict:
        self.clock.now += 20 * HOUR
        return answer(self.detector, wanted)

    def sees_others(self, many: int) -> None:
        for number in range(many):
            self.clock.now += 1
            assert outcome(self.detector, page(f"other{self.clock.now}", story(1000 + number))) is not Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("comes", "drops", "expected"),
    [
        (lambda number: page(f"copy{number}", [*BODY, "由编辑部转载。"]), True, Outcome.DUPLICATE),
        (lambda number: page("copy", BODY), True, Outcome.DUPLICATE),
        (lambda number: page("copy", BODY), False, Outcome.UNCHANGED),
        (lambda number: page(f"further{number}", [*BODY[4:17], *OTHER]), True, Outcome.DUPLICATE),
    ],
    ids=["other copies", "the same copy", "a delivered copy", "copies of a variant"],
)
def test_an_article_is_known_while_copies_come(comes: Callable[[int], Page], drops: bool, expected: Outcome) -> None:
    crawl = Crawl(Bounds(ttl=24 * HOUR), drops=drops)
    for one in (ARTICLE, page("variant", [*BODY[:17], *OTHER]), comes(0)):
        crawl.sees(one)
    for number in range(1, 6):
        crawl.sees_others(8)
        found = crawl.sees(comes(number))
        assert (found.outcome, found.as_tag()["original"]) == (expected, ARTICLE.url)
    assert crawl.expired > 0


def test_a_page_that_comes_while_it_expires_is_new_and_its_state_sound() -> None:
    crawl = Crawl(Bounds(ttl=24 * HOUR))
    for _ in range(6):
        crawl.clock.now += 30 * HOUR
        assert outcome(crawl.detector, ARTICLE) is Outcome.UNIQUE
        assert set(check(crawl.store).counts) <= {"left over"}
    assert crawl.expired == 5


@pytest.mark.parametrize("sealed", [True, False])
def test_at_its_end_a_crawl_removes_the_oldest_surplus_of_its_sealed_pages(
    sealed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = Crawl(Bounds(max_pages=5))
    for number in range(30):
        crawl.clock.now += HOUR
        crawl.detector.judge_now(page(f"page{number}", story(100 + number)), sealed=False)
    assert (crawl.store.pages, crawl.expired) == (30, 0)
    if sealed:
        crawl.detector.seal()
    monkeypatch.setattr("scrapy_neardup.judge.detector._IDLE", 4)
    monkeypatch.setattr(crawl.store, "expire", expire := Mock(wraps=crawl.store.expire))
    crawl.detector.trim()
    assert sealed or expire.call_count == 4, "nothing may go, so it does not try 30 times"
    assert crawl.expired == (25 if sealed else 0)
    left = [record.url for record in crawl.store.records()]
    assert left == [f"http://page{n}.example/" for n in range(25 if sealed else 0, 30)]


def test_a_small_crawl_does_not_empty_a_large_state_at_once() -> None:
    crawl = Crawl(Bounds())
    crawl.sees_others(40)
    small = make_detector(crawl.store, who="small", bounds=Bounds(max_pages=5))
    for number in range(3):
        answer(small, page(f"small{number}", story(500 + number)))
    small.seal()
    small.trim()
    assert 43 - 3 * 8 <= crawl.store.pages < 43
