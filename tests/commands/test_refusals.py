"""What the commands on a state refuse alike: a state that is missing or in memory, and wrong options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scrapy_neardup.errors import SettingsError, StoreError
from tests.build import BREAD, PEAR, state_url
from tests.cli import Invoke, run

#: Each command with arguments that are right.
COMMANDS = [
    ("check", []),
    ("compact", []),
    ("compare", [PEAR, BREAD]),
    ("copy", [BREAD, PEAR]),
    ("dropped", []),
    ("expire", ["--ttl", "1d"]),
    ("explain", [PEAR]),
    ("export", ["-o", "pages.gz"]),
    ("forget", ["--before", "1d"]),
    ("groups", []),
    ("judgements", []),
    ("keep", [PEAR]),
    ("migrate", []),
    ("report", []),
    ("stats", []),
]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_missing_state_is_refused_and_not_made(
    command: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        ("copy", [PEAR], "copy URL ORIGINAL"),
        ("copy", [PEAR, BREAD, "--remove"], "copy --remove URL"),
        ("dropped", ["--since", "yesterday"], "--since is 'yesterday'"),
        ("expire", [], "Add --ttl 90d or --max-pages 1000000, or set NEARDUP_TTL or NEARDUP_MAX_PAGES"),
        ("expire", ["--ttl", "soon"], "--ttl is 'soon'"),
        ("expire", ["--max-pages", "0"], "--max-pages is '0'. Set it to a number from 1 to"),
        *(
            ("forget", arguments, "exactly one way")
            for arguments in (
                [],
                [PEAR, "--host", "a.example"],
                ["--host", "a.example", "--before", "1d"],
                [PEAR, "--before", "1d"],
            )
        ),
        *(
            ("forget", ["--host", host], "--host is")
            for host in ("", " ", "https://a.example/", "a.example/x", "a.example:80", "a b c", "u@a.example")
        ),
        ("keep", [], "No page is named"),
        ("keep", ["--site", "mirror.example"], "--last"),
    ],
)
def test_wrong_options_are_refused_before_a_state_is_looked_for(
    command: str, arguments: list[str], named: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=re.escape(named)):
        run(command, *arguments, "--store", state_url("sqlite", tmp_path / "none"))


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        ("compare", ["a.html", "b.html", "--limit", "-1"], "--limit"),
        ("dropped", ["--limit", "-1"], "--limit"),
        ("explain", [PEAR, "--limit", "-1"], "--limit"),
        ("groups", ["--limit", "1.5"], "--limit"),
        ("groups", ["--min", "0"], "--min"),
        ("judgements", ["--limit", "few"], "--limit"),
        ("lexicon", ["feed.jsonl", "-o", "x", "--at-least", "0"], "--at-least"),
        ("report", ["--pages", "0"], "--pages"),
        ("robustness", ["feed.jsonl", "--pages", "1"], "--pages"),
        ("stats", ["--limit", "-1"], "--limit"),
        ("tune", ["feed.jsonl", "--limit", "-1"], "--limit"),
        ("tune", ["feed.jsonl", "--pairs", "0"], "--pairs"),
    ],
)
def test_numbers_out_of_range_are_refused_by_the_parser(
    command: str, arguments: list[str], named: str, neardup: Invoke
) -> None:
    done = neardup(command, *arguments)
    assert done.code == 2
    assert f"argument {named}: '{arguments[-1]}' is no whole number of" in done.err
