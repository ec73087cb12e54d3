"""A page whose bytes were judged before is not read, and its verdict is the one that reading it would give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Ruled, Ruling
from scrapy_neardup.judge.manual_verdicts import (
    ManualKind,
    ManualVerdict,
    remove_manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.judge.policy import KeepPolicy, Policy, make_preference
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Likeness, Page, Verdict
from scrapy_neardup.page import extraction as reading
from scrapy_neardup.page.extraction import Extractor, HtmlReader, PageContent, extract
from scrapy_neardup.page.source import BodyHasher, PageSource, UnreadPage
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.evidence import Evidence, Keep
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from tests.build import story

ONE, OTHER, MIRROR, PRINT = (
    "http://river.example/1",
    "http://river.example/2",
    "http://mirror.example/1",
    "https://www.river.example/1?print=1",
)


def html(family: int, *, lines: slice = slice(0, 14), title: str = "", nonce: str = "", more: str = "") -> str:
    """A page of the site's form; families have nothing in common, and the nonce is no part of what a page says."""
    told = "".join(f"<p>{sentence}</p>" for sentence in [*story(family, 14)[lines], more] if sentence)
    name = title or f"标题{family}"
    return (
        f"<html><head><title>{name}</title><meta name=csrf content='{nonce}'></head><body><nav><a href=/>首页</a></nav>"
        f"<article><h1>{name}</h1>{told}</article></body></html>"
    )


FIRST = html(1)
SHORT = "<html><body><nav><a href=/>首页</a></nav><p>见附件。</p></body></html>"


@lru_cache(maxsize=1000)
def _extract(content: str, url: str, max_html: int, extractor: Extractor | None) -> Page:
    return extract(content, url, max_html=max_html, extractor=extractor)


def all_but_copies(verdict: Verdict) -> bool:
    return not verdict.is_copy


def all_pass(verdict: Verdict) -> bool:
    return True


class Crawl:
    """A crawl without its engine; ``read`` are the URLs of the pages that were read."""

    def __init__(
        self,
        store: PageStore,
        *,
        short_way: bool = True,
        passes: Callable[[Verdict], bool] = all_but_copies,
        also_copies: frozenset[Likeness] = frozenset(),
        keep: Keep = Keep.EVIDENCE,
        policy: KeepPolicy = "first",
        method: str = "cascade",
        min_letters: int = 40,
        extractor: Extractor | None = None,
        **limits: int,
    ) -> None:
        self.store = store
        self.detector = Detector(
            make_method(method, {}),
            store,
            who="test",
            policy=Policy(
                min_letters=min_letters,
                also_copies=also_copies,
                passes=passes,
                keep=keep,
                preference=make_preference(policy),
            ),
        )
        reader = HtmlReader(limits.get("max_html", 1_000_000), limits.get("max_text", 400_000), extractor)
        self.source = PageSource(DEFAULT_FIELDS, reader, bodies=self.detector.bodies if short_way else None)
        self.read: list[str] = []

    def asked(self, url: str, content: str, **item: Any) -> Ruling:
        draft = self.source.prepare({"html": content, **item}, None, url)
        assert isinstance(draft, UnreadPage)
        ruling = self.detector.check_bytes(url, site_of(url), draft.body)
        if ruling is None:
            self.read.append(url)
            ruling = self.detector.check(self.source.read(draft))
        return ruling

    def judge(self, url: str, content: str, *, sealed: bool = True, lost: bool = False, **item: Any) -> Verdict:
        ruling = self.asked(url, content, **item)
        assert isinstance(ruling, Ruled)
        assert ruling.verdict.same_bytes is (self.read[-1:] != [url] or ruling.page is not None)
        if ruling.reservation is not None and lost:
            self.detector.release(ruling.reservation)
        elif ruling.reservation is not None:
            self.detector.commit(ruling.reservation, sealed=sealed)
        return ruling.verdict


def told(verdict: Verdict) -> tuple[Any, ...]:
    """What of a verdict must not depend on the way; what both pages say is not told of a page that was not read."""
    match = verdict.match
    found = (match.url, round(match.similarity, 4), round(match.containment, 4)) if match else None
    return verdict.kind, verdict.reason, verdict.likeness, found, verdict.url


def filed(store: PageStore) -> set[tuple[Any, ...]]:
    """All that a state knows, by URLs as ids differ; but for marks by which a text is known, and shared sentences."""
    urls = {record.id: record.url for record in store.records()}
    return {
        (
            record.url,
            urls.get(record.original),
            record.similarity,
            record.keys and (len(record.keys), record.leads),
            record.sketch,
            record.delivered,
            replace(store.evidence(record.id) or Evidence(), shared=(), like=0),
        )
        for record in store.records()
    }


def state() -> PageStore:
    """Two of them hash alike: under secrets of their own a pair at a border is a copy in one and none in the other."""
    return memory_state({}, secret=NO_SECRET)


@pytest.fixture
def store() -> PageStore:
    return state()


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same page is parsed once in all tests: they are about whether it is asked for."""
    monkeypatch.setattr(
        reading, "extract", lambda content, url, *, max_html, extractor: _extract(content, url, max_html, extractor)
    )


def test_another_url_with_the_same_bytes_is_a_copy_that_says_so(store: PageStore) -> None:
    crawl = Crawl(store)
    crawl.judge(ONE, FIRST)
    for url in (OTHER, MIRROR, PRINT):
        verdict = crawl.judge(url, FIRST)
        assert told(verdict) == (Kind.DUPLICATE, "", Likeness.IDENTICAL, (ONE, 1.0, 1.0), url)
        assert "the same bytes" in verdict.sentence()
        assert verdict.as_tag()["reason"] == "same_bytes"
    assert crawl.read == [ONE]
    assert {record.url for record in store.records()} == {ONE, OTHER, MIRROR, PRINT}


@pytest.mark.parametrize(
    "changed",
    [
        {"min_letters": 41},
        {"also_copies": frozenset([Likeness.EXCERPT])},
        {"max_html": 900_000},
        {"max_text": 300_000},
        {"extractor": lambda content, url: "".join(story(1))},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_what_decides_how_a_page_is_read_or_judged_has_it_read_again(store: PageStore, changed: dict[str, Any]) -> None:
    Crawl(store).judge(ONE, FIRST)
    crawl = Crawl(store, **changed)
    crawl.judge(ONE, FIRST)
    assert crawl.read == [ONE]
    assert crawl.judge(ONE, FIRST).same_bytes, "and from then on it is known again"


def test_an_extractor_of_the_users_may_read_a_page_in_the_light_of_its_url(store: PageStore) -> None:
    crawl = Crawl(store, extractor=lambda content, url: "".join(story(1 if url == ONE else 2)))
    for url in (ONE, OTHER, ONE):
        crawl.judge(url, FIRST)
    assert crawl.read == [ONE, OTHER]


def test_what_an_item_says_of_its_own_makes_it_another_page(store: PageStore) -> None:
    crawl = Crawl(store)
    crawl.judge(ONE, FIRST)
    for _ in range(2):
        crawl.judge(ONE, FIRST, title="另一个标题")
    assert crawl.read == [ONE, ONE]


def test_digests_depend_on_the_secret_and_on_the_charset() -> None:
    page = PageContent(ONE, FIRST)
    assert BodyHasher(Keyed(b"one"), {}).hash(page) != BodyHasher(Keyed(b"another"), {}).hash(page)
    assert BodyHasher(OPEN, {}).hash(PageContent(ONE, FIRST, is_of_url=False)) == 0
    digests = {
        BodyHasher(OPEN, {}).hash(PageContent(ONE, FIRST.encode(), charset)) for charset in (None, "text/html", "a")
    }
    assert len(digests - {0}) == 3, "the same bytes are another page by another charset"


def test_a_copy_that_was_dropped_is_dropped_again_by_its_bytes_with_its_evidence(store: PageStore) -> None:
    edited = html(1, more="由编辑部转载，略有删改，图片由读者提供。")
    first = Crawl(store)
    first.judge(ONE, FIRST)
    before = first.judge(MIRROR, edited)
    crawl = Crawl(store)
    again = crawl.judge(MIRROR, edited)
    assert crawl.read == []
    assert told(again) == told(before)
    assert (again.id, again.likeness) == (before.id, Likeness.NEAR)
    assert again.match is not None
    assert before.match is not None
    assert again.match.shared == before.match.shared


def test_what_was_said_by_hand_counts_for_more(store: PageStore) -> None:
    Crawl(store).judge(ONE, FIRST)
    Crawl(store).judge(OTHER, html(2))
    write_manual_verdicts(
        store, ManualVerdict(MIRROR, ManualKind.KEEP, ONE, 1), ManualVerdict(PRINT, ManualKind.COPY, OTHER, 1)
    )
    crawl = Crawl(store)
    assert crawl.judge(MIRROR, FIRST).kind is Kind.UNIQUE
    by_hand = crawl.judge(PRINT, FIRST)
    assert by_hand.match is not None
    assert (by_hand.match.url, by_hand.by_hand) == (OTHER, True)
    remove_manual_verdicts(store, PRINT)
    after = Crawl(store).judge(PRINT, FIRST)
    assert after.match is not None
    assert after.match.url in (ONE, MIRROR), "as it is no copy of the other one by its text"


def test_a_copy_by_hand_takes_no_other_copies_of_its_text_along() -> None:
    """The later copies of that text stay with the group that the rules found, whether they are read or not."""
    said = []
    for short_way in (True, False):
        store, also_copies = state(), frozenset([Likeness.SAME_TITLE])
        crawl = Crawl(store, short_way=short_way, also_copies=also_copies)
        crawl.judge(ONE, BODIES[3])
        crawl.judge("http://river.example/3", BODIES[3])
        crawl.judge(OTHER, html(2))
        write_manual_verdicts(
            store, ManualVerdict(PRINT, ManualKind.COPY, OTHER, 1), ManualVerdict(OTHER, ManualKind.COPY, MIRROR, 1)
        )
        crawl = Crawl(store, short_way=short_way, also_copies=also_copies)
        by_hand, copy = crawl.judge(PRINT, BODIES[3]), crawl.judge(MIRROR, BODIES[3])
        assert by_hand.match is not None
        assert copy.match is not None
        assert (by_hand.match.url, copy.match.url) == (OTHER, ONE)
        update = crawl.judge(OTHER, html(2, more="由编辑部转载，略有删改，图片由读者提供。"))
        said.append((told(copy), told(update)))
    assert said[0] == said[1]


def test_what_has_become_boilerplate_is_read_again(store: PageStore) -> None:
    """Of a site the lines that stand on sixteen of its pages are boilerplate, so the same bytes may be unjudged."""
    crawls = Crawl(state(), short_way=False), Crawl(store)
    notice = html(1, lines=slice(0, 3))
    for crawl in crawls:
        crawl.judge(ONE, notice)
        for number in range(2, 20):
            crawl.judge(f"http://river.example/n{number}", html(number, more=story(1, 14)[0]))
    long, short = (crawl.judge(OTHER, notice) for crawl in crawls)
    assert told(short) == told(long)
    assert crawls[1].read[-1] == OTHER


def test_a_state_without_such_rows_gains_them(store: PageStore) -> None:
    old = Crawl(store, short_way=False)
    old.judge(ONE, FIRST)
    old.judge(MIRROR, html(1, more="由编辑部转载，略有删改，图片由读者提供。"))
    old.judge(OTHER, SHORT)
    assert list(store.rows(b"x")) == []
    pages = ((ONE, FIRST), (MIRROR, html(1, more="由编辑部转载，略有删改，图片由读者提供。")), (OTHER, SHORT))
    crawl = Crawl(store)
    for _ in range(2):
        for url, content in pages:
            crawl.judge(url, content)
    assert crawl.read == [url for url, _ in pages]
    assert not set(check(store).counts) - {"left over"}


class Other(BodyHasher):
    """Digests of which the first bytes are always the same, as if somebody had many pages."""

    def hash(self, content: Any, *about: object) -> int:
        return super().hash(content, *about) & 0xFFFFFF


def test_bodies_whose_digests_begin_alike_are_not_taken_for_each_other(store: PageStore) -> None:
    crawl = Crawl(store)
    crawl.source._bodies = Other(store.hashes, {})
    for url, content in ((ONE, FIRST), (OTHER, html(2)), (MIRROR, FIRST)):
        crawl.judge(url, content)
    assert crawl.read == [ONE, OTHER, MIRROR]
    assert crawl.judge(PRINT, html(2)).same_bytes, "the later one is found"


# Whole crawls, with and without the short way. No page is kept by hand: of two originals with one text the long way
# names the newer one, and the short way the one that a page was a copy of.

URLS = [ONE, OTHER, MIRROR, PRINT, "http://third.example/"]
BODIES = [
    FIRST,
    html(1, nonce="a"),
    html(1, more="由编辑部转载，略有删改，图片由读者提供。"),
    html(1, lines=slice(0, 11), more="".join(story(5, 14)[:4])),
    html(1, lines=slice(0, 5)),
    html(1, title="另一个标题"),
    html(2),
    html(3, lines=slice(0, 2)),
    SHORT,
    FIRST.replace(story(1, 14)[3][2], "梨", 1),  # a minor update of the first
]


@dataclass
class Step:
    url: str
    body: int
    what: str
    seal: bool = field(default=True)


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(URLS),
        st.integers(0, len(BODIES) - 1),
        st.sampled_from(["page"] * 12 + ["lost", "new crawl", "forget", "copy", "take back"]),
        st.booleans(),
    ),
    min_size=4,
    max_size=30,
)


def crawled(steps: list[Step], *, short_way: bool, **settings: Any) -> Iterator[tuple[Any, ...]]:
    """What comes of each step, and of all."""
    store = state()
    crawl = Crawl(store, short_way=short_way, **settings)
    for step in steps:
        if step.what in ("new crawl", "copy"):
            crawl.detector.seal()
            crawl.detector.end()
            if step.what != "new crawl":
                write_manual_verdicts(
                    store, ManualVerdict(step.url, ManualKind(step.what), URLS[step.body % len(URLS)], 1)
                )
            crawl = Crawl(store, short_way=short_way, **settings)
        elif step.what == "forget":
            crawl.detector.seal()
            if (known := store.find(step.url)) is not None:
                store.forget([known.id])
        elif step.what == "take back":
            remove_manual_verdicts(store, step.url)
        else:
            # A former version is there until the page is sealed, and a copy by hand may still stand for that one: the
            # long way names its group, the short way that of the new version.
            sealed = step.seal or any(one.what == "copy" for one in steps)
            verdict = crawl.judge(step.url, BODIES[step.body], sealed=sealed, lost=step.what == "lost")
            yield told(verdict)
    crawl.detector.seal()
    crawl.detector.end()
    assert check(store).sound
    yield tuple(sorted(map(repr, filed(store))))


POLICIES: dict[str, dict[str, Any]] = {
    "default": {},
    "all pass": {"passes": all_pass},
    "more are copies": {"also_copies": frozenset([Likeness.EXCERPT, Likeness.SAME_TITLE])},
    "texts": {"keep": Keep.TEXTS},
    "nothing": {"keep": Keep.NOTHING},
    "hosts": {"policy": ("mirror.example", "third.example")},
    "longest": {"policy": "longest"},
    "simhash": {"method": "simhash"},
}


def decided(said: tuple[Any, ...]) -> tuple[Any, ...]:
    """What is the same for any pages; of several earlier ones with one text each way may name another."""
    kind, reason, _, found, url = said
    return kind, reason, url, found is not None


def steps_of(*places: tuple[str, int]) -> list[Step]:
    return [Step(f"http://{place}", body, "page", seal=False) for place, body in places]


@pytest.mark.parametrize("policy", POLICIES)
@example(steps=steps_of(("river.example/2", 2), ("river.example/3", 1), ("river.example/1", 3), ("river.example/3", 1)))
@example(
    steps=steps_of(("river.example/1", 0), ("river.example/2", 3), ("mirror.example/1", 3), ("mirror.example/1", 3))
)
@example(  # of two originals that are very alike the copy keeps the one that it has
    steps=steps_of(
        ("river.example/1", 2),
        ("mirror.example/1", 3),
        ("river.example/2", 9),
        ("mirror.example/1", 3),
        ("river.example/2", 3),
    )
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_crawls_with_the_short_way_and_without_come_to_the_same(policy: str, steps: list[Step]) -> None:
    (*short, filed_so), (*long, filed_otherwise) = (
        list(crawled(steps, short_way=way, **POLICIES[policy])) for way in (True, False)
    )
    assert list(map(decided, short)) == list(map(decided, long))
    assert len(filed_so) == len(filed_otherwise)
