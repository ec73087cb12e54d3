"""Small pages of every kind in benchmarks/hostile.py are judged or have a reason."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from scrapy_neardup.errors import PageError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageResponse, PageSource
from scrapy_neardup.state.opening import memory_state
from tests.page.test_limits import FIELDS, URL


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    try:
        import hostile_pages
    finally:
        del sys.path[0]
    return hostile_pages


@pytest.mark.slow
def test_every_kind_is_judged_or_has_a_reason(pages: ModuleType) -> None:
    source, answers = PageSource(FIELDS, HtmlReader(5_000_000)), {}
    for name in pages.kinds():
        room = pages.Room(12_000, 250)
        detector = Detector(make_method("cascade", {}), memory_state({}), who="test")
        item, served = {}, None
        if name in pages.KINDS:
            made = pages.KINDS[name](room)
            served = PageResponse(URL, made if isinstance(made, bytes) else made.encode("utf-8", "replace"))
        else:
            item = pages.ITEMS[name](room)
        try:
            answers[name] = detector.judge_now(source.page(item, served, URL), sealed=False).headline
        except PageError as error:
            answers[name] = error.reason
    assert len(answers) > 200
    others = {"not_html", "unjudged (no_text)", "unjudged (too_short)"}
    assert set(answers.values()) <= {"unique", *others}
    judged = [name for name, answer in answers.items() if answer == "unique"]
    assert len(judged) > 0.9 * len(answers), "they stand beside prose, which is judged"
