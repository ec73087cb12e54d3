"""``scrapy neardup evaluate``: tables, lines of JSON, verdicts, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.cli import load
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.methods import Method
from scrapy_neardup.methods.cascade.parameters import PROFILES
from tests.cli import Invoke
from tests.lab.corpus import LABELS, lines, mixed
from tests.lab.methods import Broken, First, Unmakeable

NO_LEXICON = "The lexicon is of another language; make one from this corpus."


@pytest.fixture(autouse=True)
def few_methods(methods: dict[str, type[Method]]) -> None:
    load("evaluate")  # its help names the methods of the package
    for name in set(methods) - {"cascade"}:
        del methods[name]
    methods.update({one.name: one for one in (First, Broken, Unmakeable)})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str | Path, ...]:
    """The arguments that name documents and labels."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "docs.jsonl").write_text(lines(mixed()), encoding="utf-8")
    (folder / "gold.jsonl").write_text(lines(LABELS), encoding="utf-8")
    return folder / "docs.jsonl", "--pairs", folder / "gold.jsonl"


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ((), PROFILES["catalogue"]),
        (("--method", "cascade:base=0.6"), {"base": 0.6}),
        (("--method", "first:letters=5,least=0.5"), {"letters": 5, "least": 0.5}),
    ],
)
def test_parameters_come_from_the_line_and_else_from_the_profile(
    invoke: Invoke, corpus: tuple[str | Path, ...], given: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    assert invoke("evaluate", *corpus, "--json", *given, NEARDUP_PROFILE="catalogue").data["parameters"] == parameters


READ = [
    {"a": "d00", "b": "d21", "drop": "yes"},
    {"a": "d01", "b": "d22", "drop": "no"},
    {"a": "d04", "b": "d25", "drop": "yes"},
    {"a": "d03", "b": "d24", "drop": "unsure"},
]


def test_verdicts_are_compared_with_a_reader(invoke: Invoke, corpus: tuple[str | Path, ...], tmp_path: Path) -> None:
    pairs = tmp_path / "read.jsonl"
    pairs.write_text(lines(READ), encoding="utf-8")
    given = ("evaluate", corpus[0], "--method", "first", "--pairs", pairs)
    found = invoke(*given, "--json").data
    numbers = [found[name] for name in ("pairs", "different", "dropped_wrongly", "copies", "kept_wrongly", "unsure")]
    assert (numbers, found["wrong"]) == ([3, 1, 1, 2, 1, 1], READ[1:3])
    out = invoke(*given).out
    [row] = [cells(line) for line in out.splitlines() if line.startswith("| first")]
    assert row[:4] == ["first", "1/3", "1/1", "1/2"]
    assert out.endswith("\n\ndropped wrongly: d22 after d01\nkept wrongly: d25 after d04\n")


def test_a_method_that_fails_does_not_stop_the_others(invoke: Invoke, corpus: tuple[str | Path, ...]) -> None:
    code, out, _ = invoke("evaluate", *corpus, "--method", "all")
    assert code == 1
    methods = [cells(line)[0].partition(" ")[0] for line in out.splitlines() if line.startswith("| ")]
    assert list(dict.fromkeys(methods)) == ["method", "cascade", "first"]
    assert f"broken: {NO_LEXICON}\n" in out
    assert "unmakeable: A lexicon is missing; name one.\n" in out


def test_a_failure_is_a_line_of_json_and_alone_an_error(invoke: Invoke, corpus: tuple[str | Path, ...]) -> None:
    done = invoke("evaluate", *corpus, "--method", "broken:letters=5", "--method", "first", "--json")
    assert (done.code, len(done.rows)) == (1, 2)
    assert done.rows[0] == {"method": "broken", "parameters": {"letters": 5}, "error": NO_LEXICON}
    for name in ("broken", "unmakeable"):
        with pytest.raises(NearDupError, match="lexicon"):
            invoke("evaluate", *corpus, "--method", name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "first", "--method", "second"], "There is no method 'second'"),
        (["--method", "first:width=2"], "first has no parameter width"),
        (["--pairs", "gone.jsonl"], "gone.jsonl with labels"),
    ],
)
def test_wrong_arguments_are_refused(
    invoke: Invoke, corpus: tuple[str | Path, ...], arguments: list[str], said: str
) -> None:
    with pytest.raises(NearDupError, match=said):
        invoke("evaluate", *corpus, *arguments)
