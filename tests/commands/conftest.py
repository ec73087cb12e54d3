"""``state`` and ``sqlite``: the state of a small crawl on disk, of each kind or of the one that is everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.maintenance.states import KINDS, made


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a state; a module whose states differ has a fixture of its own under this name."""
    return made(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return made("sqlite", tmp_path)
