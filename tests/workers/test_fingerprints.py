"""Fingerprints that workers make: those of this process, or none."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page, SiteCounts
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.source import PageContent, PageSource, RiskyPage, UnreadPage
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.workers.pool import TaskFailed, WorkerPool
from scrapy_neardup.workers.speculation import PreparedFingerprint
from scrapy_neardup.workers.tasks import FingerprintTask, ReadingOptions, ReadPage, ReadTask, WorkerOptions
from tests.build import story
from tests.workers import users
from tests.workers.users import SECRET, fingerprints, opened

pytestmark = pytest.mark.slow  # processes of their own

SITE = "moor.example"
FOOTER = ["本站编辑部设在河湾镇旧码头的第三仓库二楼。", "版权所有，转载请先给编辑部写信说明。"]
READING = ReadingOptions(1_000_000, only_quick=True)


def raw(number: int, said: ItemMetadata | None = None, title: str = "") -> PageContent:
    lines = "".join(f"<p>{line}</p>" for line in [*story(number), *FOOTER])
    html = f"<html><head><title>{title or f'第{number}号船'}</title></head><body>{lines}</body></html>"
    return PageContent(f"http://{SITE}/{number}", html, metadata=said or ItemMetadata())


def whole(page: PageContent) -> Page:
    """The page as it is judged."""
    source = PageSource(DEFAULT_FIELDS, 1_000_000, None)
    draft = source.prepare({**page.metadata._asdict(), "html": page.content}, None, page.url)
    assert isinstance(draft, UnreadPage)
    return source.read(draft)


def read(pool: WorkerPool, page: PageContent) -> ReadPage:
    result = pool.submit(ReadTask(page)).result(60)
    assert isinstance(result, ReadPage), result
    return result


def is_right(pool: WorkerPool, number: int, counts: SiteCounts) -> bool:
    """Whether a worker assumes what the state says; if not, it learns that."""
    prepared = read(pool, raw(number)).prepared
    assert prepared is not None
    holds = all(one.holds(counts) for one in prepared.assumptions)
    prepared.learn(SITE, counts)
    return holds


def assert_same(prepared: PreparedFingerprint | None, page: Page, method: Method, counts: SiteCounts) -> None:
    assert prepared is not None
    assert all(one.holds(counts) for one in prepared.assumptions)
    here, there = method.for_state(page, counts), prepared.verified(page, counts, method)
    assert there == replace(here, title=there.title)
    assert there.sentences.tolist() == here.sentences.tolist()


@pytest.fixture
def store() -> PageStore:
    return open_store("memory:", {}, secret=Secret(SECRET))


def test_they_are_those_of_this_process(store: PageStore) -> None:
    method, options = make_method("cascade", {}).with_hashes(store.hashes), fingerprints(hashes=store.hashes)
    pages = [
        raw(0),
        raw(1, ItemMetadata("渡口的另一艘船", ("渡口", "木船"), "它今天第一次开航。")),
        raw(2, ItemMetadata("\ud800")),
    ]
    with opened(WorkerOptions(30.0, READING, options)) as pool:
        for page in pages:
            result = read(pool, page)
            assert result.page == extract(str(page.content), page.url, max_html=1_000_000)
            assert_same(result.prepared, whole(page), method, store.on_site(SITE))
        assert pool.replaced == 0
    texts = [*map(whole, pages), Page("u", "\ud800", text=" \udfff\x00")]
    with opened(WorkerOptions(30.0, None, options)) as pool:
        made = pool.submit(FingerprintTask(texts)).result(60)
        assert isinstance(made, list)
        for text, prepared in zip(texts, made, strict=True):
            assert_same(prepared, text, method, store.on_site(text.site))


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_what_the_state_says_of_one_page_is_assumed_of_the_next_by_a_new_worker_too(store: PageStore) -> None:
    method = make_method("cascade", {}).with_hashes(store.hashes)
    for number in range(100, 140):
        page = whole(raw(number))
        store.note(method.fingerprint(page).sentences, page.site, everywhere=True)
    counts = store.on_site(SITE)
    with opened(WorkerOptions(30.0, READING, fingerprints(hashes=store.hashes))) as pool:
        assert [is_right(pool, number, counts) for number in (20, 21, 22)] == [False, True, True]
        os.kill(pool.process_ids[0], signal.SIGKILL)
        time.sleep(0.1)
        assert is_right(pool, 23, counts)
        assert pool.replaced == 1


def test_what_is_no_page_or_may_take_long_has_none() -> None:
    with opened(WorkerOptions(30.0, READING, fingerprints())) as pool:
        error = pool.submit(ReadTask(PageContent("u", b"%PDF-1.7"))).result(60)
        assert isinstance(error, ExtractionError)
        assert error.reason == "not_html"
        assert isinstance(pool.submit(ReadTask(PageContent("u", "<p>渡口" + "<br>" * 9_000))).result(60), RiskyPage)
        assert read(pool, raw(1)).prepared is not None


def test_a_method_that_fails_costs_a_fingerprint_and_one_that_dies_or_hangs_a_page() -> None:
    with opened(WorkerOptions(1.0, READING, fingerprints(users.Method.name))) as pool:
        failed = read(pool, raw(1, title="raise"))
        assert (failed.page.title, failed.prepared) == ("raise", None)
        for order, reason in (("die", "too_large"), ("hang", "too_slow")):
            error = pool.submit(ReadTask(raw(2, title=order))).result(60)
            assert isinstance(error, TaskFailed)
            assert error.reason == reason
        assert read(pool, raw(3)).prepared is not None
