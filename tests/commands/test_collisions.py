"""``scrapy neardup collisions`` as it is run by a user."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scrapy_neardup.commands import collisions
from scrapy_neardup.hashing.classic import CLASSIC
from tests.commands.run import scrapy_neardup
from tests.maintenance.states import run


@pytest.fixture
def boats(tmp_path: Path) -> Path:
    """Two documents with two words that collide in DJB, and a third one like the first."""
    texts = ["渡船000r号开了。", "渡船0020号开了。", "渡船000r号，开了！"]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (tmp_path / "boats.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "boats.jsonl"


@pytest.mark.slow
def test_the_table_has_a_row_for_each_hash_on_texts_and_on_words(boats: Path) -> None:
    done = scrapy_neardup("collisions", boats, cwd=boats.parent)
    assert (done.returncode, done.stderr) == (0, "")
    first, lines = done.stdout.rstrip().split("\n\n")
    assert first == "32 bits"
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines.splitlines()]
    assert rows[0] == ["of", "hash", "strings", "values", "collisions", "expected", "ms"]
    assert [row[:2] for row in rows[2:]] == [[of, name] for of in ("texts", "words") for name in CLASSIC]
    found = {(row[0], row[1]): row[2:5] for row in rows[2:]}
    assert found["texts", "sdbm"] == ["2", "2", "0"]
    assert found["words", "djb"] == ["3", "2", "1"]
    assert found["words", "sdbm"] == ["3", "3", "0"]


def test_json_has_a_line_for_each_row(boats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(collisions, str(boats), str(boats), "--bits", "64", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 * len(CLASSIC)
    assert {row["bits"] for row in rows} == {64}
    assert {(row["of"], row["strings"]) for row in rows} == {("texts", 2), ("words", 3)}
    assert set(rows[0]) == {"of", "hash", "strings", "values", "collisions", "expected", "milliseconds", "bits"}


@pytest.mark.slow
def test_documents_without_text_are_an_error_in_words(boats: Path) -> None:
    (boats.parent / "empty.txt").write_text("\n")
    done = scrapy_neardup("collisions", "empty.txt", cwd=boats.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("scrapy neardup collisions: These documents contain no text")


def test_other_widths_are_refused(boats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(collisions, str(boats), "--bits", "16")
    assert "argument --bits: invalid choice" in capsys.readouterr().err
