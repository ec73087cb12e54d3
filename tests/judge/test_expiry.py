"""What a crawl keeps known by seeing it, and what becomes of a page that was forgotten."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.state.expiry import Bounds
from scrapy_neardup.state.opening import memory_state
from tests.build import answer, judge_page, kind, page, story
from tests.state.clock import HOUR, Clock

DAY = Bounds(ttl=24 * HOUR)
BODY, OTHER = story(1, 20), story(2, 2)
ARTICLE = page("first", BODY)


class Crawl:
    """A crawl on a state whose clock is moved; ``expired``: the pages that it reports as forgotten."""

    def __init__(self, bounds: Bounds, *, drops: bool = True) -> None:
        self.clock, self.expired = Clock(), 0
        self.store = memory_state({})
        self.clock.govern(self.store)
        self.detector = Detector(
            make_method("cascade", {}),
            self.store,
            who="test",
            bounds=bounds,
            on_expired=self.count,
            policy=Policy(passes=lambda verdict: not (drops and verdict.is_copy)),
        )

    def count(self, pages: int) -> None:
        self.expired += pages

    def sees(self, wanted: Page, hours: float = 20) -> Verdict:
        self.clock.now += hours * HOUR
        return answer(self.detector, wanted)

    def sees_others(self, many: int = 40) -> None:
        for number in range(many):
            self.clock.now += 1
            assert (
                kind(self.detector, page(f"other{number}-{self.clock.now}", story(1000 + number))) is not Kind.UNCHANGED
            )


@pytest.mark.parametrize(
    ("comes", "drops", "expected"),
    [
        (lambda number: page(f"copy{number}", [*BODY, "由编辑部转载。"]), True, Kind.DUPLICATE),
        (lambda number: page("copy", BODY), True, Kind.DUPLICATE),
        (lambda number: page("copy", BODY), False, Kind.UNCHANGED),
        (lambda number: page(f"further{number}", [*BODY[4:17], *OTHER]), True, Kind.DUPLICATE),
    ],
    ids=["other copies", "the same copy", "a delivered copy", "copies of a variant"],
)
def test_an_article_is_known_while_copies_of_it_come(comes: Callable[[int], Page], drops: bool, expected: Kind) -> None:
    crawl = Crawl(DAY, drops=drops)
    for one in (ARTICLE, page("variant", [*BODY[:17], *OTHER]), comes(0)):
        crawl.sees(one)
    for number in range(1, 6):
        crawl.sees_others(8)
        found = crawl.sees(comes(number))
        assert found.kind is expected
        assert found.as_tag()["original"] == ARTICLE.url
    assert crawl.expired > 0


def test_at_its_end_a_crawl_removes_what_is_too_much_as_far_as_its_pages_are_sealed() -> None:
    for sealed in [True, False]:
        crawl = Crawl(Bounds(max_pages=5))
        for number in range(30):
            crawl.clock.now += HOUR
            ruling = crawl.detector.check(page(f"page{number}", story(100 + number)))
            crawl.detector.commit(ruling.reservation, sealed=False)  # type: ignore[union-attr,arg-type]
        assert (crawl.store.pages, crawl.expired) == (30, 0), sealed
        if sealed:
            crawl.detector.seal()
        crawl.detector.trim()
        assert (crawl.store.pages, crawl.expired) == ((5, 25) if sealed else (30, 0))
        if sealed:
            assert [record.url for record in crawl.store.records()] == [
                f"http://page{n}.example/" for n in range(25, 30)
            ]


def test_a_state_that_holds_much_more_than_it_may_is_not_emptied_by_a_small_crawl_at_once() -> None:
    crawl = Crawl(Bounds())
    crawl.sees_others(40)
    small = Detector(make_method("cascade", {}), crawl.store, who="small", bounds=Bounds(max_pages=5))
    for number in range(3):
        judge_page(small, page(f"small{number}", story(500 + number)))
    small.seal()
    small.trim()
    assert 43 - 3 * 8 <= crawl.store.pages < 43
