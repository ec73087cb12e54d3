"""Pages that may take long: read in a child to the same page, and ended where they take too much."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Thread

import pytest

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.apart import Apart, Terms
from scrapy_neardup.page.extraction import extract
from scrapy_neardup.page.html import is_risky
from scrapy_neardup.page.limits import limit_page
from scrapy_neardup.page.response import PageContent
from tests.page.pages import ARTICLE, HOSTILE, NONE, PROSE

pytestmark = pytest.mark.slow  # a process each

URL = "http://river.example/ferry"
#: Every cell of a row costs trafilatura as much as the row has: 89 s.
WIDE = f"{ARTICLE}<table><tr>{'<td>x' * 99_000}</table>"
EXTRACTORS = "tests.page.test_apart"


def odd(html: str, url: str) -> str | None:
    """A user's own extractor, and what may become of one."""
    sys.stdout.write("no answer\n")
    if "hang" in html:
        time.sleep(100)
    if "die" in html:
        os._exit(3)
    if "swell" in html:
        return "x" * 10**9
    if "raise" in html:
        raise ValueError("nothing found")
    return f"{len(html)} characters of {url}"


@contextmanager
def reader(*, seconds: float = 30.0, max_text: int = 100_000, extractor: str = "") -> Iterator[Apart]:
    with closing(Apart(Terms(1_000_000, max_text, seconds, extractor))) as apart:
        yield apart


def reason(apart: Apart, html: str) -> str:
    with pytest.raises(ExtractionError) as told:
        apart.read(PageContent(URL, html))
    assert str(told.value)
    return told.value.reason


def test_it_reads_the_same_page_one_after_the_other() -> None:
    surrogates = ARTICLE.replace("ferry", "ferry \ud800 \U0001f6a2")
    with reader() as apart:
        children = set()
        for html in (ARTICLE, PROSE, NONE, HOSTILE, surrogates, ""):
            assert apart.read(PageContent(URL, html)) == limit_page(extract(html, URL, max_html=10**6), 100_000)
            children.add(apart.process_id)
    assert len(children) == 1
    assert apart.process_id == 0


def test_a_page_that_takes_too_long_is_ended_and_the_next_one_read() -> None:
    with reader(seconds=0.3) as apart:
        assert apart.read(PageContent(URL, ARTICLE)).reader == "article"
        first = apart.process_id
        assert reason(apart, WIDE) == "too_slow"
        assert not Path(f"/proc/{first}").exists()
        assert apart.read(PageContent(URL, ARTICLE)).reader == "article"


@pytest.mark.parametrize(
    ("word", "said"),
    [("hang", "too_slow"), ("die", "too_large"), ("raise", "extractor_failed")],
)
def test_an_extractor_of_the_users_runs_in_it_too(word: str, said: str) -> None:
    with reader(seconds=0.5 if word == "hang" else 30, extractor=f"{EXTRACTORS}.odd") as apart:
        assert reason(apart, f"<p>{word}") == said
        assert apart.read(PageContent(URL, "<p>")).text == f"3 characters of {URL}"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is that of Linux")
def test_a_page_that_takes_too_much_memory_is_too_large() -> None:
    with reader(extractor=f"{EXTRACTORS}.odd") as apart:
        assert reason(apart, "<p>swell") == "too_large"
        assert apart.read(PageContent(URL, "<p>")).text == f"3 characters of {URL}"


def test_a_text_that_is_too_much_does_not_come_back() -> None:
    with reader(max_text=100) as apart:
        page = apart.read(PageContent(URL, ARTICLE))
    assert (page.text, page.main, page.unread) == ("", "", "too_large")


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_a_child_that_somebody_ends_between_two_pages_costs_none() -> None:
    with reader() as apart:
        apart.read(PageContent(URL, ARTICLE))
        os.kill(apart.process_id, signal.SIGKILL)
        time.sleep(0.2)
        assert apart.read(PageContent(URL, ARTICLE)).reader == "article"


@pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
def test_ctrl_c_is_not_for_it() -> None:
    with reader() as apart:
        apart.read(PageContent(URL, ARTICLE))
        child = apart.process_id
        assert os.getpgid(child) != os.getpgid(0)
        os.kill(child, signal.SIGINT)
        time.sleep(0.2)
        apart.read(PageContent(URL, ARTICLE))
        assert apart.process_id == child


def test_who_closes_it_in_the_midst_of_a_page_waits_for_nothing() -> None:
    apart = Apart(Terms(1_000_000, seconds=100))
    apart.read(PageContent(URL, ARTICLE))
    said: list[str] = []
    readers = [Thread(target=lambda: said.append(reason(apart, WIDE))) for _ in range(3)]
    for one in readers:
        one.start()
    time.sleep(0.2)  # in half a second it would have taken too much memory
    child = apart.process_id
    apart.close()
    for one in readers:
        one.join(20)
    assert said == ["too_slow"] * 3
    assert not Path(f"/proc/{child}").exists()


def test_without_an_interpreter_the_page_passes_and_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with reader() as apart, pytest.raises(ExtractionError, match="/nowhere/python"):
        apart.read(PageContent(URL, ARTICLE))


def test_a_child_whose_parent_is_gone_ends_by_itself() -> None:
    """Its pipe is closed; in the midst of a page, it has some seconds more than that may take."""
    apart = Apart(Terms(1_000_000, seconds=100))
    apart.read(PageContent(URL, ARTICLE))
    child = apart.child._child
    assert child is not None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(20) == 0
    apart.close()


def test_what_cannot_be_imported_elsewhere_is_not_sent() -> None:
    assert not Terms(1, extractor="__main__.own").can_be_sent
    assert Terms(1, extractor="shop.text.own").can_be_sent
    assert is_risky(WIDE)
