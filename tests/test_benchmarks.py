"""The benchmark of extraction runs on its own pages and on a folder of them, and says what it lacks."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FILE = Path(__file__).parent.parent / "benchmarks" / "extraction.py"


@pytest.fixture(scope="module")
def run() -> Callable[[list[str]], None]:
    spec = importlib.util.spec_from_file_location("benchmark_of_extraction", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    main: Callable[[list[str]], None] = module.main
    return main


@pytest.mark.parametrize("folder", [False, True], ids=["example", "folder"])
def test_it_prints_a_table_of_all_parts(
    run: Callable[[list[str]], None],
    folder: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])  # to which the example project is added
    for name in ("a.html", "b.htm", "c.html"):
        (tmp_path / name).write_text("<title>渡口</title><p>渡口今天早上开航。</p>", "utf-8")
    run([*[str(tmp_path)][:folder], "--pages", "2"])
    machine, pages, *table = capsys.readouterr().out.splitlines()
    assert "trafilatura 2." in machine
    assert pages.startswith("2 pages; ")
    assert [line[:24].strip() for line in table] == [
        "ms a page",
        "trafilatura as it comes",
        "ours, the whole",
        "judged by the same bytes",
        "head",
        "parsing",
        "visible blocks",
        "trafilatura fast",
        "reading",
        "ours / trafilatura",
    ]


def test_no_pages_is_an_error(
    run: Callable[[list[str]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run([str(tmp_path)])
    assert "holds no file whose name ends with" in capsys.readouterr().err
