"""Which sites a crawl warns of: they lose many pages as copies, or change by themselves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.crawl import site_watch
from scrapy_neardup.crawl.site_watch import SiteWatch
from scrapy_neardup.judge.in_flight import Reservation, Ruled
from scrapy_neardup.maintenance.tables import SiteDrops
from scrapy_neardup.model import Fingerprint, Match, Outcome, Page, Verdict
from scrapy_neardup.state.record import Record
from tests.build import article_text
from tests.cli import run as run_command
from tests.crawl.engineless import article, crawl_items
from tests.crawl.parts import Log, Patch, notes

EVIL = "\n2026-01-01 00:00:00 [scrapy] ERROR: forged \x1b[2J\u202e'; reboot; '"
SITE = "river.example"


class Crawl:
    """Pages with their verdicts, in the order of a crawl."""

    def __init__(self, *past: SiteDrops, end: str = "") -> None:
        self.notes = notes()
        self.watch = SiteWatch(self.notes, {one.site: one for one in past})
        self._end = end
        self._id = 0

    def page(self, site: str = SITE, outcome: Outcome = Outcome.UNIQUE) -> None:
        self._see(site, outcome)

    def drop(self, original: int = 0, site: str = SITE, *, title: str = "", delivered: bool = False) -> None:
        """A page that is dropped, without an original for one that nothing else is dropped for."""
        original = original or 10**6 + self._id
        shared = (f"Both say so.{self._end}",)
        match = Match(original, f"http://other.example/{original}{self._end}", 0.0, 0.9, 0.9, shared)
        self._see(site, Outcome.DUPLICATE, match, title, was_delivered=delivered)

    def _see(self, site: str, outcome: Outcome, match: Match | None = None, title: str = "", **ruled: Any) -> None:
        self._id += 1
        url = f"http://{site}/{self._id}{self._end}"
        self.watch.see(Page(url, title), Ruled(Verdict(outcome, url, self._id, match), **ruled))

    @property
    def alarms(self) -> dict[str, int]:
        prefix = "neardup/suspicious_drops/"
        return {name.removeprefix(prefix): n for name, n in self.notes.stats.get_stats().items() if prefix in name}


def test_five_titles_of_a_site_dropped_for_one_original_are_suspicious_and_two_or_those_of_many_sites_are_not() -> None:
    crawl = Crawl()
    for number in range(40):
        crawl.drop(7, title=f"Title {number % 4}")
        crawl.drop(8 + number, title=f"Title {number}")
        crawl.drop(7, f"{number}.example", title=f"Title {number}")
    assert crawl.alarms == {}
    crawl.drop(7, title="A fifth title")
    crawl.drop(7, title="A sixth title")
    assert crawl.alarms == {"titles": 1}


@pytest.mark.parametrize(
    ("past", "pages", "alarms"),
    [
        # A site that was no mirror becomes one at once.
        ((0, 0), "p" * 20 + "d" * 13, {}),
        ((0, 0), "p" * 20 + "d" * 33, {"jump": 1}),
        # Drops that begin with the crawl are compared with earlier crawls, and with those just before.
        ((60, 0), "d" * 15, {"jump": 1}),
        ((60, 60), "d" * 15, {}),
        ((60, 30), "d" * 15, {}),
        ((200, 0), "ddppp" + "d" * 15, {}),
        # An unknown site that loses every page is a mirror.
        ((0, 0), "d" * 100, {}),
        # Delivered pages that are dropped are suspicious whatever the site was.
        ((60, 30), "Dp" * 9, {}),
        ((60, 30), "Dp" * 9 + "D", {"delivered": 1}),
    ],
)
def test_suspicious_are_drops_that_begin_at_once_or_of_delivered_pages(
    past: tuple[int, int], pages: str, alarms: dict[str, int]
) -> None:
    """``p``: a page that passes; ``d``: one that is dropped; ``D``: a delivered one."""
    crawl = Crawl(SiteDrops(SITE, *past))
    for one in pages:
        crawl.page() if one == "p" else crawl.drop(delivered=one == "D")
    assert crawl.alarms == alarms
    assert crawl.watch.counts() == [SiteDrops(SITE, len(pages), len(pages) - pages.count("p"), pages.count("D"))]


def test_a_copy_that_passes_is_no_drop_and_a_page_that_is_not_judged_counts_for_nothing() -> None:
    crawl = Crawl(SiteDrops(SITE, 60, 0))
    passes = Reservation(Record(1, "http://a.example/", 7), Fingerprint((), b""))
    for _ in range(40):
        crawl._see(SITE, Outcome.DUPLICATE, Match(7, "http://other.example/", 0.0, 0.9, 0.9), reservation=passes)
        crawl.page(outcome=Outcome.UNJUDGED)
    assert crawl.alarms == {}
    assert crawl.watch.counts() == [SiteDrops(SITE, 40, 0)]


@pytest.mark.parametrize(("minor", "expected"), [(10, {}), (11, {"minor_updates": 1}), (30, {"minor_updates": 1})])
def test_a_site_whose_known_pages_are_mostly_minor_updates_is_named_once(
    caplog: Log, minor: int, expected: dict[str, int]
) -> None:
    crawl = Crawl()
    for outcome, many in {
        Outcome.UNIQUE: 50,
        Outcome.UNCHANGED: 5,
        Outcome.UPDATED: 4,
        Outcome.MINOR_UPDATE: minor,
    }.items():
        for _ in range(many):
            crawl.page(outcome=outcome)
    assert crawl.alarms == expected
    assert len(caplog.messages) == len(expected)
    url = f"http://{SITE}/70"
    for one in caplog.messages:
        assert one.startswith(f"11 of 20 known pages of {SITE} differ from their delivered text by a few letters")
        assert f"Look at one: scrapy fetch --nolog {url} | scrapy neardup extract - --url {url}. " in one


def test_what_strangers_post_neither_passes_nor_hides_another_site(caplog: Log, monkeypatch: Patch) -> None:
    """Thousands of originals under six titles: one warning for that site, and the alarm of another one still comes."""
    monkeypatch.setattr(site_watch, "_WARNINGS", 2)
    crawl = Crawl(SiteDrops(SITE, 60, 0))
    for original in range(1, 500):
        for number in range(6):
            crawl.drop(original, "posts.example", title=f"Title {number}")
    assert (crawl.alarms, len(caplog.records)) == ({"titles": 1}, 1)
    for _ in range(20):
        crawl.drop()
    assert (crawl.alarms, len(caplog.records)) == ({"titles": 1, "jump": 1}, 2)
    for host in ("a.example", "b.example"):
        for number in range(6):
            crawl.drop(7, host, title=f"Title {number}")
    assert crawl.alarms == {"titles": 3, "jump": 1}
    assert len(caplog.records) == 3, "further sites are only counted"
    assert "scrapy neardup stats" in caplog.messages[-1]
    for _ in range(20):
        crawl.page(outcome=Outcome.MINOR_UPDATE)
    assert f"20 of 20 known pages of {SITE} differ" in caplog.messages[-1], "such warnings have a limit of their own"


def test_tables_are_bounded(monkeypatch: Patch) -> None:
    monkeypatch.setattr(site_watch, "_SITES", 3)
    monkeypatch.setattr(site_watch, "_ORIGINALS", 3)
    crawl = Crawl()
    for number in range(10):
        crawl.drop(number + 1, f"{number}.example", title="A title")
    assert [one.site for one in crawl.watch.counts()] == ["7.example", "8.example", "9.example"]
    assert len(crawl.watch._originals) == 3


def test_the_warning_is_a_line_with_commands_that_can_be_typed(caplog: Log) -> None:
    crawl = Crawl(SiteDrops(SITE, 60, 0), end=EVIL)
    for _ in range(20):
        crawl.drop()
    [record] = caplog.records
    message = record.getMessage()
    assert record.levelname == "WARNING"
    assert message.isprintable()
    assert "15 of its last 15 pages, and 0 of the 60 before them" in message
    commands = [shlex.split("scrapy neardup " + one)[2:] for one in message.split("scrapy neardup ")[1:]]
    assert [words[0] for words in commands] == ["compare", "dropped", "keep"]
    assert commands[1][:4] == ["dropped", "--last", "--site", f"{SITE}."]
    assert commands[2][:4] == ["keep", "--last", "--site", f"{SITE},"]


OLD = [f"http://{SITE}/old/{number}" for number in range(25)]
NEW = [f"http://{SITE}/new/{number}" for number in range(20)]


def test_one_command_brings_back_what_a_crawl_dropped_of_a_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: Log
) -> None:
    """Only the footer is read of the new pages of a relaunched site."""
    items = [
        {"url": url, "html": f"<title>Story {chr(0x4E00 + number)}</title><p>{article_text(number)}</p>"}
        for number, url in enumerate(OLD + NEW)
    ]
    extractor = "tests.crawl.project.half_broken_extractor"
    settings = {"NEARDUP_EXTRACTOR": extractor, "NEARDUP_STORE": f"sqlite://{tmp_path}/state.db"}
    first = crawl_items(*items, **settings)
    assert first.urls == [*OLD, NEW[0]]
    assert {name: first.count(f"suspicious_drops/{name}") for name in ("titles", "jump")} == {"titles": 1, "jump": 1}
    warnings = [one.getMessage() for one in caplog.records if "crawl.site_watch" in one.name]
    assert [f"scrapy neardup keep --last --site {SITE}" in one for one in warnings] == [True, True]
    capsys.readouterr()
    assert run_command("keep", "--last", "--site", SITE, "--json", "--store", settings["NEARDUP_STORE"]) == 0
    kept = json.loads(capsys.readouterr().out)["kept"]
    assert sorted(one["url"] for one in kept) == sorted(NEW[1:])
    second, third = crawl_items(*items, **settings), crawl_items(*items, **settings)
    assert second.urls == NEW[1:]
    assert (third.items, third.count("unchanged")) == ([], len(OLD + NEW))


def test_the_counts_of_a_crawl_reach_the_next_one(tmp_path: Path) -> None:
    """A mirror that is crawled before a site in the second crawl, and was not known in the first one."""
    settings = {"NEARDUP_STORE": f"sqlite://{tmp_path}/state.db"}
    crawl_items(*(article(number, url=f"http://{SITE}/{number}") for number in range(30)), **settings)
    hosts = ("foreign.example", SITE)
    later = [article(number, url=f"http://{host}/{number}") for host in hosts for number in range(30, 50)]
    second = crawl_items(*later, **settings)
    assert second.count("suspicious_drops/jump") == 1
    assert second.count("duplicate") == 20
