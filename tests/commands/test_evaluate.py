"""``scrapy neardup evaluate``: tables, lines of JSON, sweeps, verdicts, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.methods import Method
from scrapy_neardup.methods.cascade.parameters import PROFILES
from tests.cli import Invoke
from tests.lab.corpus import lines, mixed
from tests.lab.methods import Broken, First, Unmakeable, Unsaid


@pytest.fixture(autouse=True)
def few_methods(methods: dict[str, type[Method]]) -> None:
    for name in set(methods) - {"cascade"}:
        del methods[name]
    methods.update({one.name: one for one in (First, Broken, Unmakeable, Unsaid)})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed().write(tmp_path_factory.mktemp("corpora") / "town")


@pytest.fixture
def run(invoke: Invoke) -> Any:
    """Runs the command in this process; returns exit code and lines."""

    def run(*arguments: str | Path) -> tuple[int, list[str]]:
        code, out, err = invoke("evaluate", *arguments)
        assert err == ""
        return code, out.splitlines()

    return run


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def test_several_methods_and_corpora(run: Any, corpus: Path, tmp_path: Path) -> None:
    second = mixed(chinese=False).write(tmp_path / "village")
    code, lines = run(corpus, second, "--method", "cascade", "--method", "first:letters=1,least=0.0")
    assert code == 0
    assert [line.split(":")[0] for line in lines if "documents" in line] == ["town", "village"]
    rows = [cells(line) for line in lines if "/7" in line]
    assert [row[:2] for row in rows] == [["cascade", "0/7"], ["first:letters=1,least=0.0", "0/7"]] * 2
    assert all(float(row[2]) > 1000 for row in rows[1::2])


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        ((), PROFILES["catalogue"]),
        (("-p", "by_site=0.1"), {**PROFILES["catalogue"], "by_site": 0.1}),
        (("--method", "cascade:base=0.6"), {"base": 0.6}),
    ],
)
def test_without_a_method_it_is_the_default_one_by_the_profile(
    invoke: Invoke, corpus: Path, given: tuple[str, ...], parameters: dict[str, Any]
) -> None:
    done = invoke("evaluate", corpus, "--json", *given, NEARDUP_PROFILE="catalogue")
    assert json.loads(done.out)["parameters"] == parameters


def test_verdicts_are_written_for_each_document(run: Any, corpus: Path, tmp_path: Path) -> None:
    code, _ = run(corpus, "--method", "first", "--verdicts", tmp_path / "verdicts.jsonl")
    assert code == 0
    found = [json.loads(line) for line in (tmp_path / "verdicts.jsonl").read_text().splitlines()]
    assert [one["id"] for one in found] == [f"d{number:02}" for number in range(30)]
    assert found[20] == {"id": "d20", "original": None, "verdict": "unique", "kind": None, "similarity": None}
    assert found[21] == {"id": "d21", "original": "d00", "verdict": "duplicate", "kind": None, "similarity": 1.0}
    assert found[29] == {"id": "d29", "original": None, "verdict": "unjudged", "kind": None, "similarity": None}


READ = [
    {"a": "d00", "b": "d21", "drop": "yes", "label": "repost"},
    {"a": "d01", "b": "d22", "drop": "no", "label": "a\x1b[31m form"},
    {"a": "d04", "b": "d25", "drop": "yes", "label": "repost"},
    {"a": "d03", "b": "d24", "drop": "unsure", "label": "repost"},
]


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "read.jsonl"
    path.write_text(lines(READ), encoding="utf-8")
    return path


def test_what_was_read_is_a_table_of_its_own(run: Any, corpus: Path, gold: Path) -> None:
    code, found = run(corpus, "--method", "first", "--method", "cascade", "--gold", gold)
    assert code == 0
    assert found[7] == "town: 3 pairs read by a person, and 1 where the reader is unsure"
    assert cells(found[9]) == ["method", "label", "agreement", "dropped wrongly", "kept wrongly"]
    assert [cells(row) for row in found[11:17]] == [
        ["first", "all", "1/3", "1/1", "1/2"],
        ["first", r"a\x1b[31m form", "0/1", "1/1", "0/0"],
        ["first", "repost", "1/2", "0/0", "1/2"],
        ["cascade", "all", "2/3", "1/1", "0/2"],
        ["cascade", r"a\x1b[31m form", "0/1", "1/1", "0/0"],
        ["cascade", "repost", "2/2", "0/0", "0/2"],
    ]


def test_what_was_read_is_in_the_json_and_beside_the_verdicts(run: Any, corpus: Path, gold: Path) -> None:
    verdicts = gold.with_name("verdicts.jsonl")
    _, [line] = run(corpus, "--method", "first", "--gold", gold, "--json", "--verdicts", verdicts)
    found = json.loads(line)["gold"]
    assert [found[name] for name in ("pairs", "agree", "dropped_wrongly", "kept_wrongly", "unsure")] == [3, 1, 1, 1, 1]
    said = {one["id"]: one.get("gold") for one in map(json.loads, verdicts.read_text().splitlines())}
    assert said["d20"] is None
    assert said["d21"] == [{"a": "d00", "drop": "yes", "label": "repost", "agrees": True}]
    assert [said[id][0]["agrees"] for id in ("d22", "d25", "d24")] == [False, False, None]


@pytest.mark.parametrize("extra", [[], ["--sweep"]])
def test_of_several_methods_one_that_fails_does_not_stop_the_others(run: Any, corpus: Path, extra: list[str]) -> None:
    code, lines = run(corpus, "--method", "all", *extra)
    assert code == 1
    rows = {cells(line)[0]: cells(line)[1:] for line in lines if line.startswith("| ")}
    assert list(rows) == ["method", "cascade", "first", "broken", "unmakeable", "unsaid"]
    assert set(rows["broken"]) == set(rows["unmakeable"]) == {"–"}
    assert len(rows["broken"]) == len(rows["method"])
    assert "3/7" in rows["first"]
    assert "broken: The lexicon is of another language; make one from this corpus." in lines
    assert "unmakeable: A lexicon is missing; name one." in lines


def test_a_failure_among_several_is_a_line_of_json(run: Any, corpus: Path) -> None:
    code, lines = run(corpus, "--method", "broken:letters=5", "--method", "first", "--json")
    assert (code, len(lines)) == (1, 2)
    said = "The lexicon is of another language; make one from this corpus."
    assert json.loads(lines[0]) == {"corpus": "town", "method": "broken", "parameters": {"letters": 5}, "error": said}


@pytest.mark.parametrize("name", ["broken", "unmakeable"])
def test_alone_a_method_that_fails_is_the_error(run: Any, corpus: Path, name: str) -> None:
    with pytest.raises(NearDupError, match="lexicon"):
        run(corpus, "--method", name)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "first", "--method", "second"], "There is no method 'second'"),
        (["--method", "first", "-p", "width=2"], "first has no parameter width"),
        (["--method", "first", "--method", "cascade", "--verdicts", "v.jsonl"], "one method on one corpus"),
        (["--method", "all", "--verdicts", "v.jsonl"], "one method on one corpus"),
        (["--method", "first", "--sweep", "--verdicts", "v.jsonl"], "one method on one corpus"),
        (["--method", "first", "--verdicts", "gone/v.jsonl"], "The verdicts cannot be written to gone/v.jsonl"),
        (["--method", "unsaid", "--sweep"], "does not name its threshold"),
        (["--pairs", "gone.jsonl"], "gone.jsonl with pairs"),
        (["--gold", "gone.jsonl"], "gone.jsonl with pairs"),
    ],
)
def test_what_cannot_be_is_said(
    run: Any, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NearDupError, match=said):
        run(corpus, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_every_corpus_is_looked_at_before_the_first_is_evaluated(run: Any, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"gone.* does not exist"):
        run(corpus, tmp_path / "gone")
    with pytest.raises(SettingsError, match="--pairs works with one corpus"):
        run(corpus, corpus, "--pairs", corpus / "pairs.jsonl")
    with pytest.raises(SettingsError, match="one method on one corpus"):
        run(corpus, corpus, "--verdicts", tmp_path / "v.jsonl")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("first", {}),
        ("first:letters=5,least=0.5", {"letters": 5, "least": 0.5}),
    ],
)
def test_parameters_of_one_method(run: Any, corpus: Path, text: str, parameters: dict[str, Any]) -> None:
    _, lines = run(corpus, "--method", text, "-p", "letters=7", "--json")
    assert json.loads(lines[0])["parameters"] == {"letters": 7, **parameters}
