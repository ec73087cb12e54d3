"""A sample of the damages, and all of them in the soak: none is silent, none ends in what is no error of ours."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.stores.damages import Table, run

#: The files of a state that is damaged, by kind of store.
FILES = {
    "leveldb": {"db/", "ldb", "log", "CURRENT", "MANIFEST", "LOCK", "LOG", "seal", "witness", "lock"},
    "sqlite": {"sqlite", "wal", "shm", "wal and shm", "db and wal", "witness", "lock"},
}


def judged(table: Table, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    found = sum(table.values(), Counter[str]())
    told = capsys.readouterr().out
    assert not found["silent"] + found["foreign"], told
    return found


def skip_without(kind: str) -> None:
    if kind == "leveldb":
        pytest.importorskip("plyvel", reason="plyvel is not installed, so there is no LevelDB")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_of_a_sample_of_damages_none_is_silent(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_without(kind)
    found = judged(run([kind], 19, tmp_path, (60, 40)), capsys)
    assert found["loud"] >= 3
    assert found["healthy"] >= 3


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", FILES)
def test_of_all_damages_none_is_silent(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skip_without(kind)
    table = run([kind], 1, tmp_path)
    assert judged(table, capsys)["loud"] >= 100
    assert {file for _, _, file, _ in table} == FILES[kind]
