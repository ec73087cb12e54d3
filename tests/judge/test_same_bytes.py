"""A page with the same bytes at the same URL is not read.

Its verdict is the one that reading it would give: ``test_crawls_model`` asks for it in both ways.
"""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.files import Entry
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.judge.lists import ManualKind, ManualVerdict, write_manual_verdicts
from scrapy_neardup.judge.records import Batch
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind, Outcome, Page, Verdict
from scrapy_neardup.page.extraction import Extractor, HtmlReader, PageContent
from scrapy_neardup.page.source import BodyHasher, PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from tests.build import answer, make_detector, outcome, reserve, story

ONE, OTHER, MIRROR = "http://river.example/1", "http://river.example/2", "http://mirror.example/1"


def html(*more: str) -> str:
    told = "".join(f"<p>{sentence}</p>" for sentence in (*story(1, 14), *more))
    return f"<html><head><title>标题</title></head><body><article><h1>标题</h1>{told}</article></body></html>"


FIRST, EDITED = html(), html("由编辑部转载，略有删改，图片由读者提供。")
SHORT = "<html><body><nav><a href=/>首页</a></nav><p>见附件。</p></body></html>"


def judge(
    store: PageStore,
    url: str,
    content: str,
    *,
    short_way: bool = True,
    extractor: Extractor | None = None,
    max_html: int = 1_000_000,
    max_text: int = 400_000,
    title: str = "",
    **given: Any,
) -> Verdict:
    """The verdict of one more crawl on a record. ``short_way``: whether it knows the bytes of pages."""
    detector, reader = make_detector(store, **given), HtmlReader(max_html, max_text, extractor)
    source = PageSource(DEFAULT_FIELDS, reader, bodies=detector.bodies if short_way else None, hashes_items=False)
    batch = Batch(detector, lambda page: detector.judge_now(page, sealed=True), source)
    return batch.judge(Entry("", 1, "", {"url": url, "html": content, "title": title})).verdict


@pytest.fixture
def store() -> PageStore:
    return memory_state({}, secret=NO_SECRET)


def test_what_was_delivered_or_unjudged_at_a_url_is_not_read_again(store: PageStore) -> None:
    """A dropped copy is read each time."""
    pages, known = (
        [(ONE, FIRST), (MIRROR, EDITED), (OTHER, SHORT)],
        [Outcome.UNCHANGED, Outcome.DUPLICATE, Outcome.UNCHANGED],
    )
    for short_way, kinds, saved in [
        (False, [Outcome.UNIQUE, Outcome.DUPLICATE, Outcome.UNJUDGED], [False] * 3),
        (True, known, [False] * 3),
        (True, known, [True, False, True]),
    ]:
        found = [judge(store, *page, short_way=short_way) for page in pages]
        assert [one.outcome for one in found] == kinds
        assert [one.same_bytes for one in found] == saved
    assert "the same bytes" in found[0].sentence()
    assert found[0].as_tag()["reason"] == "same_bytes"
    assert not check(store).counts.keys() - {"left over"}


@pytest.mark.parametrize(
    "changed",
    [
        {"min_letters": 41},
        {"also_copies": frozenset([Kind.EXCERPT])},
        {"max_html": 900_000},
        {"max_text": 300_000},
        {"extractor": lambda content, url: "".join(story(1))},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_decides_how_a_page_is_read_or_judged_has_it_read_again(store: PageStore, changed: dict[str, Any]) -> None:
    found = [judge(store, ONE, FIRST, **given) for given in ({}, changed, changed)]
    assert [one.same_bytes for one in found] == [False, False, True], "from then on it is known again"


def test_other_fields_of_its_item_make_another_page(store: PageStore) -> None:
    found = [judge(store, ONE, FIRST, title=title) for title in ("", "另一个标题", "另一个标题")]
    assert [one.outcome for one in found] == [Outcome.UNIQUE, Outcome.UPDATED, Outcome.UNCHANGED]
    assert [one.same_bytes for one in found] == [False, False, True]


def test_a_page_is_read_while_another_version_of_it_is_in_flight(store: PageStore) -> None:
    judge(store, ONE, FIRST)
    known, detector = store.find(ONE), make_detector(store)
    assert known is not None
    other = reserve(detector, Page(ONE, text="".join(story(9))))
    assert detector.check_bytes(ONE, known.body) is None
    detector.release(other)
    assert detector.check_bytes(ONE, known.body) is not None


def test_an_unjudged_page_is_read_again_once_a_person_calls_it_a_copy(store: PageStore) -> None:
    """Its text is the form of its site, so only a manual verdict can make it a copy."""
    detector, form = make_detector(store), story(9, 12)
    for number in range(16):
        text = "".join([*story(100 + number, 3), *form])
        answer(detector, Page(f"http://river.example/form/{number}", str(number), text=text, site="river.example"))
    menu = Page(ONE, "表格", text="".join(form[:6]), html=1, site="river.example", body=7)
    assert answer(detector, menu).headline == "unjudged (boilerplate)"
    assert detector.check_bytes(ONE, 7) is not None
    write_manual_verdicts(store, ManualVerdict(ONE, ManualKind.COPY, "http://river.example/form/1", 1))
    detector = make_detector(store)
    assert detector.check_bytes(ONE, 7) is None
    assert outcome(detector, menu) is Outcome.DUPLICATE


def test_digests_depend_on_the_secret_and_on_the_charset() -> None:
    page = PageContent(ONE, FIRST)
    assert BodyHasher(Keyed(b"one"), {}).hash(page) != BodyHasher(Keyed(b"another"), {}).hash(page)
    assert BodyHasher(OPEN, {}).hash(PageContent(ONE, FIRST, is_of_url=False)) == 0
    digests = {
        BodyHasher(OPEN, {}).hash(PageContent(ONE, FIRST.encode(), charset)) for charset in (None, "text/html", "a")
    }
    assert len(digests - {0}) == 3, "the same bytes are another page by another charset"
