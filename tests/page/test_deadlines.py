"""Processes that have until some moment: those that are late are ended, and nobody else is."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from scrapy_neardup.page import deadlines
from scrapy_neardup.page.deadlines import Deadlines

pytestmark = pytest.mark.slow  # processes of their own


@pytest.fixture
def children() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two that would go on for ever."""
    command = [sys.executable, "-c", "input()"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE) for _ in range(2)]
    yield started
    for child in started:
        child.kill()
        child.communicate()


def watchers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "neardup-deadlines"}


def test_who_is_late_is_ended_though_a_later_one_was_there_before(children: list[subprocess.Popen[bytes]]) -> None:
    first, second = children
    watch = Deadlines()
    with watch.within(60, first) as long:
        begun = time.monotonic()
        with watch.within(0.2, second) as short:
            second.wait(30)
        assert 0.15 < time.monotonic() - begun < 20
        assert (short.is_over, long.is_over, first.poll()) == (True, False, None)
        assert watchers()


def test_who_is_through_in_time_is_not_ended(children: list[subprocess.Popen[bytes]]) -> None:
    child, _ = children
    watch = Deadlines()
    for _ in range(3):
        with watch.within(0.3, child) as deadline:
            time.sleep(0.05)
    time.sleep(0.5)
    assert not deadline.is_over
    assert child.poll() is None


def test_nobody_watches_where_there_is_nothing_to_watch(
    children: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadlines, "_IDLE", 0.2)
    before, watch = watchers(), Deadlines()
    for child in children:
        with watch.within(0.1, child) as deadline:
            assert len(watchers() - before) == 1  # those of other tests may end in between
            child.wait(30)
        assert deadline.is_over
        end = time.monotonic() + 20
        while watchers() - before:
            assert time.monotonic() < end
            time.sleep(0.02)
