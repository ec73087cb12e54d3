"""What the commands on a state refuse alike: a state that is missing or in memory, and wrong options."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from scrapy_neardup.cli import (
    check,
    compact,
    copy,
    dropped,
    expire,
    explain,
    export,
    forget,
    groups,
    judgements,
    keep,
    migrate,
    report,
    stats,
)
from scrapy_neardup.errors import SettingsError, StoreError
from tests.build import BREAD, PEAR, state_url
from tests.cli import run

#: Each command with arguments that are right.
COMMANDS = [
    (check, []),
    (compact, []),
    (copy, [BREAD, PEAR]),
    (dropped, []),
    (expire, ["--ttl", "1d"]),
    (explain, [PEAR]),
    (export, ["-o", "pages.gz"]),
    (forget, ["--before", "1d"]),
    (groups, []),
    (judgements, []),
    (keep, [PEAR]),
    (migrate, []),
    (report, []),
    (stats, []),
]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=[command.NAME for command, _ in COMMANDS])
def test_there_must_be_a_state_that_lasts_and_none_is_made(
    command: ModuleType, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="There is no state at") as refused:
        run(command, *arguments, "--store", state_url("sqlite", tmp_path / "none"))
    assert "Make" not in str(refused.value), "room is of no help"
    with pytest.raises(StoreError, match="in memory"):
        run(command, *arguments, "--store", "memory:")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        (copy, [PEAR], "copy URL ORIGINAL"),
        (copy, [PEAR, BREAD, "--remove"], "copy --remove URL"),
        (dropped, ["--limit", "-1"], "--limit is -1"),
        (dropped, ["--since", "yesterday"], "--since is 'yesterday'"),
        (expire, [], "Add --ttl 90d or --max-pages 1000000, or set NEARDUP_TTL or NEARDUP_MAX_PAGES"),
        (expire, ["--ttl", "soon"], "--ttl is 'soon'"),
        (expire, ["--max-pages", "0"], "--max-pages is '0'. Set it to a number from 1 to"),
        (explain, [PEAR, "--limit", "-1"], "--limit is -1"),
        *(
            (forget, arguments, "exactly one way")
            for arguments in (
                [],
                [PEAR, "--host", "a.example"],
                ["--host", "a.example", "--before", "1d"],
                [PEAR, "--before", "1d"],
            )
        ),
        *(
            (forget, ["--host", host], "--host is")
            for host in ("", " ", "https://a.example/", "a.example/x", "a.example:80", "a b c", "u@a.example")
        ),
        (groups, ["--limit", "-1"], "--limit is -1"),
        (groups, ["--min", "0"], "--min is 0"),
        (judgements, ["--limit", "-1"], "--limit is -1"),
        (keep, [], "No page is named"),
        (keep, ["--site", "mirror.example"], "--last"),
        (report, ["--pages", "0"], "--pages is 0"),
        (report, ["--pages", "-3"], "--pages is -3"),
        (stats, ["--limit", "-1"], "--limit is -1"),
    ],
)
def test_wrong_options_are_refused_before_a_state_is_looked_for(
    command: ModuleType, arguments: list[str], named: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=re.escape(named)):
        run(command, *arguments, "--store", state_url("sqlite", tmp_path / "none"))
