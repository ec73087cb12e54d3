"""Small states on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.build import KINDS, make_state


@pytest.fixture(params=KINDS)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a state; a module whose states differ has a fixture of its own under this name."""
    return make_state(request.param, tmp_path)


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return make_state("sqlite", tmp_path)
