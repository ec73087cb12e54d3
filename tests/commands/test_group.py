"""``scrapy neardup`` itself: what it lists, where it is found, and how commands end."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from scrapy.utils.project import get_project_settings

from scrapy_neardup.cli import COMMANDS, GROUPS, NearDupCommand, list_commands, load
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.hashing import compiled
from tests.cli import command_line, environment, make_project, run_scrapy


def parsed(line: str) -> tuple[NearDupCommand, argparse.Namespace, list[str]]:
    """The command, and what becomes of a line, as Scrapy goes about it."""
    group = NearDupCommand()
    group.settings = get_project_settings()
    parser = argparse.ArgumentParser(conflict_handler="resolve", description=group.long_desc())
    group.add_options(parser)
    options, rest = parser.parse_known_args(line.split())
    group.process_options(rest, options)
    return group, options, rest


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[argparse.Namespace], int]], int]:
    """Runs ``evaluate`` with another body; returns the exit code."""

    def run(body: Callable[[argparse.Namespace], int]) -> int:
        command = replace(load("evaluate"), run=body)
        monkeypatch.setattr("scrapy_neardup.cli.load", lambda name: command)
        group, options, rest = parsed("evaluate news")
        group.run(rest, options)
        return group.exitcode

    return run


@pytest.mark.parametrize("inside", [False, True])
def test_alone_it_lists_the_commands_inside_and_outside_of_a_project(tmp_path: Path, inside: bool) -> None:
    done = run_scrapy(cwd=make_project(tmp_path) if inside else tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    for name in COMMANDS:
        assert f"  {name} " in done.stdout
        assert COMMANDS[name][1] in done.stdout


def test_help_names_the_commands_and_the_version_the_compiled_module(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed("--help")
    assert stopped.value.code == 0
    said = capsys.readouterr().out
    assert list_commands() in said
    assert all(said.count(f"\n  {name} ") == 1 for name in COMMANDS)
    assert set(GROUPS) <= set(COMMANDS)
    group, options, rest = parsed("--version")
    group.run(rest, options)
    said = capsys.readouterr().out
    assert said.startswith(f"scrapy-neardup {version('scrapy-neardup')}, Scrapy ")
    assert compiled.sentence() in said
    assert group.exitcode == 0


@pytest.mark.slow
def test_scrapy_lists_it_among_its_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scrapy"], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert f"neardup       {NearDupCommand().short_desc()}" in done.stdout


def test_an_unknown_command_or_option_is_an_error_of_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_scrapy("compose", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "invalid choice: 'compose'" in done.stderr
    group, options, rest = parsed("evaluate news --quick")
    with pytest.raises(SystemExit, match="2"):
        group.run(rest, options)
    assert "scrapy neardup evaluate: error: unrecognized arguments: --quick" in capsys.readouterr().err


def test_scrapys_own_options_are_taken_before_and_after_the_name() -> None:
    for line in ["-s NEARDUP_WAIT=3 evaluate news", "evaluate news -s NEARDUP_WAIT=3"]:
        group, options, rest = parsed(line)
        assert (options.corpus, rest) == ([Path("news")], []), line
        assert group.settings is not None, line
        assert group.settings["NEARDUP_WAIT"] == "3", line


def test_the_exit_code_is_that_of_the_command_and_an_error_of_ours_is_a_sentence(
    running: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(error: Exception) -> Callable[[argparse.Namespace], int]:
        def body(_: argparse.Namespace) -> int:
            raise error

        return body

    assert [running(lambda _: 0), running(lambda _: 1)] == [0, 1]
    assert running(fail(NearDupError("The bridge is closed; take the ferry."))) == 2
    assert capsys.readouterr() == ("", "scrapy neardup evaluate: The bridge is closed; take the ferry.\n")
    with pytest.raises(ZeroDivisionError):
        running(fail(ZeroDivisionError()))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets this process take an interrupt, which shells keep from processes in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="named pipes and signals")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_it_quietly(tmp_path: Path) -> None:
    pipe = tmp_path / "docs.jsonl"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            command_line("evaluate", str(pipe)),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as running,
        pipe.open("wb"),
    ):  # which waits until the other end is opened for reading
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60) == (b"", b"")
    assert running.returncode == 130


@pytest.mark.slow
def test_a_reader_who_leaves_ends_it_quietly(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    (tmp_path / "docs.jsonl").write_text("".join(f'{{"id": "{id}", "text": "A bridge."}}\n' for id in "ab"))
    (tmp_path / "gold.jsonl").write_text('{"a": "a", "b": "b", "drop": "yes"}\n')
    done = subprocess.run(
        command_line("evaluate", "."),
        cwd=tmp_path,
        env=environment(),
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_other_commands_of_scrapy_do_not_wait_for_ours_to_be_imported() -> None:
    code = (
        "import sys, scrapy_neardup.cli as ours;"
        "print([name for name in sys.modules if name.startswith('scrapy_neardup')],"
        "{'numpy', 'jieba', 'trafilatura', 'tabulate', 'tqdm'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    ours = ["scrapy_neardup", "scrapy_neardup.untrusted", "scrapy_neardup.errors", "scrapy_neardup.cli"]
    assert done.stdout == f"{ours} set()\n"
