"""One browser for all tests of the room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.browser import browser


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The browser; it ends with the last test of the room, as its event loop would disturb other tests."""
    with browser() as started:
        yield started
