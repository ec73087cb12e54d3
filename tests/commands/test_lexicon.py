"""``scrapy neardup lexicon`` on documents of files."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.text.lexicon import lexicon
from tests.cli import run
from tests.lab.corpus import write_feed

PAGES = [
    {"id": "1", "title": "New ferry", "text": "The ferry is back. The ferry is blue."},
    {"id": "2", "title": "", "text": "The FERRY sinks; nobody is hurt."},
    {"id": "3", "title": "渡口开航", "text": "渡口的船来了。"},
]


def test_a_lexicon_counts_traditional_characters_as_simplified_if_asked(tmp_path: Path) -> None:
    pytest.importorskip("opencc")
    (tmp_path / "1.txt").write_text("鎮上的老戲院關燈了。", encoding="utf-8")
    (tmp_path / "2.txt").write_text("镇上的老戏院关灯了。", encoding="utf-8")
    run("lexicon", tmp_path, "-o", tmp_path / "as they stand.tsv")
    run("lexicon", tmp_path, "-o", tmp_path / "simplified.tsv", "--simplified")
    assert "戏院" not in lexicon(str(tmp_path / "as they stand.tsv")).idf
    assert "戏院" in lexicon(str(tmp_path / "simplified.tsv")).idf


def test_a_lexicon_replaces_no_input_and_broken_documents_leave_nothing_behind(tmp_path: Path) -> None:
    pages = write_feed(tmp_path, PAGES)
    before = pages.read_bytes()
    with pytest.raises(NearDupError, match=r"feed\.jsonl is also an input"):
        run("lexicon", pages, "-o", pages, "--force")
    assert pages.read_bytes() == before
    pages.write_bytes(gzip.compress(before)[:-9])
    broken = pages.rename(pages.with_suffix(".jsonl.gz"))
    with pytest.raises(NearDupError, match=r"feed\.jsonl\.gz cannot be read to its end"):
        run("lexicon", broken, "-o", tmp_path / "words.tsv")
    assert [file.name for file in tmp_path.iterdir()] == [broken.name]
