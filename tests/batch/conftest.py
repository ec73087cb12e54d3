"""Few slices, because each costs files."""

from __future__ import annotations

import pytest

from scrapy_neardup.batch import local


@pytest.fixture(autouse=True)
def few_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_SLICES", 4)
    monkeypatch.setattr(local, "_RECORDS", 4)
    monkeypatch.setattr(local, "_VERDICTS", 5)
