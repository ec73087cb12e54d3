"""Rules for all tests: fixtures that make a test slow, and one secret for new states."""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from scrapy_neardup.methods import METHODS, Method
from tests.build import KINDS, make_state
from tests.cli import Invoke, Result, run, run_safely
from tests.server.redis_cluster import Cluster, cluster_running
from tests.server.redis_server import Server, running

#: Whoever asks for one of these crawls a site in a process of its own, or starts a browser.
SLOW_FIXTURES = {"crawl", "site", "chromium"}


#: Folders of tests lie here, where there is room: many tests write states, and each write to a disk is waited for.
MEMORY = Path("/dev/shm")


def pytest_configure() -> None:
    """Choose where the folders of tests lie, unless ``--basetemp`` says it."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 2 * 2**30:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A soak test is slow too: ``-m "not slow"`` takes the place of the ``-m "not soak"`` in pyproject.toml.

    Each process begins with its share of the files with slow tests. Quick tests are left for the end, when processes
    take tests from each other: so all end at about the same time.
    """
    for item in items:
        if item.get_closest_marker("soak") or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
    processes, quick = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), list[pytest.Item]()
    slow: dict[Path, list[pytest.Item]] = {item.path: [] for item in items if "slow" in item.keywords}
    for item in items:
        slow.get(item.path, quick).append(item)
    files = sorted(enumerate(slow.values()), key=lambda one: one[0] % processes)
    kinds = [item for _, file in files for item in file], quick
    shares = [
        (kind, len(kind) * n // processes, len(kind) * (n + 1) // processes) for n in range(processes) for kind in kinds
    ]
    items[:] = [item for kind, begin, end in shares for item in kind[begin:end]]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(autouse=True, scope="session")
def drawn_secret() -> Iterator[None]:
    """Similarities are estimated under the secret of a state: a test that fails fails again.

    For the whole session, as states are also made for all tests of a module.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scrapy_neardup.state.recipe.token_bytes", lambda size: bytes(range(size)))
        yield


@pytest.fixture(scope="session")
def make_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], None]], Path]:
    """Makes a folder once for all processes of a test run: takes its name, and what fills it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent

    def make_once(name: str, fill: Callable[[Path], None]) -> Path:
        folder, done = root / name, root / f"{name}.done"
        with FileLock(root / f"{name}.lock"):
            if not done.exists():
                folder.mkdir()
                fill(folder)
                done.touch()
        return folder

    return make_once


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """One for all tests of a process; a test that asks for it is skipped where there is none."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    with cluster_running() as cluster:
        yield cluster


@pytest.fixture
def cluster(redis_cluster: Cluster) -> Cluster:
    """The same, whole, whatever the test before has done to it."""
    redis_cluster.mended()
    return redis_cluster


@pytest.fixture
def methods() -> Iterator[dict[str, type[Method]]]:
    """The registry of methods, to be changed; afterwards it is as before, also in its order, which texts show."""
    before = dict(METHODS)
    yield METHODS
    METHODS.clear()
    METHODS.update(before)


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a small state; a module whose states differ has a fixture of its own under this name."""
    return make_state(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return make_state("sqlite", tmp_path)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Runs a command in this process; errors are raised."""
    return _captured(run, capsys)


@pytest.fixture
def neardup(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Runs a command in this process; an error is exit code 2 and a sentence on standard error."""
    return _captured(run_safely, capsys)


def _captured(runner: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> Invoke:
    def invoke(command: str, *arguments: str | Path, **settings: Any) -> Result:
        capsys.readouterr()
        code = runner(command, *arguments, **settings)
        return Result(code, *capsys.readouterr())

    return invoke
