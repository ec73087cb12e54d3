"""``scrapy neardup lexicon`` and ``collisions``: what they count in documents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.hashing.classic import CLASSIC
from scrapy_neardup.text.lexicon import lexicon
from tests.cli import run

PAGES = [
    {"id": "1", "title": "New ferry", "text": "The ferry is back. The ferry is blue."},
    {"id": "2", "title": "", "text": "The FERRY sinks; nobody is hurt."},
    {"id": "3", "title": "渡口开航", "text": "渡口的船来了。"},
]


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    path = tmp_path / "pages.jsonl"
    path.write_text("\n".join(json.dumps(page, ensure_ascii=False) for page in PAGES), encoding="utf-8")
    return path


def test_words_of_single_documents_are_kept_if_asked_for(pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = pages.parent / "words.tsv"
    assert run("lexicon", pages, pages, "-o", output, "--at-least", "1") == 0
    assert capsys.readouterr().out == f"{output}: 15 words that occur in 1 or more of 6 documents\n"
    assert {"渡口", "的", "来", "new", "sinks"} < set(lexicon(str(output)).idf)


def test_traditional_characters_are_counted_as_simplified_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("鎮上的老戲院關燈了。", encoding="utf-8")
    (tmp_path / "2.txt").write_text("镇上的老戏院关灯了。", encoding="utf-8")
    run("lexicon", tmp_path, "-o", tmp_path / "as they stand.tsv")
    run("lexicon", tmp_path, "-o", tmp_path / "simplified.tsv", "--simplified")
    assert "戏院" not in lexicon(str(tmp_path / "as they stand.tsv")).idf
    assert "戏院" in lexicon(str(tmp_path / "simplified.tsv")).idf


def test_what_is_read_is_never_replaced(pages: Path) -> None:
    before = pages.read_bytes()
    with pytest.raises(NearDupError, match=r"pages\.jsonl is also an input\. Name another file with -o\."):
        run("lexicon", pages, "-o", pages, "--force")
    assert pages.read_bytes() == before


@pytest.mark.parametrize(("output", "said"), [(".", "is a folder"), ("none/words.tsv", "folder .*none does not exist")])
def test_a_place_that_cannot_be_is_refused_before_counting(pages: Path, output: str, said: str) -> None:
    with pytest.raises(NearDupError, match=said):
        run("lexicon", pages.with_name("missing.jsonl"), "-o", pages.parent / output)


def test_documents_that_cannot_be_read_leave_nothing_behind(pages: Path) -> None:
    pages.write_bytes(gzip.compress(pages.read_bytes())[:-9])
    broken = pages.rename(pages.with_suffix(".jsonl.gz"))
    with pytest.raises(NearDupError, match=r"pages\.jsonl\.gz cannot be read to its end"):
        run("lexicon", broken, "-o", pages.parent / "words.tsv")
    assert [file.name for file in pages.parent.iterdir()] == [broken.name]


def test_malformed_lines_are_left_out_and_counted(pages: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pages.open("a", encoding="utf-8") as out:
        out.write("\nno JSON\n")
    assert run("lexicon", pages, "-o", pages.parent / "words.tsv") == 0
    assert "lexicon: left out: 1 malformed." in capsys.readouterr().err


@pytest.fixture
def boats(tmp_path: Path) -> Path:
    """Two documents with two words that collide in DJB, and a third one like the first."""
    texts = ["渡船000r号开了。", "渡船0020号开了。", "渡船000r号，开了！"]
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (tmp_path / "boats.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path / "boats.jsonl"


def test_json_has_a_line_for_each_row(boats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("collisions", str(boats), str(boats), "--bits", "64", "--json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 * len(CLASSIC)
    assert {row["bits"] for row in rows} == {64}
    assert {(row["of"], row["strings"]) for row in rows} == {("texts", 2), ("words", 3)}
    assert set(rows[0]) == {"of", "hash", "strings", "values", "collisions", "expected", "milliseconds", "bits"}


def test_other_widths_are_refused(boats: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("collisions", str(boats), "--bits", "16")
    assert "argument --bits: invalid choice" in capsys.readouterr().err
