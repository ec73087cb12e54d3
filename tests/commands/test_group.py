"""``scrapy neardup`` itself, and what all commands share: refusals, and strings that could steer a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from scrapy_neardup.cli import COMMANDS, GROUPS, NearDupCommand, list_commands
from scrapy_neardup.cli.measure import parse_method
from scrapy_neardup.cli.output import write
from scrapy_neardup.errors import SettingsError, StoreError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.state.record import Evidence, Record
from tests.build import BREAD, HOSTILE, PEAR, PEARS, join_text, open_state, state_url
from tests.cli import Invoke, command_line, environment, is_clean, make_project, run, run_scrapy


@pytest.mark.parametrize("inside", [False, True])
def test_alone_and_for_help_it_lists_the_commands(tmp_path: Path, inside: bool) -> None:
    folder = make_project(tmp_path) if inside else tmp_path
    for arguments, code in (((), 2), (("--help",), 0)):
        done = run_scrapy(*arguments, cwd=folder)
        assert (done.returncode, done.stderr) == (code, "")
        assert list_commands() in done.stdout
    assert all(done.stdout.count(f"\n  {name} ") == 1 for name in COMMANDS)
    assert set(GROUPS) <= set(COMMANDS)


def test_a_command_has_its_help_and_the_version_names_the_compiled_module(tmp_path: Path) -> None:
    done = run_scrapy("forget", "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout.startswith("usage: scrapy neardup forget")) == (0, True)
    assert "--before TIME" in done.stdout
    assert "examples:\n  scrapy neardup forget https://" in done.stdout
    said = run_scrapy("--version", cwd=tmp_path).stdout
    assert said.startswith(f"scrapy-neardup {version('scrapy-neardup')}, Scrapy ")
    assert compiled.sentence() in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["compose"], "scrapy neardup: There is no command 'compose'. Choose one of: dedup, batch, "),
        (
            ["evaluate", "news", "--pairs", "x", "--quick"],
            "scrapy neardup evaluate: error: unrecognized arguments: --quick",
        ),
        (["explain", "x", "--limit", "1.5"], "argument --limit: '1.5' is no whole number of 0 or more"),
        (["report", "--pages", "0"], "argument --pages: '0' is no whole number of 1 or more"),
        (["evaluate", "gone", "--pairs", "x"], "scrapy neardup evaluate: gone"),  # a sentence
        (["-s", "NEARDUP_WAIT=x", "stats"], "scrapy neardup stats: NEARDUP_WAIT is 'x'"),  # options of Scrapy
        (["stats", "-s", "NEARDUP_WAIT=x", "--json"], "scrapy neardup stats: NEARDUP_WAIT is 'x'"),
    ],
)
def test_mistakes_have_exit_code_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run_scrapy(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), done.stderr


@pytest.mark.slow
def test_a_reader_who_leaves_ends_it_quietly_and_a_full_disk_with_a_sentence(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"id": "{id}", "text": "A bridge."}}\n' for id in "ab"))
    (tmp_path / "gold.jsonl").write_text('{"a": "a", "b": "b", "drop": "yes"}\n')
    command = command_line("evaluate", "docs.jsonl", "--pairs", "gold.jsonl")
    done = subprocess.run(command, cwd=tmp_path, env=environment(), stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    if Path("/dev/full").exists():
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, cwd=tmp_path, env=environment(), stdout=full, stderr=subprocess.PIPE)
        said = b"scrapy neardup evaluate: The output cannot be written: [Errno 28] No space left on device. Make room"
        assert (done.returncode, done.stderr.startswith(said)) == (2, True)


@pytest.mark.slow
def test_scrapy_lists_it_and_its_other_commands_do_not_wait_for_ours_to_be_imported(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert f"neardup       {NearDupCommand().short_desc()}" in run("-m", "scrapy")
    code = (
        "import sys, scrapy_neardup.cli as ours;"
        "print([name for name in sys.modules if name.startswith('scrapy_neardup')],"
        "{'numpy', 'jieba', 'trafilatura', 'tabulate', 'tqdm'} & set(sys.modules))"
    )
    ours = ["scrapy_neardup", "scrapy_neardup.untrusted", "scrapy_neardup.errors", "scrapy_neardup.cli"]
    assert run("-c", code) == f"{ours} set()\n"


# Each command


#: Each command for an existing state, with arguments that are right.
ARGUMENTS = {
    "check": [],
    "compare": [PEAR, BREAD],
    "copy": [BREAD, PEAR],
    "dropped": [],
    "explain": [PEAR],
    "export": ["-o", "copy"],
    "forget": ["--before", "1d"],
    "judgements": [],
    "keep": [PEAR],
    "migrate": [],
    "report": [],
    "stats": [],
}


@pytest.mark.parametrize("command", ARGUMENTS)
def test_no_state_is_made(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="There is no state at") as refused:
        run(command, *ARGUMENTS[command], "--store", state_url("sqlite", tmp_path / "none"))
    assert "Make" not in str(refused.value), "room is of no help"
    with pytest.raises(StoreError, match="in memory"):
        run(command, *ARGUMENTS[command], "--store", "memory:")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "arguments", "named"),
    [
        ("forget", [], "exactly one way"),
        ("forget", [PEAR, "--host", "a.example"], "exactly one way"),
        ("forget", ["--host", "a.example", "--before", "1d"], "exactly one way"),
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


def test_methods_and_parameters_from_the_line() -> None:
    for text, expected in [
        ("shop.methods.Mine: a = 1 , b=x", ("shop.methods.Mine", {"a": 1, "b": "x"})),
        ("mine:fields=title,text,count=3", ("mine", {"fields": "title,text", "count": 3})),
        ("mine:file=c:/words.txt,range=[1, 2]", ("mine", {"file": "c:/words.txt", "range": [1, 2]})),
        ('mine:quoted="5",nothing=', ("mine", {"quoted": "5", "nothing": ""})),
    ]:
        assert parse_method(text) == expected
    for given in ["base", "=0.7", "a b=1"]:
        with pytest.raises(SettingsError, match="NAME=VALUE"):
            parse_method(f"cascade:{given}")


def test_characters_that_standard_output_lacks_or_that_steer_it_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="ascii"))
    write("bridge 桥 – \x1b[2J\n")
    assert taken.getvalue().decode() == "bridge \\u6865 \\u2013 \\x1b[2J\n".replace("\n", sys.stdout.newlines or "\n")


EVIL = "\x1b[2J\x1b]0;title\x07\u202egnp\x9b2J\n\u2028forged"
URLS = [f"http://a.example/{number}{EVIL}" for number in range(2)]
#: A page whose kind and common sentences are hostile too.
ODD = f"https://evil.example/{HOSTILE}"
LINES = [
    ["explain", URLS[1]],
    ["explain", URLS[0], f"http://b.example/{EVIL}", ODD, f"{ODD}\x9b\u202e"],
    ["explain", URLS[1], ODD, f"{ODD}\x9b", "--json"],
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
    ["judgements", "--json"],
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


def test_dedup_names_fields_and_malformed_records_harmlessly(store: str, invoke: Invoke) -> None:
    done = invoke("dedup", "feed.jsonl", "-o", "out.jsonl", "--id", "", "--text", "none", "--store", store)
    assert is_clean(done.out + done.err)
    assert "[2J" in done.err


def test_no_command_steers_the_terminal_and_json_holds_strings_unchanged(store: str, neardup: Invoke) -> None:
    neardup("dedup", "feed.jsonl", "-o", "out.jsonl", "--id", "", "--store", store, NEARDUP_KEEP="texts")
    with open_state(store) as state:
        original = state.find(URLS[0])
        assert original is not None
        evidence = Evidence(HOSTILE, 0, 0.7, 0.8, 20, HOSTILE, (HOSTILE,))
        state.add(Record(state.new_id(), ODD, original.id, 0.7), evidence)
    [page] = neardup("explain", ODD, "--store", store, "--json").data["pages"]
    assert (page["url"], page["kind"], page["title"], page["shared"]) == (ODD, HOSTILE, HOSTILE, [HOSTILE])
    for name, *given in LINES:
        done = neardup(name, *given, "--store", store, NEARDUP_KEEP="texts")
        assert name in ("check", "stats") or "2J" in done.out + done.err, "it names the page"
        assert is_clean(done.out + done.err), (name, given, done)
