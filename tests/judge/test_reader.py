"""Processes that read pages and make their fingerprints: those of one process, or none."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from queue import SimpleQueue

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.fingerprint_tasks import Prepared, TextTerms
from scrapy_neardup.judge.page_tasks import Readers, ReadingTerms, ReadPage
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer, MayTakeLong, NoReader, Terms
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.page.item import ItemMetadata
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.source import PageSource, ReadTask
from scrapy_neardup.settings import DEFAULT_FIELDS
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.recipe import Secret
from tests.judge.test_detector import story
from tests.judge.test_preparer import SECRET, Odd
from tests.processes import process_ids

pytestmark = pytest.mark.slow  # processes of their own

SITE = "http://moor.example"
FOOTER = ["本站编辑部设在河湾镇旧码头的第三仓库二楼。", "版权所有，转载请先给编辑部写信说明。"]


def raw(number: int, said: ItemMetadata | None = None, title: str = "") -> PageContent:
    lines = "".join(f"<p>{line}</p>" for line in [*story(number), *FOOTER])
    html = f"<html><head><title>{title or f'第{number}号船'}</title></head><body>{lines}</body></html>"
    return PageContent(f"{SITE}/{number}", html, metadata=said or ItemMetadata())


@contextmanager
def readers(method: str = "cascade", seconds: float = 30.0, terms: TextTerms | None = None) -> Iterator[Readers]:
    terms = terms or TextTerms(method, {}, Keyed(SECRET), seconds)
    pool: Readers = Pool(ReadingTerms(Terms(1_000_000, seconds=seconds, only_quick=True), terms), 1)
    with closing(pool):
        yield pool
    assert process_ids(pool) == []


def asked(pool: Readers, page: PageContent) -> ReadPage | Answer:
    answers: SimpleQueue[ReadPage | Answer] = SimpleQueue()
    pool.ask(page, lambda answer, _: answers.put(answer))
    return answers.get(timeout=60)


def whole(page: PageContent) -> Page:
    """The page as it is judged."""
    source = PageSource(DEFAULT_FIELDS, 1_000_000, None)
    draft = source.prepare({**page.metadata._asdict(), "html": page.content}, None, page.url)
    assert isinstance(draft, ReadTask)
    return source.read(draft)


def test_page_and_fingerprint_are_those_that_are_made_here() -> None:
    store = open_store("memory:", {}, secret=Secret(SECRET))
    method, terms = make_method("cascade", {}).under(store.hashes), TextTerms("cascade", {}, store.hashes, 30.0)
    pages = [
        raw(0),
        raw(1, ItemMetadata("渡口的另一艘船", ("渡口", "木船"), "它今天第一次开航。")),
        raw(2, ItemMetadata("\ud800")),
    ]
    with readers(terms=terms) as pool:
        for one in pages:
            read = asked(pool, one)
            assert isinstance(read, ReadPage)
            assert isinstance(one.content, str)
            assert read.page == extract(one.content, one.url, max_html=1_000_000)
            assert read.prepared is not None
            page, known = whole(one), store.on_site("moor.example")
            here, there = method.guarded(page, known.is_common, known), read.prepared.under(page, known, method)
            assert there is not here
            assert (there.keys, there.sketch, there.whole, there.own) == (here.keys, here.sketch, here.whole, here.own)
            assert there.sentences.tolist() == here.sentences.tolist()
        assert pool.replaced == 0


def test_what_the_state_says_of_one_page_is_presumed_of_the_next_one() -> None:
    store = open_store("memory:", {}, secret=Secret(SECRET))
    method = make_method("cascade", {}).under(store.hashes)
    terms = TextTerms("cascade", {}, store.hashes, 30.0)

    def holds(read: ReadPage | Answer, page: PageContent) -> bool:
        assert isinstance(read, ReadPage)
        assert read.prepared is not None
        known = store.on_site("moor.example")
        made = [one.holds(known) for one in read.prepared.asked]
        assert read.prepared.under(whole(page), known, method).boilerplate
        read.prepared.known.learn("moor.example", known, read.prepared.asked)
        return all(made)

    for number in range(100, 140):
        page = whole(raw(number))
        store.note(method.fingerprint(page).sentences, page.site, everywhere=True)
    with readers(terms=terms) as pool:
        assert not holds(asked(pool, raw(20)), raw(20)), "nobody has told it of the footer"
        assert holds(asked(pool, raw(21)), raw(21))
        assert holds(asked(pool, raw(22)), raw(22))


def test_what_is_no_page_or_may_take_long_has_no_fingerprint() -> None:
    with readers() as pool:
        nothing = asked(pool, PageContent(SITE, b"%PDF-1.7"))
        assert isinstance(nothing, ExtractionError)
        assert nothing.reason == "not_html"
        assert isinstance(asked(pool, PageContent(SITE, "<p>渡口" + "<br>" * 9_000)), MayTakeLong)
        assert isinstance(asked(pool, raw(1)), ReadPage)


def test_a_page_of_which_the_method_can_say_nothing_is_read_all_the_same() -> None:
    with readers(Odd.name) as pool:
        read = asked(pool, raw(1, title="raise"))
        assert isinstance(read, ReadPage)
        assert (read.page.title, read.prepared) == ("raise", None)
        made = asked(pool, raw(2))
        assert isinstance(made, ReadPage)
        assert isinstance(made.prepared, Prepared)


def test_a_page_of_which_the_method_dies_or_hangs_costs_that_page_alone() -> None:
    with readers(Odd.name, seconds=1.0) as pool:
        reasons = [asked(pool, raw(number, title=title)) for number, title in enumerate(["die", "hang"])]
        assert [one.reason for one in reasons if isinstance(one, ExtractionError)] == ["too_large", "too_slow"]
        assert isinstance(asked(pool, raw(3)), ReadPage)


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_a_process_that_somebody_kills_is_replaced() -> None:
    with readers() as pool:
        asked(pool, raw(1))
        [killed] = process_ids(pool)
        os.kill(killed, signal.SIGKILL)
        time.sleep(0.1)
        read = asked(pool, raw(2))
        assert isinstance(read, ReadPage)
        assert read.prepared is not None
        assert pool.replaced == 1


def test_where_none_can_be_started_it_is_said_why() -> None:
    with readers(f"{__name__}.NotThere") as pool:
        assert isinstance(asked(pool, raw(1)), NoReader)
