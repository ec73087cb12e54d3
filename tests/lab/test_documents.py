"""Documents from files, under the names that a crawl knows their pages by."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.documents import read_documents
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import HtmlReader
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS
from tests.files.samples import PACKERS
from tests.lab.corpus import lines

TEXT = "The ferry to the island sails again from Monday on, at nine and at four, weather permitting."
SOURCE = PageSource(DEFAULT_FIELDS, HtmlReader(100_000), hashes_items=False)


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": TEXT}, Page("crawl.jsonl#2", text=TEXT)),
        ({"id": 7, "url": "https://a.example/1"}, Page("7", site="a.example", address="https://a.example/1")),
        ({"id": True, "url": " https://a.example/1 "}, Page("https://a.example/1", site="a.example")),
        (
            {"id": "x", "keywords": "桥, 船；塔", "title": "渡口", "description": "d", "date": 5},
            Page("x", "渡口", ("桥", "船", "塔"), "d", TEXT),
        ),
        ({"id": "x", "text": "half \ud83d a smile"}, Page("x", text="half \ud83d a smile")),
    ],
)
def test_a_record_is_a_named_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: dict[str, Any], expected: Page
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crawl.jsonl").write_text(f"\n{json.dumps({'text': TEXT, **record})}\n")
    [found] = read_documents("crawl.jsonl", SOURCE, Counter())
    assert found == replace(expected, text=expected.text or TEXT)


def test_records_that_are_no_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    records = [
        {"url": "https://a.example/1", "text": TEXT},
        {"url": "https://a.example/2"},
        {"url": "https://a.example/1", "text": "another version"},
        {"id": "long", "text": "x" * 1_000_000},
    ]
    (tmp_path / "feed.jsonl").write_text('{"broken\n' + lines(records), encoding="utf-8")
    left_out = Counter[str]()
    found = read_documents(str(tmp_path / "feed.jsonl"), SOURCE, left_out)
    assert [(one.url, one.text) for one in found] == [("https://a.example/1", TEXT)]
    assert left_out == dict.fromkeys(("malformed", "no_content", "another version of a page", "too_large"), 1)


def test_a_file_that_breaks_off_is_named_after_its_documents(tmp_path: Path) -> None:
    (tmp_path / "cut.jsonl.xz").write_bytes(PACKERS[".xz"](b'{"text": "%s"}\n' % TEXT.encode() * 3)[:-9])
    documents = read_documents(str(tmp_path / "cut.jsonl.xz"), SOURCE, Counter())
    assert next(documents).text == TEXT
    with pytest.raises(NearDupError, match="cannot be read to its end"):
        list(documents)
