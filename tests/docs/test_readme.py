"""The README alone gets a newcomer through the first five minutes; its test command is the one that CI runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import run_scrapy
from tests.docs.pages import READMES, ROOT, blocks, source
from tests.test_example import SECRET, port

__all__ = ["port"]


def commands(name: str) -> list[str]:
    return [line for block in blocks(name) if block.language == "sh" for line in block.code.splitlines()]


def test_the_first_command_installs_and_crawls_and_the_last_one_tests() -> None:
    for name in READMES:
        first, *_, last = commands(name)
        assert first == "pip install . && (cd example_project && scrapy crawl mirror)"
        assert last.endswith("python -m pytest")
    assert (ROOT / "example_project" / "scrapy.cfg").exists()


def test_ci_runs_the_printed_test_command() -> None:
    script = source(".ci/run")
    [extraction] = [line for line in script.splitlines() if line.startswith("command=$(sed")]
    found = subprocess.run(
        ["bash", "-c", f'{extraction}; printf %s "$command"'], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout == commands("README.md")[-1]
    assert "python3 -m venv" in script


@pytest.mark.slow
def test_the_commands_of_the_readme_work_on_the_example(tmp_path: Path, port: int) -> None:
    """Each command behind the first one, in a copy of the example that was crawled once."""
    project = tmp_path / "example_project"
    shutil.copytree(ROOT / "example_project", project, ignore=shutil.ignore_patterns(".scrapy", "*.jsonl"))
    with project.joinpath("newsmirror", "settings.py").open("a", encoding="utf-8") as settings:
        settings.write(f"\nNEWSMIRROR_PORT = {port}\nNEARDUP_SECRET = {SECRET!r}\n")

    def run(command: str) -> str:
        words = command.split()
        assert words[0] == "scrapy"
        if words[1] == "neardup":
            result = run_scrapy(*words[2:], cwd=project)
            assert result.returncode == 0, result.stderr
            return result.stdout + result.stderr
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=project,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            capture_output=True,
            encoding="utf-8",
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    [printed] = [block.code for block in blocks("README.md") if block.language == "text"]
    counts = printed.partition(" State:")[0]
    assert counts in run("scrapy crawl mirror")
    dropped, explain, keep, again = [line for line in commands("README.md") if line.startswith("scrapy")][:4]
    url = keep.split()[-1]
    assert url in run(dropped)
    assert "duplicate" in run(explain)
    assert url in run(keep)
    assert re.search(r"108 pages: 1 unique, 25 duplicate, 82 unchanged", run(again))
    dry = next(line for line in commands("README.md") if "DRY_RUN" in line).replace("crawl news", "crawl mirror")
    assert re.search(r"'neardup/dry_run/dropped': 10[78]\b", run(dry))
