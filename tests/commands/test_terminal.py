"""Whatever the pages of a state and the records of a file say: no command lets it steer the terminal."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.record import Record
from tests.build import HOSTILE, PEARS, join_text, open_state, state_url
from tests.cli import Invoke, run

EVIL = "\x1b[2J\x1b]0;title\x07\u202egnp\x9b2J\n\u2028forged"
URLS = [f"http://a.example/{number}{EVIL}" for number in range(2)]
#: A page whose kind and common sentences are hostile too.
ODD = f"https://evil.example/{HOSTILE}"
COMMANDS = [
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


def is_clean(told: str) -> bool:
    """Nothing but lines, none of them forged."""
    printable = told.replace("\n", "").replace("\u3000", "").isprintable()
    return printable and not any(line.startswith("forged") for line in told.split("\n"))


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
    for name, *given in COMMANDS:
        try:
            run(name, *given, "--store", store, NEARDUP_KEEP="texts")
        except NearDupError as error:
            sys.stderr.write(str(error))
        told = capsys.readouterr()
        assert name == "check" or "2J" in told.out + told.err, "it names the page"
        assert is_clean(told.out), (name, given, told.out)
        assert is_clean(told.err), (name, given, told.err)


def test_json_and_files_hold_it_unchanged_for_a_program(store: str, invoke: Invoke, tmp_path: Path) -> None:
    fill(store)
    [page] = json.loads(invoke("explain", ODD, "--store", store, "--json").out)["pages"]
    assert (page["url"], page["kind"], page["title"], page["shared"]) == (ODD, HOSTILE, HOSTILE, [HOSTILE])
    invoke("groups", "--store", store, "-o", "groups.jsonl")
    written = (tmp_path / "groups.jsonl").read_text(encoding="utf-8")
    assert is_clean(written)
    page = json.loads(written)["pages"][-1]
    assert (page["url"], page["kind"], page["title"]) == (ODD, HOSTILE, HOSTILE)
