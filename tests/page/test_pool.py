"""Several processes that read pages: what comes back, and what becomes of those that die, hang, grow or never start."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import MayTakeLong, NoReader, Terms
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.pool import Pages, Pool
from scrapy_neardup.page.response import PageContent
from tests.page.pages import ARTICLE, HOSTILE, NONE, PROSE
from tests.processes import process_ids

pytestmark = pytest.mark.slow  # processes of their own

URL = "http://river.example/ferry"
_KEPT: list[bytes] = []


def odd(html: str, url: str) -> str | None:
    """A user's own extractor, and what may become of one; the path of a mark stands behind a colon."""
    what, _, mark = html.partition(":")
    if what == "die":
        os._exit(3)
    if what == "die once" and not Path(mark).exists():
        Path(mark).touch()
        os._exit(3)
    if what == "wait":
        Path(mark).touch()
        time.sleep(100)
    if what == "short":
        time.sleep(0.3)
    if what == "grow":
        _KEPT.append(b"x" * 100_000_000)
    return f"{what} by {os.getpid()}"


@dataclass
class Reader:
    """A pool that is asked, and what it answers."""

    pool: Pages
    answers: SimpleQueue[tuple[str, object]] = field(default_factory=SimpleQueue)

    def ask(self, *contents: str | PageContent) -> None:
        for content in contents:
            raw = content if isinstance(content, PageContent) else PageContent(URL, content)

            def answered(answer: object, _: float, name: str = str(raw.content)) -> None:
                self.answers.put((name, answer))

            self.pool.ask(raw, answered)

    def answer(self) -> object:
        return self.answers.get(timeout=60)[1]

    def asked(self, content: str | PageContent) -> object:
        self.ask(content)
        return self.answer()

    def text(self, content: str) -> str:
        page = self.asked(content)
        assert isinstance(page, Page), page
        return page.text

    def reason(self, content: str | PageContent) -> str:
        error = self.asked(content)
        assert isinstance(error, ExtractionError), error
        return error.reason


@contextmanager
def reading(workers: int = 1, *, seconds: float = 30.0, extractor: str = "odd", quick: bool = True) -> Iterator[Reader]:
    path = f"{__name__}.{extractor}" if extractor else ""
    terms = Terms(1_000_000, 100_000, seconds, path, only_quick=quick)
    pool: Pages = Pool(terms, workers)
    with closing(pool):
        yield Reader(pool)
    assert process_ids(pool) == []


def there(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_gone(process: int) -> bool:
    """Whether a process has ended; on Windows nobody is asked."""
    return not Path(f"/proc/{process}").exists()


def test_pages_are_read_as_they_are_here_in_as_many_processes_as_are_needed() -> None:
    pages = [ARTICLE, PROSE, NONE, HOSTILE, ARTICLE.replace("ferry", "ferry \ud800 \U0001f6a2"), ""]
    with reading(2, extractor="") as reader:
        assert reader.asked(ARTICLE) == limit_page(extract(ARTICLE, URL, max_html=10**6), 100_000)
        assert len(process_ids(reader.pool)) == 1, "one page at a time takes one process"
        reader.ask(*pages)
        found = dict(reader.answers.get(timeout=60) for _ in pages)
        assert found == {html: limit_page(extract(html, URL, max_html=10**6), 100_000) for html in pages}
        assert len(set(process_ids(reader.pool))) == 2
        assert (reader.pool.replaced, reader.pool.why) == (0, "")


def test_bytes_are_decoded_there_and_what_is_no_page_of_that_url_is_refused() -> None:
    gbk = ARTICLE.replace("The ferry sails again", "渡口今天早上重新开航").replace("<html>", "<html><meta charset=gbk>")
    with reading(extractor="") as reader:
        page = reader.asked(PageContent(URL, gbk.encode("gbk")))
        assert page == limit_page(extract(gbk, URL, max_html=10**6), 100_000)
        assert reader.asked(PageContent(URL, gbk.encode("gbk"), "text/html; charset=gb2312")) == page
        assert reader.reason(PageContent(URL, b"%PDF-1.7")) == "not_html"
        assert isinstance(reader.asked(PageContent(URL, ARTICLE.encode(), is_of_url=False)), Page), "its canonical URL"
        assert reader.reason(PageContent(f"{URL}/other", PROSE.encode(), is_of_url=False)) == "other_page"
        assert reader.reason("x" * 1_000_001) == "too_large"
        assert reader.pool.replaced == 0


def test_a_page_that_may_take_long_is_given_back_unless_it_is_asked_for() -> None:
    risky = ARTICLE + "<br>" * 9_000
    with reading(extractor="") as reader:
        answer = reader.asked(PageContent(URL, risky.encode()))
        assert isinstance(answer, MayTakeLong)
        assert answer.html == risky
    with reading(extractor="", quick=False) as reader:
        assert isinstance(reader.asked(risky), Page)


def test_a_page_whose_process_dies_is_tried_once_more(tmp_path: Path) -> None:
    with reading() as reader:
        first = reader.text("calm")
        once = reader.text(f"die once:{tmp_path}/mark")
        assert once.startswith("die once by")
        assert once.split()[-1] != first.split()[-1]
        assert (reader.pool.replaced, reader.pool.why) == (1, "died")
        assert reader.reason("die") == "too_large"
        assert reader.pool.replaced == 3, "it was tried twice"
        assert reader.text("calm").startswith("calm")


def test_a_page_that_takes_too_long_is_not_tried_again_and_holds_nobody(tmp_path: Path) -> None:
    with reading(2, seconds=2) as reader:
        reader.ask("calm", "calm")
        assert all(isinstance(reader.answer(), Page) for _ in range(2))
        begun = time.monotonic()
        reader.ask(f"wait:{tmp_path}/mark", *["calm"] * 20)
        assert all(isinstance(reader.answer(), Page) for _ in range(20))
        assert not time.monotonic() - begun > 2, "others are read in the meantime"
        slow = reader.answer()
        assert isinstance(slow, ExtractionError)
        assert (slow.reason, reader.pool.replaced) == ("too_slow", 1)
        assert "more than 2 s" in reader.pool.why


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_a_process_that_is_stopped_is_replaced() -> None:
    with reading(seconds=1) as reader:
        reader.text("calm")
        [stopped] = process_ids(reader.pool)
        os.kill(stopped, signal.SIGSTOP)
        assert reader.reason("calm") == "too_slow"
        assert is_gone(stopped)
        assert reader.text("calm").startswith("calm")


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
@pytest.mark.parametrize("page", ["short", "between"])
def test_a_process_that_somebody_kills_costs_no_page(page: str) -> None:
    with reading() as reader:
        reader.text("calm")
        [killed] = process_ids(reader.pool)
        if page == "short":
            reader.ask("short")
            time.sleep(0.1)
        os.kill(killed, signal.SIGKILL)
        time.sleep(0.1)
        found = reader.answer() if page == "short" else reader.asked("calm")
        assert isinstance(found, Page)
        assert reader.pool.replaced == 1


@pytest.mark.skipif(sys.platform != "linux", reason="sizes are told as on Linux")
def test_a_process_that_grows_is_replaced_between_two_pages() -> None:
    with reading() as reader:
        first, grown, after = (reader.text(what).split()[-1] for what in ("calm", "grow", "calm"))
        assert first == grown != after
        assert (reader.pool.replaced, "90 MB" in reader.pool.why) == (1, True)


def test_who_closes_it_in_the_midst_of_pages_waits_for_nothing(tmp_path: Path) -> None:
    with reading(2, seconds=100) as reader:
        reader.ask(*(f"wait:{tmp_path}/{n}" for n in range(5)))
        there(lambda: len(list(tmp_path.iterdir())) == 2)
        processes = process_ids(reader.pool)
        begun = time.monotonic()
        reader.pool.close()
        assert time.monotonic() - begun < 10
        answers = [reader.answer() for _ in range(5)]
        assert {error.reason for error in answers if isinstance(error, ExtractionError)} == {"too_slow"}
        assert all(map(is_gone, processes))
        assert reader.reason("calm") == "too_slow", "nobody is left to read it"


def test_so_it_is_where_there_can_be_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with reading(2) as reader:
        assert reader.text("calm").startswith("calm")
        monkeypatch.setattr(Thread, "start", refuse)
        reader.ask("short", "calm")  # one has to do for both
        assert all(isinstance(reader.answer(), Page) for _ in range(2))
    with reading() as reader:
        answer = reader.asked("calm")
        assert isinstance(answer, NoReader)
        assert "can't start new thread" in str(answer)


def test_where_none_can_be_started_it_is_said_why() -> None:
    with reading(extractor="not_there") as reader:
        assert isinstance(reader.asked("calm"), NoReader)
