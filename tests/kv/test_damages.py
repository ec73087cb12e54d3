"""A sample of the damages, and all of them in the soak: none is silent, none ends in what is no error of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
#: The files of a state that is damaged, by kind of store.
FILES = {
    "leveldb": {"db/", "ldb", "log", "CURRENT", "MANIFEST", "LOCK", "LOG", "witness", "lock"},
    "sqlite": {"sqlite", "wal", "shm", "wal and shm", "db and wal", "witness", "lock"},
}


def damaged(kind: str, *options: str) -> dict[str, Any]:
    """How many were loud and how many healthy, and the kinds of files.

    In a process of its own: it forks, and what was forked off a process in which LevelDB has its thread at work waits
    for that thread for ever.
    """
    if kind == "leveldb":
        pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")
    command = [sys.executable, "-m", "tests.kv.damages", kind, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_of_a_sample_of_damages_none_is_silent(kind: str) -> None:
    found = damaged(kind, "--every", "29", "--pages", "60")
    assert min(found["loud"], found["healthy"]) >= 3


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", FILES)
def test_of_all_damages_none_is_silent(kind: str) -> None:
    found = damaged(kind)
    assert found["loud"] >= 100
    assert set(found["files"]) >= FILES[kind]
