"""Small states on disk, and a runner of commands."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.commands.run import Invoke, Result
from tests.maintenance.states import KINDS, made, run


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a state; a module whose states differ has a fixture of its own under this name."""
    return made(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return made("sqlite", tmp_path)


@pytest.fixture
def invoke(capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Runs a command in this process, with settings; returns its exit code and what it printed."""

    def invoke(command: ModuleType, *arguments: str | Path, **settings: Any) -> Result:
        capsys.readouterr()
        code = run(command, *arguments, **settings)
        return Result(code, *capsys.readouterr())

    return invoke
