"""``scrapy neardup lexicon`` and ``collisions``: what they count in documents."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
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


def test_documents_that_cannot_be_read_leave_nothing_behind(pages: Path) -> None:
    pages.write_bytes(gzip.compress(pages.read_bytes())[:-9])
    broken = pages.rename(pages.with_suffix(".jsonl.gz"))
    with pytest.raises(NearDupError, match=r"pages\.jsonl\.gz cannot be read to its end"):
        run("lexicon", broken, "-o", pages.parent / "words.tsv")
    assert [file.name for file in pages.parent.iterdir()] == [broken.name]
