"""Processes that tests start: Python with another hash seed, and all that carry the mark of a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

#: A variable of the environment with the folder of a test. Children inherit it.
MARK = "NEARDUP_TEST"


def processes(mark: Path) -> list[int]:
    """The ids of the processes with this mark, on Linux."""
    found = []
    for one in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended, or is another user's
            if f"{MARK}={mark}".encode() in one.read_bytes().split(b"\0"):
                found.append(int(one.parent.name))
    return found


def wait_until(condition: Callable[[], object], what: str = "it holds", seconds: float = 30) -> None:
    """Wait for something that other processes or threads do."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} seconds: {what}"
        time.sleep(0.02)


def answer_with_hash_seed(seed: str, code: str, given: object = None, timeout: int = 60) -> Any:
    """Run code in a process with this hash seed and ``given`` as JSON on its input; returns the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(given),
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=timeout,
    )
    return json.loads(done.stdout)
