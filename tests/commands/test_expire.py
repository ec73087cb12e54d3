"""``scrapy neardup expire``: what goes by its options and by the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.commands import expire
from scrapy_neardup.maintenance.verify import check
from tests.maintenance.states import (
    BREAD,
    EDITED,
    PAGES,
    PEAR,
    POWER,
    SAME,
    SHORT,
    aged,
    made,
    opened,
    parsed,
    records,
    run,
)

DAY = 86_400
ALL = {url for url, *_ in PAGES}


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def said(*arguments: str, state: str) -> dict[str, Any]:
        assert run(expire, *arguments, "--store", state, "--json") == 0
        found: dict[str, Any] = parsed(capsys.readouterr().out)
        return found

    return said


@pytest.fixture
def state(tmp_path: Path) -> str:
    """The pages of ``PAGES``: the pears and their copy were seen 50 days ago, the same as their text 5 days ago."""
    url = made("sqlite", tmp_path)
    with opened(url) as store:
        days = {PEAR: 50, EDITED: 50, SAME: 5, BREAD: 100, POWER: 40, SHORT: 80}
        aged(store, {url: store.now() - many * DAY for url, many in days.items()})
    return url


def left(state: str) -> set[str]:
    with opened(state) as store:
        assert check(store).sound
    return set(records(state))


def test_a_dry_run_says_what_would_go_and_changes_nothing(said: Callable[..., dict[str, Any]], state: str) -> None:
    found = said("--ttl", "60d", "--dry-run", state=state)
    assert (found["dry_run"], found["pages"], found["originals"], found["unjudged"]) == (True, 2, 1, 1)
    assert set(found["urls"]) == {BREAD, SHORT}
    assert (found["ttl"], found["max_pages"], found["pages_left"]) == (60 * DAY, None, len(ALL) - 2)
    assert left(state) == ALL


def test_what_was_not_seen_for_the_ttl_goes(said: Callable[..., dict[str, Any]], state: str) -> None:
    """An original that was seen in a copy stays."""
    assert said("--ttl", "45d", state=state)["pages"] == 3
    assert left(state) == ALL - {BREAD, SHORT, EDITED}


def test_of_too_many_those_go_that_were_seen_longest_ago(said: Callable[..., dict[str, Any]], state: str) -> None:
    assert said("--max-pages", "4", state=state)["pages_left"] == 4
    assert left(state) == ALL - {BREAD, SHORT, EDITED, POWER}


def test_without_options_the_settings_hold(state: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(expire, "--store", state, NEARDUP_TTL="90d", NEARDUP_MAX_PAGES=7) == 0
    assert capsys.readouterr().out == "forgot 1 page: 1 original\n"
    assert run(expire, "--store", state, NEARDUP_TTL="90d") == 0
    assert capsys.readouterr().out == "There is nothing to forget.\n"
    assert run(expire, "--ttl", "70d", "--store", state, NEARDUP_TTL="10d") == 0
    assert left(state) == ALL - {BREAD, SHORT}
