"""Behaviour of all commands: refusals, output, and strings that could steer a terminal."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from scrapy_neardup.cli.command import parse_method, parse_parameters
from scrapy_neardup.cli.output import format_parts, is_coloured, write
from scrapy_neardup.errors import NearDupError, SettingsError, StoreError
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.marking import Mark, Part
from tests.build import BREAD, HOSTILE, PEAR, PEARS, join_text, open_state, state_url
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
def test_no_state_is_made(command: str, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_wrong_options_are_refused_first(command: str, arguments: list[str], named: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=re.escape(named)):
        run(command, *arguments, "--store", state_url("sqlite", tmp_path / "none"))


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        ("groups", ["--limit", "1.5"], "--limit"),
        ("groups", ["--min", "0"], "--min"),
        ("judgements", ["--limit", "few"], "--limit"),
    ],
)
def test_the_parser_refuses_numbers_out_of_range(
    command: str, arguments: list[str], named: str, neardup: Invoke
) -> None:
    done = neardup(command, *arguments)
    assert done.code == 2
    assert f"argument {named}: '{arguments[-1]}' is no whole number of" in done.err


def test_methods_and_parameters_from_the_line() -> None:
    for text, expected in [
        ("cascade:", ("cascade", {})),
        ("shop.methods.Mine: a = 1 , b=x", ("shop.methods.Mine", {"a": 1, "b": "x"})),
        ("mine:fields=title,text,count=3", ("mine", {"fields": "title,text", "count": 3})),
        (
            "mine:file=c:/words.txt,range=[1, 2],on=true",
            ("mine", {"file": "c:/words.txt", "range": [1, 2], "on": True}),
        ),
        ('mine:quoted="5",nothing=', ("mine", {"quoted": "5", "nothing": ""})),
    ]:
        assert parse_method(text) == expected
    for given in ["", "base", "=0.7", "a b=1"]:
        with pytest.raises(SettingsError, match="NAME=VALUE"):
            parse_parameters([given])


def test_characters_that_standard_output_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="ascii"))
    write("bridge 桥 –\n")
    assert taken.getvalue().decode() == "bridge \\u6865 \\u2013\n".replace("\n", sys.stdout.newlines or "\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal, {"TERM": "xterm"}, sys.platform != "win32"),
        (Terminal, {"TERM": "dumb"}, False),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (io.StringIO, {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_forbids_them(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], variables: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream())
    assert is_coloured() is expected


def test_each_mark_looks_different_and_colours_end_where_they_should() -> None:
    parts = [Part("a", mark) for mark in Mark]
    assert format_parts(parts, coloured=False) == "a[[a]]{{a}}"
    assert format_parts(parts, coloured=True) == "a\x1b[32ma\x1b[0m\x1b[90ma\x1b[0m"


EVIL = "\x1b[2J\x1b]0;title\x07\u202egnp\x9b2J\n\u2028forged"
URLS = [f"http://a.example/{number}{EVIL}" for number in range(2)]
#: A page whose kind and common sentences are hostile too.
ODD = f"https://evil.example/{HOSTILE}"
LINES = [
    ["explain", URLS[1]],
    ["explain", URLS[0], f"http://b.example/{EVIL}", ODD, f"{ODD}\x9b\u202e"],
    ["explain", URLS[1], ODD, f"{ODD}\x9b", "--json"],
    ["groups"],
    ["groups", "--json"],
    ["stats"],
    ["stats", "--json"],
    ["check"],
    ["dropped"],
    ["dropped", "--json"],
    ["report", "--json"],
    ["compare", *URLS],
    ["compare", *URLS, "--json"],
    ["forget", URLS[1], ODD, "--dry-run"],
    ["forget", "--host", "evil.example", "--dry-run", "--json"],
    ["forget", f"http://b.example/{EVIL}"],
    ["keep", URLS[1], ODD],
    ["judgements"],
    ["copy", URLS[1], f"http://b.example/{EVIL}"],
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A feed of an article, its copy and a malformed record, evil wherever one can be; the URL of a state to be."""
    records = [{"url": url, "title": EVIL, "text": f"{join_text(*PEARS)}\n{EVIL * 9}", EVIL: EVIL} for url in URLS]
    malformed = f'{{"url": "{EVIL.replace(chr(10), "")}'
    lines = [*map(json.dumps, records), malformed]
    (tmp_path / "feed.jsonl").write_text("\n".join(lines), "utf-8", newline="\n")
    monkeypatch.chdir(tmp_path)
    return state_url("sqlite", tmp_path / "state.sqlite")


def fill(store: str) -> None:
    run("dedup", "feed.jsonl", "-o", "out.jsonl", "--id", "", "--store", store, NEARDUP_KEEP="texts")
    with open_state(store) as state:
        original = state.find(URLS[0])
        assert original is not None
        evidence = Evidence(HOSTILE, 0, 0.7, 0.8, 20, HOSTILE, (HOSTILE,))
        state.add(Record(state.new_id(), ODD, original.id, 0.7), evidence)


def is_clean(output: str) -> bool:
    """Whether it has lines alone, and none is forged."""
    printable = output.replace("\n", "").replace("\u3000", "").isprintable()
    return printable and not any(line.startswith("forged") for line in output.split("\n"))


def test_dedup_names_fields_and_malformed_records_harmlessly(store: str, invoke: Invoke) -> None:
    done = invoke("dedup", "feed.jsonl", "-o", "out.jsonl", "--id", "", "--text", "none", "--store", store)
    assert is_clean(done.out)
    assert is_clean(done.err)
    assert "[2J" in done.err


@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_command_steers_the_terminal(
    store: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    fill(store)
    capsys.readouterr()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    for name, *given in LINES:
        try:
            run(name, *given, "--store", store, NEARDUP_KEEP="texts")
        except NearDupError as error:
            sys.stderr.write(str(error))
        output = capsys.readouterr()
        assert name == "check" or "2J" in output.out + output.err, "it names the page"
        assert is_clean(output.out), (name, given, output.out)
        assert is_clean(output.err), (name, given, output.err)


def test_json_and_files_hold_it_unchanged_for_a_program(store: str, invoke: Invoke, tmp_path: Path) -> None:
    fill(store)
    [page] = json.loads(invoke("explain", ODD, "--store", store, "--json").out)["pages"]
    assert (page["url"], page["kind"], page["title"], page["shared"]) == (ODD, HOSTILE, HOSTILE, [HOSTILE])
    invoke("groups", "--store", store, "-o", "groups.jsonl")
    written = (tmp_path / "groups.jsonl").read_text(encoding="utf-8")
    page = json.loads(written)["pages"][-1]
    assert (page["url"], page["kind"], page["title"]) == (ODD, HOSTILE, HOSTILE)
