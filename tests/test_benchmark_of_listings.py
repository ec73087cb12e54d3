"""The benchmark of shared listings runs on articles and code of ours, and prints its table."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.methods.cascade_pages import BELL, FERRY, MILL, SECOND_FERRY

FILE = Path(__file__).parent.parent / "benchmarks" / "listings.py"


def test_it_prints_a_table_of_two_writers_and_of_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("benchmark_of_listings", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    articles = tmp_path / "docs.jsonl"
    texts = (FERRY, BELL, MILL, SECOND_FERRY * 2)
    articles.write_text(
        "".join(f"{json.dumps({'id': str(n), 'text': text})}\n" for n, text in enumerate(texts)), "utf-8"
    )
    monkeypatch.setattr(module, "PAIRS", 8)
    monkeypatch.setattr(sys, "argv", [str(FILE), str(articles), str(FILE.parent)])
    module.main()
    *_, writers, copies, opened = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in writers.split("|")][1:3] == ["two writers", "8"]
    assert [cell.strip() for cell in copies.split("|")][1:4] == ["edited copy", "8", "8"]
    assert [cell.strip() for cell in opened.split("|")][1:5] == ["copy under another opening", "8", "8", "0"]
