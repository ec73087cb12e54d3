"""Code in a process of its own, whose hashes of strings have another seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any


def answer_with_hash_seed(seed: str, code: str, given: object = None, timeout: int = 60) -> Any:
    """What the code prints as JSON; it finds ``given`` as JSON on its standard input."""
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
