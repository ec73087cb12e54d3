"""Worker processes: what they answer, and the end of those that die, hang, grow or never start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from scrapy_neardup.errors import ExtractionError, NearDupError, NoWorker
from scrapy_neardup.files import Entry, InputRecord, Malformed
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import PageContent, analyse
from scrapy_neardup.page.limits import is_risky, limit_page
from scrapy_neardup.workers import pool as pool_module
from scrapy_neardup.workers.pool import WorkerPool, default_size, read_ahead
from scrapy_neardup.workers.worker import ReadingOptions
from tests.page.pages import ARTICLE, HOSTILE, NONE, PROSE
from tests.processes import wait_until
from tests.workers.users import READING, URL, opened, raw, reading

slow = pytest.mark.slow  # processes of their own
by_signal = pytest.mark.skipif(sys.platform == "win32", reason="by a signal")
#: Every cell of a row costs trafilatura as much as the row has: 89 s.
WIDE = f"{ARTICLE}<table><tr>{'<td>x' * 99_000}</table>"
RISKY = ARTICLE + "<br>" * 9_000


def read(html: str) -> Page:
    return limit_page(analyse(html, URL, max_html=10**6).page, 100_000)


def result(pool: WorkerPool, content: str | PageContent) -> object:
    return pool.submit(raw(content) if isinstance(content, str) else content).result(60)


def reason(pool: WorkerPool, content: str | PageContent) -> str:
    error = result(pool, content)
    assert isinstance(error, ExtractionError), error
    assert str(error)
    return error.reason


def reader_of(pool: WorkerPool, html: str) -> int:
    """The process that the extractor of tests names."""
    return int(page_of(pool, html).text.split()[-1])


def page_of(pool: WorkerPool, html: str) -> Page:
    page = pool.read(raw(html))
    assert isinstance(page, Page), page
    return page


def is_gone(process: int) -> bool:
    """Whether a process has ended; always, where there is no /proc."""
    return not Path(f"/proc/{process}").exists()


@slow
def test_pages_are_read_as_in_this_process_by_as_many_workers_as_needed() -> None:
    pages = [ARTICLE, PROSE, NONE, HOSTILE, ARTICLE.replace("ferry", "ferry \ud800 \U0001f6a2"), ""]
    with opened(READING, 2) as pool:
        for html in pages[:2]:
            assert pool.read(raw(html)) == read(html)
        assert len(pool.process_ids) == 1, "one page at a time takes one worker"
        futures = [pool.submit(raw(html)) for html in pages]
        assert [future.result(60) for future in futures] == [read(html) for html in pages]
        assert len({*pool.process_ids}) == 2
        assert pool.spent > 0
        assert (pool.replaced, pool.why_replaced) == (0, "")


@slow
def test_a_worker_decodes_bytes_and_refuses_what_is_no_page_of_the_url() -> None:
    gbk = ARTICLE.replace("The ferry sails again", "渡口今天早上重新开航").replace("<html>", "<html><meta charset=gbk>")
    with opened(READING) as pool:
        assert pool.read(PageContent(URL, gbk.encode("gbk"))) == read(gbk)
        assert pool.read(PageContent(URL, gbk.encode("gbk"), "text/html; charset=gb2312")) == read(gbk)
        assert pool.read(PageContent(URL, ARTICLE.encode(), is_of_url=False)) == read(ARTICLE), "its canonical URL"
        assert reason(pool, PageContent(URL, b"%PDF-1.7")) == "not_html"
        assert reason(pool, PageContent(f"{URL}/other", PROSE.encode(), is_of_url=False)) == "other_page"
        assert reason(pool, "x" * 1_000_001) == "too_large"
        assert pool.replaced == 0


@slow
def test_options_say_whether_a_slow_page_comes_back_unread_and_how_long_a_text_may_be() -> None:
    assert is_risky(RISKY)
    with opened(replace(READING, only_quick=True)) as pool:
        assert result(pool, PageContent(URL, RISKY.encode())) is None
    with opened(READING) as pool:
        assert pool.read(raw(RISKY)) == read(RISKY)
    with opened(replace(READING, max_text=100)) as pool:
        page = page_of(pool, ARTICLE)
    assert (page.text, page.main, page.unread) == ("", "", "too_large")
    assert reading("shop.text.extract").can_be_sent
    assert not reading("__main__.extract").can_be_sent, "no other process can import it"


@slow
def test_our_own_reader_is_killed_too() -> None:
    with opened(replace(READING, seconds=0.3)) as pool:
        pool.read(raw(ARTICLE))
        [process] = pool.process_ids
        assert "more than 0.3 s" in str(pool.read(raw(WIDE)))
        assert is_gone(process)
        assert pool.read(raw(ARTICLE)) == read(ARTICLE)


@slow
@pytest.mark.parametrize(
    ("order", "seconds", "expected", "replaced"),
    [
        ("hang", 0.5, "too_slow", 1),
        ("die", 30, "too_large", 2),
        ("raise", 30, "extractor_failed", 0),
        *([("swell", 30, "too_large", 1)] if sys.platform == "linux" else []),  # the limit is that of Linux
    ],
)
def test_a_hostile_page_costs_that_page_alone(order: str, seconds: float, expected: str, replaced: int) -> None:
    with opened(reading(seconds=seconds)) as pool:
        reader_of(pool, "calm")
        assert reason(pool, order) == expected
        assert pool.replaced == replaced
        assert reader_of(pool, "calm") in pool.process_ids


@slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks")
def test_a_process_that_an_extractor_forks_holds_up_nobody() -> None:
    with opened(reading(seconds=0.5)) as pool:
        reader_of(pool, "calm")
        begun = time.monotonic()
        assert reason(pool, "fork") == "too_slow"
        assert time.monotonic() - begun < 5


@slow
@by_signal
def test_a_worker_that_dies_or_that_somebody_kills_costs_no_page_and_ctrl_c_ends_none(tmp_path: Path) -> None:
    with opened(reading()) as pool:
        first = reader_of(pool, "calm")
        assert os.getpgid(first) != os.getpgid(0)
        os.kill(first, signal.SIGINT)
        time.sleep(0.2)
        assert reader_of(pool, "calm") == first
        assert reader_of(pool, f"die once:{tmp_path}/mark") != first
        assert (pool.replaced, pool.why_replaced) == (1, "died")
        for order in ("pause", "calm"):  # in the midst of a page, and between two pages
            killed = reader_of(pool, "calm")
            future = pool.submit(raw(order)) if order == "pause" else None
            time.sleep(0.1)
            os.kill(killed, signal.SIGKILL)
            time.sleep(0.1)
            assert isinstance((future or pool.submit(raw(order))).result(60), Page)
        assert pool.replaced == 3


@slow
@by_signal
@pytest.mark.parametrize("kills", [2, 3])
def test_a_worker_that_is_killed_while_it_starts_is_started_three_times_at_most(
    kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = f"import os; starts = os.listdir({str(tmp_path)!r}); open({str(tmp_path)!r} + f'/{{len(starts)}}', 'x')"
    die = f"{count}\nif len(starts) < {kills}: os.kill(os.getpid(), 9)"
    monkeypatch.setattr(pool_module, "_PROGRAM", f"{die}\n{pool_module._PROGRAM}")
    with opened(reading()) as pool:
        assert isinstance(result(pool, "calm"), Page if kills < 3 else NoWorker)
        assert len([*tmp_path.iterdir()]) == 3
        assert isinstance(result(pool, "calm"), Page), "the next page tries again"


@slow
def test_a_page_that_takes_too_long_holds_up_no_other_page(tmp_path: Path) -> None:
    with opened(reading(seconds=3), 2) as pool:
        for future in [pool.submit(raw("pause")) for _ in range(2)]:
            future.result(60)
        time.sleep(0.5)  # its deadline is no multiple of three seconds
        started = time.monotonic()
        late = pool.submit(raw(f"wait:{tmp_path}/mark"))
        for future in [pool.submit(raw("calm")) for _ in range(20)]:
            assert isinstance(future.result(60), Page)
        assert not late.done()
        error = late.result(60)
        assert isinstance(error, ExtractionError)
        assert 3 <= time.monotonic() - started < 20
        assert (error.reason, pool.replaced) == ("too_slow", 1)
        assert "more than 3 s" in pool.why_replaced


@slow
@pytest.mark.parametrize(("size", "others"), [(1, 1), (2, 6)])
def test_a_site_of_slow_pages_leaves_a_worker_to_another_site_or_every_second_turn(size: int, others: int) -> None:
    with opened(reading(), size) as pool:
        for page in [pool.submit(raw("pause")) for _ in range(size)]:
            page.result(60)
        assert pool.busy_since == 0
        before = time.monotonic()
        slow_pages = [pool.submit(raw("pause")) for _ in range(6)]
        wait_until(lambda: pool.busy_since > before)
        for page in [pool.submit(raw("calm", "http://hill.example/")) for _ in range(others)]:
            assert isinstance(page.result(60), Page)
        assert sum(page.done() for page in slow_pages) < 4
        assert all(isinstance(page.result(60), Page) for page in slow_pages)


@slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the size")
def test_a_worker_that_grows_is_replaced_between_two_pages() -> None:
    with opened(reading()) as pool:
        first, grown, after = (reader_of(pool, order) for order in ("calm", "grow", "calm"))
        assert first == grown != after
        assert (pool.replaced, "90 MB" in pool.why_replaced) == (1, True)


@slow
def test_closing_waits_for_no_page(tmp_path: Path) -> None:
    before = {*threading.enumerate()}
    with opened(reading(seconds=100), 2) as pool:
        futures = [pool.submit(raw(f"wait:{tmp_path}/{number}")) for number in range(5)]
        wait_until(lambda: len([*tmp_path.iterdir()]) == 2)
        processes, started = pool.process_ids, time.monotonic()
        pool.close()
        assert time.monotonic() - started < 10
        errors = [future.result(0) for future in futures]
        assert {error.reason for error in errors if isinstance(error, ExtractionError)} == {"too_slow"}
        assert all(map(is_gone, processes))
        assert {*threading.enumerate()} <= before
        assert reason(pool, "calm") == "too_slow"
        assert pool.replaced == 0


@slow
def test_closing_waits_for_no_worker_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is closed when the process has just begun, so closing does not know it yet."""

    def begin(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        child = popen(*arguments, **options)
        pool._closing.set()
        return child

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", begin)
    monkeypatch.setattr(pool_module, "_PROGRAM", "import time; time.sleep(100)")
    with opened(READING) as pool:
        error = pool.submit(raw(ARTICLE)).result(20)
    assert str(error) == "the crawl is over"


@slow
def test_a_cancelled_task_starts_no_worker(tmp_path: Path) -> None:
    with opened(reading()) as pool:
        busy = pool.submit(raw("pause"))
        unwanted = pool.submit(raw(f"wait:{tmp_path}/mark"))
        assert unwanted.cancel()
        busy.result(60)
        reader_of(pool, "calm")
        assert not [*tmp_path.iterdir()]


@slow
def test_few_threads_make_few_workers_and_none_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(reading(), 2) as pool:
        reader_of(pool, "calm")
        monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        futures = [pool.submit(raw(order)) for order in ("pause", "calm")]
        assert all(isinstance(future.result(60), Page) for future in futures)
    with opened(reading()) as pool:
        error = result(pool, "calm")
        assert isinstance(error, NoWorker)
        assert "no thread" in str(error)


@slow
@pytest.mark.parametrize(
    ("options", "python"), [(reading("tests.workers.users.not_there"), ""), (READING, "/nowhere/python")]
)
def test_a_worker_that_cannot_start_is_reported(
    options: ReadingOptions, python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if python:
        monkeypatch.setattr(sys, "executable", python)
    with opened(options) as pool:
        error = result(pool, "calm")
    assert isinstance(error, NoWorker)
    assert python in str(error)
    assert pool.replaced == 0


@slow
def test_a_worker_ends_with_its_parent() -> None:
    """Its pipe is closed; in the midst of a page it has some seconds more than the page may take."""
    with opened(reading()) as pool:
        process = reader_of(pool, "calm")
        child = pool._workers[0].child
        assert child is not None
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(20) == 0
        assert is_gone(process)


@pytest.mark.parametrize(
    ("quota", "most", "free", "size"),
    [
        ("", "", None, 4),
        ("max 100000", "max", 10**10, 4),
        ("200000 100000", "", 10**10, 2),
        ("1600000 100000", "", 10**10, 4),
        ("150000 100000", "", 10**10, 2),
        ("100000 100000", "", 10**10, 0),
        ("", "", 10**9, 2),
        ("", "", 3 * 10**8, 0),
        ("", str(10**9 + 700), 10**10, 2),
        ("", "600", 10**10, 0),
        ("", "max", 10**9, 2),
    ],
)
def test_workers_have_room_on_the_machine_and_in_its_container(
    quota: str, most: str, free: int | None, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {*range(8)}, raising=False)
    available = "" if free is None else f"MemAvailable: {free // 1024} kB\n"
    for name, content in {
        "cpu.max": quota,
        "memory.max": most,
        "memory.current": "700",
        "meminfo": f"MemTotal: 9 kB\n{available}",
    }.items():
        (tmp_path / name).write_text(content, encoding="ascii")
    assert default_size(tmp_path, tmp_path / "meminfo") == size
    assert default_size(tmp_path / "none", tmp_path / "none") == 4
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert default_size(tmp_path, tmp_path / "meminfo") == 0


# Records that are read ahead: their order, their number, and errors.


class IdlePool:
    """In the place of a pool of workers: answers at once, or on demand and the last page first."""

    def __init__(self, *, is_idle: bool = False) -> None:
        """``is_idle``: answers on demand."""
        self.is_idle = is_idle
        self.pages: list[tuple[PageContent, Future[Any]]] = []

    def submit(self, content: PageContent) -> Future[Any]:
        self.pages.append((content, Future()))
        if not self.is_idle:
            self.answer_all()
        return self.pages[-1][1]

    def answer_all(self) -> None:
        for content, future in reversed(self.pages):
            if not future.done():
                future.set_result(Page(content.url))


def content_of(entry: Entry) -> PageContent | None:
    html = entry.fields.get("html")
    return PageContent(str(entry.number), html) if isinstance(html, str) else None


def entry(number: int, html: str | None = "<p>") -> Entry:
    return Entry("feed", number, "line", {"html": html})


def read_records(records: Iterable[InputRecord], pool: IdlePool, **more: int) -> Iterator[tuple[int, str | None]]:
    """The number of each record, and the URL of the page that a worker read."""
    for record, answer in read_ahead(records, content_of, cast(Any, pool), **more):
        yield record.number, answer.url if isinstance(answer, Page) else None


def test_records_keep_their_order_whichever_page_is_read_first_and_come_before_an_error() -> None:
    pool = IdlePool(is_idle=True)

    def records() -> Iterator[InputRecord]:
        yield from (entry(1), entry(2), entry(3, None), Malformed("feed", 4, "line", "no JSON"), entry(5))
        pool.answer_all()
        raise NearDupError("the file ends in the middle")

    found = read_records(records(), pool, first_pages=1)
    assert [next(found) for _ in range(5)] == [(1, None), (2, "2"), (3, None), (4, None), (5, "5")]
    with pytest.raises(NearDupError):
        next(found)


@pytest.mark.parametrize(("html", "most"), [("<p>", 64), ("x" * 100, 10)])
def test_the_pages_that_are_read_ahead_have_bounds(html: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "_MOST_BYTES", 1_000)
    pool = IdlePool()
    for place, found in enumerate(read_records((entry(number, html) for number in range(200)), pool)):
        assert found == (place, str(place))
        assert len(pool.pages) <= place + most
    assert len(pool.pages) == 200
