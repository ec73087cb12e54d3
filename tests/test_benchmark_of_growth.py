"""What the benchmark of growth measures is a state as crawls make it, also where it is written sorted."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from scrapy_neardup.maintenance.verify import check
from scrapy_neardup.model import Kind
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.opening import STORES, open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SECRET = Secret.shared("a secret of the benchmark")
PAGES = 700


@pytest.fixture(scope="module")
def growth() -> Iterator[ModuleType]:
    pytest.importorskip("plyvel")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
        yield importlib.import_module("growth")


def rows(store: PageStore) -> dict[bytes, bytes]:
    """Without the times at which URLs were seen, and what is of a crawl or an opening."""
    kept = ((key, value) for key, value in store.rows(b"") if key[:1] not in (b"m", b"g", b"j", b"d"))
    return {key: value[:8] if key[:1] == b"u" else value for key, value in kept}


def test_what_is_written_sorted_is_what_is_filed_page_by_page_and_the_detector_goes_on_with_it(
    growth: ModuleType, tmp_path: Path
) -> None:
    found = []
    for way in ("fill", "fill_sorted"):
        with closing(open_at(STORES["leveldb"], str(tmp_path / way), {}, secret=SECRET)) as store:
            grower = growth.Grower(store, Keep.EVIDENCE)
            getattr(grower, way)(PAGES)
            found.append(rows(store))
            assert store.pages == PAGES
            times = grower.judge(60)
            assert {Kind.UNIQUE, Kind.DUPLICATE, Kind.UNCHANGED} == set(times.kinds)
            assert sum(times.kinds.values()) == len(times.look_up) == 60
            assert len(times.commit) == times.kinds[Kind.UNIQUE]
            grower.detector.end()
            assert check(store).sound
    assert found[0] == found[1]


def test_it_prints_a_row_for_each_size_and_what_its_parts_take(
    growth: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "made", lambda at, kind, keep, pages, *_: _made(growth, at, kind, keep, pages))
    monkeypatch.setattr(sys, "argv", ["growth.py", "20", "50", "--window", "10", "--directory", str(tmp_path)])
    growth.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.lstrip()[:1].isdigit() and " | " in line] == ["20", "50"]
    assert sum(line.endswith("records: URL, keys, sketch") for line in lines) == 2


def _made(growth: ModuleType, at: str, kind: str, keep: Keep, pages: int) -> object:
    store = open_at(STORES[kind], at, {})
    grower = growth.Grower(store, keep)
    grower.fill(pages)
    return store, grower
