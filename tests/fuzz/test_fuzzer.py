"""A short run of the fuzzer, where it is installed; hours of it are for whoever changes how pages are read."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(find_spec("atheris") is None, reason="pip install atheris")
def test_the_fuzzer_finds_nothing_in_ten_minutes(tmp_path: Path) -> None:
    limits = ["-max_len=20000", "-max_total_time=600", "-timeout=5", f"-artifact_prefix={tmp_path}/"]
    command = [sys.executable, "-m", "tests.fuzz.target", str(tmp_path), *limits]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3_000:]
