"""Code in a process of its own, whose hashes of strings have another seed; the processes of a pool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from scrapy_neardup.page.pool import Pool


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


def process_ids(pool: Pool[Any, Any]) -> list[int]:
    """The ids of the processes that a pool has now."""
    children = [reader.child for reader in pool._lines]
    return [child.process_id for child in children if child.process_id]
