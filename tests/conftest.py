"""What holds for all tests: which of them are slow though they do not say so themselves."""

from __future__ import annotations

import pytest

#: Whoever asks for one of these crawls a site in a process of its own, or starts a browser.
SLOW_FIXTURES = {"crawl", "site", "chromium"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A soak test is slow too: ``-m "not slow"`` takes the place of the ``-m "not soak"`` in pyproject.toml."""
    for item in items:
        if item.get_closest_marker("soak") or SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
