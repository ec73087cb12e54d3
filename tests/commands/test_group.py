"""``scrapy neardup`` itself: what it lists, where it is found, and how commands end."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from scrapy_neardup.cli import COMMANDS, GROUPS, NearDupCommand, list_commands
from scrapy_neardup.hashing import compiled
from tests.cli import command_line, environment, make_project, run_scrapy


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
