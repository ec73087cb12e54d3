"""Pages that were too much to be read or judged: they pass, and are known by URL and mark alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scrapy_neardup.errors import Reason
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.state.opening import memory_state
from tests.build import story

URL = "http://river.example/ferry"


@pytest.fixture
def detector() -> Detector:
    return Detector(make_method("cascade", {}), memory_state({}), who="test")


def judged(detector: Detector, page: Page) -> str:
    return detector.judge_now(page, sealed=True).headline


@pytest.mark.parametrize("reason", ["too_slow", "too_large"])
def test_it_passes_and_is_unchanged_the_next_time(detector: Detector, reason: Reason) -> None:
    page = Page(URL, html=7, unread=reason, body=5)
    assert detector.check_bytes(URL, 5) is None
    assert judged(detector, page) == f"unjudged ({reason})"
    again = detector.judge_now(page, sealed=True)
    assert again.match is not None
    assert (again.headline, again.match.similarity, again.match.containment) == ("unchanged", 1.0, 1.0)
    by_bytes = detector.check_bytes(URL, 5)
    assert isinstance(by_bytes, Ruled), "it is not read again"
    assert by_bytes.verdict.headline == "unchanged"
    assert judged(detector, replace(page, url=f"{URL}/2")) == f"unjudged ({reason})", "nobody's duplicate"
    assert judged(detector, replace(page, html=8, body=6)) == f"unjudged ({reason})"


def test_an_article_that_was_too_much_or_has_no_mark_is_judged(detector: Detector) -> None:
    assert judged(detector, Page(URL, html=7, unread="too_slow")) == "unjudged (too_slow)"
    assert judged(detector, Page(URL, text="".join(story(1, 12)), html=8)) == "unique"
    assert judged(detector, Page(URL, unread="too_large")) == "unjudged (too_large)"
