"""What the commands share."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from scrapy_neardup.cli.command import parse_method, parse_parameters
from scrapy_neardup.cli.output import format_parts, format_table, is_coloured, progress, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.text.marking import Mark, Part


def test_a_table_is_markdown_with_words_to_the_left_and_figures_to_the_right() -> None:
    lines = format_table(["method", "F1"], [["cascade", "0.9"], ["a|b", "–"]]).split("\n")
    assert len(lines) == 4
    assert set(lines[1]) <= set("|-:")
    assert [cell.strip() for cell in lines[2].split("|")] == ["", "cascade", "0.9", ""]
    assert lines[2].startswith("| cascade ")
    assert lines[2].endswith(" 0.9 |")
    assert "a\\|b" in lines[3]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], {}),
        (["base=0.7", "bins=256", "on=true"], {"base": 0.7, "bins": 256, "on": True}),
        (["lexicon=news=2024.txt", "order = first"], {"lexicon": "news=2024.txt", "order": "first"}),
        (['words=["a", "b"]', 'quoted="5"', "nothing="], {"words": ["a", "b"], "quoted": "5", "nothing": ""}),
        (["base=0.7", "base=0.8"], {"base": 0.8}),
    ],
)
def test_parameters_from_the_line(given: list[str], expected: dict[str, Any]) -> None:
    assert parse_parameters(given) == expected


@pytest.mark.parametrize("given", ["", "base", "=0.7", "a b=1"])
def test_a_parameter_without_a_name_or_value_is_refused(given: str) -> None:
    with pytest.raises(SettingsError, match="NAME=VALUE"):
        parse_parameters([given])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cascade", ("cascade", {})),
        ("cascade:", ("cascade", {})),
        ("shop.methods.Mine: a = 1 , b=x", ("shop.methods.Mine", {"a": 1, "b": "x"})),
        ("mine:fields=title,text,count=3", ("mine", {"fields": "title,text", "count": 3})),
        ("mine:file=c:/words.txt,range=[1, 2]", ("mine", {"file": "c:/words.txt", "range": [1, 2]})),
    ],
)
def test_a_method_with_its_parameters(text: str, expected: tuple[str, dict[str, Any]]) -> None:
    assert parse_method(text) == expected


def test_characters_that_standard_output_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(taken, encoding="ascii"))
    write("bridge 桥 –\n")
    assert taken.getvalue().decode() == "bridge \\u6865 \\u2013\n".replace("\n", sys.stdout.newlines or "\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def slow(pages: int, seconds: float) -> list[int]:
    found = []
    for page in progress(range(pages), total=pages):
        time.sleep(seconds)
        found.append(page)
    return found


@pytest.mark.parametrize(
    ("stream", "variables", "expected"),
    [
        (Terminal, {"TERM": "xterm"}, sys.platform != "win32"),
        (Terminal, {"TERM": "dumb"}, False),
        (Terminal, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (io.StringIO, {"TERM": "xterm"}, False),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_forbids_them(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], variables: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream())
    assert is_coloured() is expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "seconds", "shown"), [(Terminal, 0.4, True), (Terminal, 0.0, False), (io.StringIO, 0.4, False)]
)
def test_a_progress_bar_is_for_long_work_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], seconds: float, shown: bool
) -> None:
    errors = stream()
    monkeypatch.setattr(sys, "stderr", errors)
    assert slow(4, seconds) == [0, 1, 2, 3]
    assert ("pages" in errors.getvalue()) is shown
    assert bool(errors.getvalue()) is shown


def test_each_mark_looks_different_and_colours_end_where_they_should() -> None:
    parts = [Part("a", mark) for mark in Mark]
    assert format_parts(parts, coloured=False) == "a[[a]]{{a}}"
    assert format_parts(parts, coloured=True) == "a\x1b[32ma\x1b[0m\x1b[90ma\x1b[0m"
