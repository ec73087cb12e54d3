"""Crawls in processes of their own, forked from one that has loaded Scrapy and the package."""

from __future__ import annotations

import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FORKS: Any = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    _FORKS.set_forkserver_preload(["pytest", "tests.crawl.run"])


def start(job: Path, log: Path, env: Mapping[str, str] = {}) -> Any:
    """Start ``tests.crawl.run`` in the folder of the job; stderr goes to the log. ``env``: more of its environment."""
    process = _FORKS.Process(target=_run, args=(job, log, {**os.environ, **env}))
    process.start()
    return process


def run(job: Path, env: Mapping[str, str], timeout: float = 100) -> tuple[int, str]:
    """Exit code and stderr of a job."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        process = start(job, log, env)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(str(job), timeout, stderr=log.read_text(encoding="utf-8"))
        return process.exitcode, log.read_text(encoding="utf-8")


def _run(job: Path, log: Path, env: Mapping[str, str]) -> None:
    """Run the job as ``python -m`` in its folder would."""
    os.chdir(job.parent)
    os.environ.clear()
    os.environ.update(env)
    for number, file in ((0, os.devnull), (1, os.devnull), (2, log)):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), number)
    sys.path.insert(0, str(job.parent))
    random.seed()
    from tests.crawl.run import main

    main(job)
