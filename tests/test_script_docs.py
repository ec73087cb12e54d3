"""The examples of docs/script.md run, print what they say, and are right by their types."""

from __future__ import annotations

import ast
import asyncio
import os
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup import Deduplicator
from scrapy_neardup.config import Config

ROOT = Path(__file__).parents[1]
PAGE = ROOT.joinpath("docs", "script.md").read_text(encoding="utf-8")
LOOP, PANDAS, *CELLS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[PRINTED] = re.findall(r"```\n(new: .*?)```", PAGE, re.DOTALL)


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell of a notebook; what its last line is."""
    *before, last = ast.parse(source).body
    exec(compile(ast.Module(before, []), "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        raise TypeError("a cell here ends in an expression")
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_loop_prints_what_the_page_says_and_nothing_is_new_the_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(LOOP, {})
    assert capsys.readouterr().out == PRINTED
    exec(LOOP, {})
    again = capsys.readouterr().out
    assert [line.partition(":")[0] for line in again.splitlines()] == [
        "unchanged",
        "duplicate (identical)",
        "unchanged",
    ]
    assert (tmp_path / "seen.db").is_file()


def test_a_table_gets_its_columns() -> None:
    pytest.importorskip("pandas")
    names: dict[str, Any] = {}
    exec(PANDAS, names)
    articles = names["articles"]
    assert list(articles["verdict"]) == ["unique", "duplicate", "unique", "unjudged"]
    assert articles["group"][0] == articles["group"][1] != articles["group"][2]
    assert articles["group"][3] == ""
    assert list(names["kept"].index) == [0, 2, 3]
    assert names["evidence"]["original"][1] == "https://a.example/ferry"


def test_the_cells_of_a_notebook_run_one_by_one_in_a_loop_that_runs() -> None:
    names: dict[str, Any] = {}

    async def notebook() -> list[Any]:
        return [run_cell(cell, names) for cell in CELLS]

    made, judged, closed = asyncio.run(notebook())
    assert repr(made) == "<Deduplicator on memory:, closed>"
    assert judged == ("unique", "duplicate (identical)", 1.0)
    assert closed is None


def test_each_parameter_stands_in_the_table_with_its_default_which_is_that_of_the_setting() -> None:
    rows = dict(re.findall(r"^\| ([^|]+) \| [^|]*`NEARDUP_[^|]+ \| ([^|]*) \|$", PAGE, re.MULTILINE))
    told = {name: default for names, default in rows.items() for name in re.findall(r"`(\w+)`", names)}
    parameters = list(signature(Deduplicator).parameters.values())[1:]
    assert set(told) == {one.name for one in parameters}
    config = Config.from_settings({})
    for one in parameters:
        setting = getattr(config, one.name)
        assert one.default == getattr(setting, "value", setting) or not one.default, one.name
        if one.default and not isinstance(one.default, str):
            assert str(one.default) in told[one.name]
        elif one.default:
            assert f'"{one.default}"' in told[one.name]


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_what_the_readmes_print_of_it_runs(name: str, tmp_path: Path) -> None:
    text = ROOT.joinpath(name).read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n([^`]*import Deduplicator.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("/var/data", str(tmp_path)), names)
    assert names["verdict"].headline == "unjudged (too_short)"  # of an ellipsis
    assert (tmp_path / "seen.db").is_file()


@pytest.mark.slow
def test_the_examples_are_right_by_their_types(tmp_path: Path) -> None:
    """For whoever installs the package: strictly, and what ``check`` gives is no Any."""
    loop = tmp_path / "loop.py"
    typed = LOOP.replace(
        "        if verdict", "        reveal_type(verdict)\n        reveal_type(verdict.match)\n        if verdict"
    )
    loop.write_text(f"from __future__ import annotations\n{typed}", encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from scrapy_neardup import Deduplicator\n\nDeduplicator().check(text=b'bytes')\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"),
            *(f"--cache-dir={tmp_path}", str(loop), str(wrong)),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT)},  # mypy does not follow every editable installation
        capture_output=True,
        text=True,
        timeout=100,
    )
    said = done.stdout
    assert 'Revealed type is "scrapy_neardup.model.Verdict"' in said
    assert 'Revealed type is "scrapy_neardup.model.Match | None"' in said
    [error] = [line for line in said.splitlines() if ": error:" in line]
    assert error.startswith(
        'wrong.py:3: error: Argument "text" to "check" of "Deduplicator" has incompatible type "bytes"'
    )
