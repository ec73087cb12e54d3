"""Crawls in processes of their own, forked from one that has loaded Scrapy and the package, which is most of the work.

    python -m tests.crawl.forked

It reads jobs from stdin, a line of JSON each: {"module", "argument", "cwd", "env", "log", "timeout"}; runs the module
with its argument in a fork of its own, with stderr in the file "log"; and answers with a line: the exit code, or null
where the time was up. What is loaded here must leave the choice of a reactor to the crawl.
"""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy_neardup.text.tokens import words

#: Whether it can be done here: on Linux.
CAN_FORK = hasattr(os, "pidfd_open")
_NEEDED = (
    "tests.crawl.run",
    "scrapy.core.engine",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.extensions.feedexport",
    "scrapy_neardup.crawl.middleware",
    "scrapy_neardup.crawl.pipeline",
    "scrapy_neardup.crawl.session",
)


class Forks:
    """The process from which the crawls of one test session are forked."""

    def __init__(self, root: Path) -> None:
        """``root``: the directory of the package ``tests``."""
        self._environment = {**os.environ, "PYTHONPATH": str(root)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, module: str, argument: Path, env: Mapping[str, str], timeout: float) -> tuple[int, str]:
        """Exit code and stderr of ``python -m MODULE ARGUMENT`` in the directory of the argument.

        ``env``: what is in its environment beside what was in that of the session. Raises TimeoutExpired.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as directory:
            log = Path(directory) / "log"
            job = {"module": module, "argument": str(argument), "cwd": str(argument.parent), "log": str(log)}
            environment = {**os.environ, **env, "PYTHONPATH": self._environment["PYTHONPATH"]}
            self._process.stdin.write(json.dumps({**job, "env": environment, "timeout": timeout}) + "\n")
            self._process.stdin.flush()
            code = json.loads(self._process.stdout.readline())
            told = log.read_text(encoding="utf-8")
        if code is None:
            raise subprocess.TimeoutExpired(module, timeout, stderr=told)
        return int(code), told

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    for name in _NEEDED:
        import_module(name)
    words("词典")  # loads the dictionary
    assert "twisted.internet.reactor" not in sys.modules
    gc.freeze()
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            _become(job)
            runpy.run_module(job["module"], run_name="__main__", alter_sys=True)
            return
        watched = os.pidfd_open(child)
        in_time = bool(select.select([watched], [], [], job["timeout"])[0])
        if not in_time:
            os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(watched)
        sys.stdout.write(json.dumps(code if in_time else None) + "\n")
        sys.stdout.flush()


def _become(job: Mapping[str, Any]) -> None:
    """The process as it would be, had it been started with ``python -m``."""
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, file in ((0, nothing), (1, nothing), (2, log)):
        os.dup2(file, number)
    sys.path[0] = job["cwd"]
    sys.argv[:] = [job["module"], job["argument"]]
    random.seed()


if __name__ == "__main__":
    main()
