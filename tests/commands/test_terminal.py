"""Whatever the pages of a state and the records of a file say: no command lets it steer the terminal."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_neardup.commands import load
from scrapy_neardup.errors import NearDupError
from tests.commands.test_compare import FERRY, text

EVIL = "\x1b[2J\x1b]0;title\x07\u202egnp\x9b2J\n\u2028forged"
URLS = [f"http://a.example/{number}{EVIL}" for number in range(2)]
COMMANDS = [
    ["explain", URLS[1]],
    ["explain", URLS[0], f"http://b.example/{EVIL}"],
    ["explain", URLS[1], "--json"],
    ["groups"],
    ["groups", "--json"],
    ["stats"],
    ["stats", "--json"],
    ["check"],
    ["report", "--json"],
    ["compare", *URLS],
    ["compare", *URLS, "--json"],
    ["forget", URLS[1], "--dry-run"],
    ["forget", f"http://b.example/{EVIL}"],
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A feed of an article and its copy, evil wherever one can be, and of a record that is malformed."""
    records = [{"url": url, "title": EVIL, "text": f"{text(*FERRY)}\n{EVIL * 9}", EVIL: EVIL} for url in URLS]
    malformed = f'{{"url": "{EVIL.replace(chr(10), "")}'
    lines = [*map(json.dumps, records), malformed]
    (tmp_path / "feed.jsonl").write_text("\n".join(lines), "utf-8", newline="\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def is_clean(told: str) -> bool:
    """Nothing but lines, none of them forged."""
    printable = told.replace("\n", "").replace("\u3000", "").isprintable()
    return printable and not any(line.startswith("forged") for line in told.split("\n"))


def test_no_command_prints_what_could_steer_the_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dedup = ["dedup", "feed.jsonl", "-o", "out.jsonl", "--id", ""]
    for command in ([*dedup, "--text", "none"], dedup, *COMMANDS):
        name, *given = command
        module, parser = load(name), argparse.ArgumentParser()
        module.add_arguments(parser)
        arguments = parser.parse_args([*given, "--store", f"sqlite://{folder}/state.sqlite"])
        arguments.settings = Settings({"NEARDUP_KEEP": "texts"})
        try:
            module.run(arguments)
        except NearDupError as error:
            sys.stderr.write(str(error))
        told = capsys.readouterr()
        assert told.out + told.err, command
        assert name in ("dedup", "stats", "check") or "[2J" in told.out + told.err, "it names the page"
        assert is_clean(told.out), (command, told.out)
        assert is_clean(told.err), (command, told.err)
