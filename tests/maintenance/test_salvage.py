"""Rows between the places that cannot be read are found from both sides, each once."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Row
from scrapy_neardup.maintenance import repair
from scrapy_neardup.maintenance.repair import Salvage

LEAF = 20


class Leaves:
    """Rows in leaves of twenty, some of which cannot be read; a search that ends in such a leaf fails too."""

    def __init__(self, rows: list[Row], bad: set[int]) -> None:
        self.leaves = [rows[at : at + LEAF] for at in range(0, len(rows), LEAF)]
        self.bad = bad

    def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
        ends = [leaf[-1][0] for leaf in self.leaves]
        first = next((at for at, end in enumerate(ends) if end >= low), len(ends) - 1)
        last = next((at for at, end in enumerate(ends) if end >= high), len(ends) - 1)
        order = range(last, first - 1, -1) if reverse else range(first, last + 1)
        for at in order:
            if at in self.bad:
                raise StoreError
            leaf = self.leaves[at]
            yield from (row for row in (reversed(leaf) if reverse else leaf) if low <= row[0] < high)


def rows(many: int, seed: int = 1) -> list[Row]:
    noise = random.Random(seed)
    return sorted((b"u" + noise.randbytes(8), noise.randbytes(3)) for _ in range(many))


def test_all_readable_rows_are_found_once() -> None:
    for bad, gaps in [
        (set(), 0),
        ({0}, 1),
        ({49}, 1),
        ({7}, 1),
        ({7, 8, 9}, 1),
        ({3, 7, 20, 21, 40}, 4),
        (set(range(0, 50, 2)), 25),
        (set(range(1, 49)), 1),
        (set(range(50)), 1),
    ]:
        all = rows(50 * LEAF)
        found = Salvage(Leaves(all, bad))
        read = list(found.rows(b"u"))
        assert len(read) == len(set(read)), bad
        assert set(read) == {row for at, row in enumerate(all) if at // LEAF not in bad}
        assert found.gaps == gaps
        if not bad:
            assert read == all, bad


def test_the_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "_TRIES", 10)
    all = rows(50 * LEAF)
    found = Salvage(Leaves(all, set(range(0, 50, 2))))
    read = set(found.rows(b"u"))
    assert set(all) > read
    assert found.gaps > 0


@pytest.mark.parametrize(
    "wrong",
    [
        [(b"u1", b""), (b"u3", b""), (b"u2", b"")],
        [(b"u1", b""), (b"u1", b"")],
        [(b"u1", b""), (b"k1", b"")],
        [(b"u1", b""), ("u2", b"")],
        [(b"u1", b""), (b"u2", None)],
    ],
)
def test_rows_that_cannot_stand_there_are_not_believed(wrong: list[Row]) -> None:
    class Mixed:
        def rows(self, low: bytes, high: bytes, *, reverse: bool = False) -> Iterator[Row]:
            yield from (reversed(wrong) if reverse else wrong)

    found = Salvage(Mixed())
    read = list(found.rows(b"u"))
    assert (b"u1", b"") in read
    assert len(read) == len(set(read))
    assert all(type(key) is type(value) is bytes and key.startswith(b"u") for key, value in read)
