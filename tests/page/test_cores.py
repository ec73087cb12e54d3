"""How many processes there is room for: what the machine has, and what the container is given of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scrapy_neardup.page.cores import cores, free_memory, workers_by, workers_by_machine


@pytest.mark.parametrize(
    ("said", "found"), [("max 100000", 8), ("200000 100000", 2), ("50000 100000", 1), ("1600000 100000", 8), ("", 8)]
)
def test_the_share_of_a_container_counts(
    said: str, found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    (tmp_path / "cpu.max").write_text(said, encoding="ascii")
    assert cores(tmp_path) == found
    assert cores(tmp_path / "none") == 8


@pytest.mark.parametrize(
    ("most", "used", "found"),
    [("max", "700", 2_048_000), ("1000", "700", 300), ("1000", "1001", 0), ("", "", 2_048_000)],
)
def test_so_does_its_memory(most: str, used: str, found: int, tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(most, encoding="ascii")
    (tmp_path / "memory.current").write_text(used, encoding="ascii")
    told = tmp_path / "meminfo"
    told.write_text("MemTotal:    9000 kB\nMemAvailable:    2000 kB\n", encoding="ascii")
    assert free_memory(tmp_path, told) == found
    assert free_memory(tmp_path / "none", tmp_path / "none") is None


def test_little_memory_means_few_processes_and_one_core_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [workers_by(8, memory) for memory in (None, 10**10, 10**9, 3 * 10**8)] == [4, 4, 2, 0]
    assert workers_by(1, 10**10) == 0
    assert 0 <= workers_by_machine() <= 4
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert workers_by_machine() == 0
