"""What follows when the brake comes on: who is told what, and that nothing a page says can disturb it."""

from __future__ import annotations

import shlex

import pytest

from scrapy_neardup.crawl import brake
from scrapy_neardup.crawl.braking import BrakeWatch
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.model import Kind, Match, Page, Verdict
from scrapy_neardup.states.brakes import release, watch_again
from scrapy_neardup.stores import MemoryStore, Record
from tests.crawl.parts import notes

EVIL = "\n2026-01-01 00:00:00 [scrapy] ERROR: forged \x1b[2J\u202e'; reboot; '"


class Crawl:
    """Pages of which each is a copy under a title of its own; with what reason the crawl was closed."""

    def __init__(self, mode: str, end: str = "") -> None:
        self.notes = notes()
        self.closed: list[str] = []
        self.end = end
        self.store = MemoryStore("memory:", {})
        self.watch = BrakeWatch(mode, self.notes, self.closed.append)

    def again(self, mode: str) -> None:
        """Another crawl on the same state."""
        self.notes = notes()
        self.watch = BrakeWatch(mode, self.notes, self.closed.append)
        self.watch.take_up(self.store)

    def copy(self, original: int = 90_000, *, site: str = "river.example") -> bool:
        """Whether it passed."""
        id = self.store.new_id()
        url = f"http://{site}/{id}{self.end}"
        match = Match(
            original, f"http://other.example/{original}{self.end}", 0.0, 0.9, 0.9, (f"Both say so.{self.end}",)
        )
        verdict = Verdict(Kind.DUPLICATE, url, id, match)
        if self.watch.passes(verdict):
            return True
        self.store.add(Record(id, url, original, 0.9))
        if (alarm := self.watch.see(Page(url, f"Title {id}"), Ruled(verdict))) is not None:
            self.watch.tell(alarm, self.watch.remember(alarm, self.store))
        return False

    def count(self, stat: str) -> int:
        return int(self.notes.stats.get_value(f"neardup/brake/{stat}", 0))


@pytest.mark.parametrize(("mode", "passes", "closed"), [("tag", 4, 0), ("warn", 0, 0), ("close", 4, 1)])
def test_one_warning_one_stat_and_what_the_setting_says(
    caplog: pytest.LogCaptureFixture, mode: str, passes: int, closed: int
) -> None:
    crawl = Crawl(mode)
    assert [crawl.copy() for _ in range(9)] == [False] * (9 - passes) + [True] * passes
    assert crawl.closed == ["neardup_brake"] * closed
    assert (crawl.count("original"), crawl.count("site")) == (1, 0)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "5 pages of river.example, each under another title, were dropped for one page"
    )


def test_the_crawl_is_closed_once(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl("close")
    for original in (1, 2):
        for _ in range(5):
            crawl.copy(original)
    assert (crawl.closed, crawl.count("original"), len(caplog.records)) == (["neardup_brake"], 2, 2)


@pytest.mark.parametrize("mode", ["tag", "warn", "close"])
def test_the_warning_is_a_line_whose_command_can_be_typed(caplog: pytest.LogCaptureFixture, mode: str) -> None:
    crawl = Crawl(mode, EVIL)
    while not caplog.records:
        crawl.copy()
    told = caplog.records[0].getMessage()
    assert told.isprintable()
    assert len(told.split(": http://")[-1].split(", http://")) == 5
    command, release = told.split("See whether it is one: ")[1].split(". If not, ")[0].split(". If so: ")
    assert shlex.split(release)[:4] == ["scrapy", "neardup", "brake", "--release"]
    words = shlex.split(command)
    assert words[:3] == ["scrapy", "neardup", "compare"]
    last = list(crawl.store.records())[-1]
    assert [word.split("\\n")[0] for word in words[3:]] == [
        f"http://river.example/{last.id}",
        "http://other.example/90000",
    ]


def test_it_is_told_once_that_it_is_on_for_all(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brake, "_MOST", 2)
    crawl = Crawl("tag")
    for original in range(1, 6):
        for _ in range(5):
            crawl.copy(original)
    assert [record.getMessage()[:16] for record in caplog.records] == ["5 pages of river"] * 3 + ["The safety brake"]
    assert crawl.copy(77, site="lake.example")


def test_it_stays_on_until_it_is_released(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl("tag")
    assert [crawl.copy() for _ in range(6)] == [False] * 5 + [True]
    crawl.again("tag")
    assert (crawl.copy(), crawl.count("kept"), crawl.count("original")) == (True, 1, 0)
    assert "came on in an earlier crawl, for http://other.example/90000: copies" in caplog.messages[-1]
    assert crawl.copy(1) is False, "another original"
    crawl.again("warn")
    assert (crawl.copy(), crawl.count("kept")) == (False, 0)
    assert [braked.name for braked in release(crawl.store, {"http://other.example/90000"})] == [
        "http://other.example/90000"
    ]
    crawl.again("tag")
    assert [crawl.copy() for _ in range(9)] == [False] * 9, "what was released is not watched"
    assert (crawl.count("kept"), crawl.count("original")) == (0, 0)
    watch_again(crawl.store, {"http://other.example/90000"})
    crawl.again("tag")
    assert [crawl.copy() for _ in range(6)] == [False] * 5 + [True]


def test_where_it_only_warned_it_can_be_had_later(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl("warn")
    for _ in range(6):
        crawl.copy()
    assert "with NEARDUP_BRAKE = 'tag' the next crawl brings what was dropped" in caplog.messages[0]
    crawl.again("warn")
    assert [crawl.copy() for _ in range(6)] == [False] * 6
    assert (crawl.count("original"), len(caplog.messages)) == (1, 2), "it warns in each crawl"
    crawl.again("tag")
    assert crawl.copy()


def test_at_the_beginning_of_a_crawl_a_few_are_named(caplog: pytest.LogCaptureFixture) -> None:
    crawl = Crawl("tag", EVIL)
    for original in range(1, 6):
        for _ in range(5):
            crawl.copy(original)
    crawl.again("tag")
    assert "and 2 more: copies" in caplog.messages[-1]
    assert caplog.messages[-1].isprintable()
