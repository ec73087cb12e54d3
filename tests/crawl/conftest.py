"""``crawl``: a whole Scrapy crawl in a process of its own, in a directory of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.crawl.engineless import Result
from tests.crawl.forked import CAN_FORK, Forks
from tests.crawl.pages import Content, html, serve

ROOT = Path(__file__).parents[2]
ADDONS = {"scrapy_neardup.Addon": 500}
PLYVEL = find_spec("plyvel") is not None
#: The paths of ``news``.
NEWS = ["/bridge-zh", "/tea-zh", "/copy"]
#: Each page is through before the next is asked for; older versions of Scrapy hand on whatever came meanwhile.
ONE_BY_ONE = {"CONCURRENT_REQUESTS": 1, "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1}


@dataclass
class Site:
    base: str
    content: Content


@pytest.fixture
def site() -> Iterator[Site]:
    content: Content = {}
    with serve(content) as base:
        yield Site(base, content)


Crawl = Callable[..., Result]


@pytest.fixture
def news(site: Site) -> Site:
    """Two articles, and a copy of the second."""
    site.content |= {"/bridge-zh": html("bridge-zh"), "/tea-zh": html("tea-zh"), "/copy": html("tea-zh", "Copied.")}
    return site


def started(module: str, argument: Path, env: Mapping[str, str], timeout: float) -> tuple[int, str]:
    """As ``Forks.run``, from the beginning."""
    ran = subprocess.run(
        [sys.executable, "-m", module, str(argument)],
        cwd=argument.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    return ran.returncode, ran.stderr


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks | None]:
    """Where crawls are forked from; None where they cannot be, and are started."""
    forks = Forks(ROOT) if CAN_FORK else None
    yield forks
    if forks is not None:
        forks.close()


@pytest.fixture
def run(tmp_path: Path, forks: Forks | None) -> Callable[..., list[Result]]:
    """Run jobs in one process of their own: each a spider's name, its arguments and its settings."""

    def start(*crawls: dict[str, Any], reactor: str = "asyncio", env: dict[str, str] | None = None) -> list[Result]:
        job, out = tmp_path / "job.json", tmp_path / "out.json"
        out.unlink(missing_ok=True)
        job.write_text(json.dumps({"crawls": crawls, "reactor": reactor, "out": str(out)}), encoding="utf-8")
        env = env or {}
        if forks is not None and not any(name.startswith("PYTHON") for name in env):
            code, log = forks.run("tests.crawl.run", job, env, timeout=100)
        else:
            code, log = started("tests.crawl.run", job, env, timeout=100)
        if not out.exists():
            return [Result([], {}, log, code)]
        found = json.loads(out.read_text(encoding="utf-8"))
        return [Result(one["items"], one["stats"], log, code) for one in found]

    return start


@pytest.fixture
def crawl(run: Callable[..., list[Result]], site: Site) -> Crawl:

    def start(paths: list[str] | None = None, spider: str = "PathSpider", **more: Any) -> Result:
        reactor, env = more.pop("reactor", "asyncio"), more.pop("env", None)
        settings = {"ADDONS": ADDONS, **{k: v for k, v in more.items() if k.isupper()}}
        if "CONCURRENT_REQUESTS" not in settings:
            settings |= ONE_BY_ONE
        arguments = {k: v for k, v in more.items() if k.islower()}
        if paths is not None:
            arguments |= {"base": site.base, "paths": paths}
        job = {"spider": spider, "arguments": arguments, "settings": settings}
        return run(job, reactor=reactor, env=env)[0]

    return start
