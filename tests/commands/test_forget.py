"""``scrapy neardup forget`` and ``expire``: what goes and what stays, and that what went is judged anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.ages import parse_time
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from tests.build import (
    BREAD,
    EDITED,
    EXCERPT,
    PAGES,
    PEAR,
    POWER,
    POWER_AGAIN,
    SAME,
    SHORT,
    judge_pages,
    make_state,
    open_state,
    read_records,
    set_last_seen,
)
from tests.cli import Invoke, command_line, environment, run

ALL = {url for url, *_ in PAGES}
DAY = 86400
NOW = datetime.now(timezone.utc).timestamp()
WEIXIN = [f"https://mp.weixin.qq.com/s?__biz={biz}&mid={n}" for biz, n in (("MzA5==", 1), ("MzA5==", 2), ("Mzb7", 3))]


@pytest.fixture
def said(invoke: Invoke) -> Callable[..., dict[str, Any]]:
    """Runs ``forget`` or another command; returns its JSON, with the exit code as ``code``."""

    def said(*arguments: str, state: str, command: str = "forget") -> dict[str, Any]:
        done = invoke(command, *arguments, "--store", state, "--json")
        return {**json.loads(done.out), "code": done.code}

    return said


def left(state: str) -> set[str]:
    """The URLs that are still there, in a state that holds together."""
    with open_state(state) as store:
        assert check(store).sound
    return set(read_records(state))


def test_a_forgotten_page_is_judged_anew(state: str) -> None:
    pages = {page[0]: page for page in PAGES}
    with open_state(state) as store:
        assert judge_pages(store, [pages[PEAR], pages[SAME]]) == ["unchanged", "duplicate (identical)"]
    assert run("forget", PEAR, EXCERPT, "--store", state) == 0
    with open_state(state) as store:
        assert judge_pages(store, [pages[SAME], pages[PEAR], pages[EDITED], pages[BREAD]]) == [
            *("unique", "duplicate (identical)", "duplicate (retitled)", "unchanged")
        ]
    assert left(state) == ALL - {EXCERPT}
    assert read_records(state)[PEAR].original == read_records(state)[SAME].id


@pytest.mark.parametrize(
    ("urls", "counts", "gone"),
    [
        ([PEAR, BREAD], (2, 2, 0, 0), {PEAR, EDITED, SAME, BREAD}),
        ([PEAR, EDITED], (1, 2, 0, 0), {PEAR, EDITED, SAME}),
        ([EDITED, SAME], (0, 0, 2, 0), {EDITED, SAME}),
        ([SHORT], (0, 0, 0, 1), {SHORT}),
    ],
)
def test_a_copy_goes_alone_and_forgotten_pages_are_counted(
    sqlite: str, said: Callable[..., dict[str, Any]], urls: list[str], counts: tuple[int, ...], gone: set[str]
) -> None:
    found = said(*urls, state=sqlite)
    assert tuple(found[name] for name in ("originals", "copies_of_them", "other_copies", "unjudged")) == counts
    assert (found["pages"], set(found["urls"])) == (len(gone), gone)
    assert left(sqlite) == ALL - gone


def test_a_url_that_is_not_there_is_named_and_the_others_go(sqlite: str, said: Callable[..., dict[str, Any]]) -> None:
    found = said(f"{BREAD}/", SHORT, state=sqlite)
    assert (found["urls"], found["missing"], found["code"]) == ([SHORT], [f"{BREAD}/"], 1)
    assert left(sqlite) == ALL - {SHORT}
    assert said("nothing", state=sqlite)["code"] == 1


@pytest.mark.parametrize("options", [["--yes"], ["--yes", "--json"]])
def test_all_pages_go_where_the_question_is_answered_by_an_option(sqlite: str, options: list[str]) -> None:
    assert run("forget", "--all", *options, "--store", sqlite) == 0
    assert left(sqlite) == set()


def test_without_a_terminal_nobody_can_answer(sqlite: str) -> None:
    with pytest.raises(SettingsError, match="--yes"):
        run("forget", "--all", "--store", sqlite)
    with pytest.raises(SettingsError, match="--all"):
        run("forget", "--all", PEAR, "--yes", "--store", sqlite)
    assert run("forget", "--all", "--dry-run", "--store", sqlite) == 0
    assert left(sqlite) == ALL


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_on_a_terminal_it_asks_and_keys_typed_before_are_no_answer(sqlite: str, answer: str) -> None:
    terminal, end = os.openpty()
    os.write(terminal, b"yes\nno\n")
    command = command_line("forget", "--all", "--store", sqlite)
    with subprocess.Popen(command, env=environment(), stdin=end, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.read(14) == b"Forget all 8 p"
        os.write(terminal, f"{answer}\n".encode())
        assert running.wait(60) == (answer == "no")
    os.close(terminal)
    os.close(end)
    assert left(sqlite) == (ALL if answer == "no" else set())


def test_a_dry_run_changes_nothing(state: str, said: Callable[..., dict[str, Any]]) -> None:
    found = said(PEAR, SHORT, "--dry-run", state=state)
    assert (found["dry_run"], found["urls"]) == (True, [PEAR, EDITED, SAME, SHORT])
    assert left(state) == ALL


@pytest.mark.parametrize(
    ("host", "gone"),
    [
        ("orchard.example", {PEAR, EDITED, SAME, EXCERPT}),
        ("WWW.Orchard.example.", {PEAR, EDITED, SAME, EXCERPT}),
        ("news.orchard.example", {EXCERPT}),
        ("mirror.example", {EDITED, SAME}),
        ("town.example", {POWER, POWER_AGAIN, SHORT}),
        ("mp.weixin.qq.com", set(WEIXIN)),
        ("mp.weixin.qq.com MzA5==", set(WEIXIN[:2])),
        ("mp.weixin.qq.com MzA5", set()),
        ("梨.example", {"https://xn--30v.example/1"}),
        ("xn--30v.example", {"https://xn--30v.example/1"}),
        ("chard.example", set()),
        ("rchard.example MzA5", set()),
    ],
)
def test_all_pages_of_a_host(sqlite: str, said: Callable[..., dict[str, Any]], host: str, gone: set[str]) -> None:
    assert "梨".encode("idna") == b"xn--30v"
    more = {*WEIXIN, "https://xn--30v.example/1"}
    with open_state(sqlite) as store:
        for url in sorted(more):
            id = store.new_id()
            store.add(Record(id, url, id, keys=(id,), sketch=b"sketch"))
    found = said("--host", host, state=sqlite)
    assert (found["pages"], set(found["urls"]), found["code"]) == (len(gone), gone, 0 if gone else 1)
    assert left(sqlite) == (ALL | more) - gone


@pytest.mark.parametrize(
    ("seen", "time", "gone"),
    [
        ({}, "1d", set()),
        ({PEAR: 10, EDITED: 10, SAME: 10}, "4d", {PEAR, EDITED, SAME}),
        ({PEAR: 10, EDITED: 10}, "4d", {EDITED}),  # the other copy was seen since
        ({EDITED: 10, SHORT: 10, BREAD: 2}, "72h", {EDITED, SHORT}),
        ({BREAD: 6, POWER: 8}, "1w", {POWER}),
        ({BREAD: 20 * 365}, "2015-01-01", {BREAD}),
    ],
)
def test_pages_last_seen_before_a_time_go(
    state: str, said: Callable[..., dict[str, Any]], seen: dict[str, int], time: str, gone: set[str]
) -> None:
    with open_state(state) as store:
        set_last_seen(store, {url: NOW - days * DAY for url, days in seen.items()})
    found = said("--before", time, state=state)
    assert (set(found["urls"]), found["code"]) == (gone, 0)
    assert left(state) == ALL - gone


def test_times_and_ages() -> None:
    for time, expected in [
        ("2025-03-01", "2025-03-01T00:00:00+00:00"),
        ("2025-03-01T08:30+08:00", "2025-03-01T00:30:00+00:00"),
        (" 2025-03-01 08:30:05 ", "2025-03-01T08:30:05+00:00"),
        ("0d", "2025-12-31T00:00:00+00:00"),
        ("2 w", "2025-12-17T00:00:00+00:00"),
        ("30min", "2025-12-30T23:30:00+00:00"),
        ("1.5D", "2025-12-29T12:00:00+00:00"),
        *((wrong, None) for wrong in ("", "90", "2025", "20250301", "90m", "yesterday", "-3d", "2025-13-01")),
        *((wrong, None) for wrong in ("2026-01-01", "9999999d", "1.5.d")),
    ]:
        now = datetime(2025, 12, 31, tzinfo=timezone.utc)
        if expected is None:
            with pytest.raises(SettingsError, match="--before is "):
                parse_time("--before", time, now)
        else:
            assert parse_time("--before", time, now) == datetime.fromisoformat(expected).timestamp()


def test_an_interrupted_run_is_ended_by_asking_again(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies go first: were the original gone, nothing would name them any more."""
    forgotten: list[int] = []

    def interrupted(self: PageStore, ids: Any) -> int:
        [first, *_] = ids
        forgotten.append(first)
        original_forget(self, [first])
        raise KeyboardInterrupt

    original_forget = PageStore.forget
    with monkeypatch.context() as patched:
        patched.setattr(PageStore, "forget", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run("forget", PEAR, "--store", sqlite)
    assert len(left(sqlite)) == len(ALL) - 1
    assert run("forget", PEAR, "--store", sqlite) == 0
    assert left(sqlite) == ALL - {PEAR, EDITED, SAME}


@pytest.fixture
def old(tmp_path: Path) -> str:
    """The pages of ``PAGES``: the pears and their copy were seen 50 days ago, the same as their text 5 days ago."""
    url = make_state("sqlite", tmp_path)
    with open_state(url) as store:
        days = {PEAR: 50, EDITED: 50, SAME: 5, BREAD: 100, POWER: 40, SHORT: 80}
        set_last_seen(store, {url: store.clock.now() - many * DAY for url, many in days.items()})
    return url


@pytest.mark.parametrize(
    ("arguments", "settings", "gone"),
    [
        (["--ttl", "45d"], {}, {BREAD, SHORT, EDITED}),  # an original that was seen in a copy stays
        (["--max-pages", "4"], {}, {BREAD, SHORT, EDITED, POWER}),
        ([], {"NEARDUP_TTL": "90d", "NEARDUP_MAX_PAGES": 7}, {BREAD}),
        (["--ttl", "70d"], {"NEARDUP_TTL": "10d"}, {BREAD, SHORT}),
    ],
)
def test_expire_takes_limits_from_options_or_else_from_settings(
    invoke: Invoke, old: str, arguments: list[str], settings: dict[str, Any], gone: set[str]
) -> None:
    found = json.loads(invoke("expire", *arguments, "--store", old, "--json", **settings).out)
    assert (found["pages"], found["pages_left"]) == (len(gone), len(ALL - gone))
    assert left(old) == ALL - gone
