"""A sample of the damages, and all of them in the soak: none is silent, none ends in what is no error of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ALL = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("kind", ["leveldb", "sqlite"])
@pytest.mark.parametrize(
    ("options", "least"),
    [pytest.param(["--every", "29", "--pages", "60"], 3, marks=pytest.mark.slow), pytest.param([], 100, marks=ALL)],
)
def test_of_all_damages_none_is_silent(kind: str, options: list[str], least: int) -> None:
    """In a process of its own: it forks, and a fork of a process in which LevelDB has its thread waits for ever."""
    if kind == "leveldb":
        pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")
    command = [sys.executable, "-m", "tests.kv.damages", kind, *options]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert min(found["loud"], found["healthy"]) >= least
