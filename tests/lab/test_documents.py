"""Documents from files of every format, under the names that a crawl knows their pages by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.model import Page
from tests.files.samples import PACKERS, Archive
from tests.lab.corpus import reader, write_feed

TEXT = "The ferry to the island sails again from Monday on, at nine and at four, weather permitting."


def summary(documents: Any) -> list[tuple[str, str]]:
    return [(one.url, one.text) for one in documents]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"text": TEXT}, Page("line 2", text=TEXT)),
        ({"id": None, "title": None, "text": TEXT, "keywords": None}, Page("line 2", text=TEXT)),
        (
            {"id": 7, "url": "https://a.example/1", "text": TEXT},
            Page("7", text=TEXT, site="a.example", address="https://a.example/1"),
        ),
        (
            {"id": True, "url": " https://a.example/1 ", "text": TEXT},
            Page("https://a.example/1", text=TEXT, site="a.example"),
        ),
        ({"id": " ", "text": TEXT}, Page("line 2", text=TEXT)),
        (
            {"id": "x", "text": TEXT, "keywords": "桥, 船；塔", "title": "渡口", "description": "d", "date": 5},
            Page("x", "渡口", ("桥", "船", "塔"), "d", TEXT),
        ),
        ({"id": 7, "title": "no matter", "text": " "}, Page("7")),
        ({"id": "x", "text": "half \ud83d a smile"}, Page("x", text="half \ud83d a smile")),
    ],
)
def test_a_record_is_a_named_document(tmp_path: Path, record: dict[str, Any], expected: Page) -> None:
    (tmp_path / "crawl.jsonl").write_text(f"\n{json.dumps(record)}\n")
    [found] = reader().read(tmp_path / "crawl.jsonl")
    assert found == expected


def test_several_files_of_several_formats_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f'url,body\nhttps://a.example/1,"{TEXT}"\n', encoding="utf-8")
    (tmp_path / "lines.of.today").write_text(json.dumps({"body": TEXT}) + "\n")
    found = reader(text="body").read(tmp_path / "lines.of.today", tmp_path / "table.csv", tmp_path / "lines.of.today")
    assert [one.url for one in found] == ["line 1", "https://a.example/1", "line 1"]


def test_records_that_are_no_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    records = [
        {"url": "https://a.example/1", "text": TEXT},
        {"url": "https://a.example/2"},
        {"url": "https://a.example/1", "text": "another version"},
        {"id": "long", "text": "x" * 1_000_000},
    ]
    file = write_feed(tmp_path, records)
    file.write_text('{"broken\n' + file.read_text())
    (tmp_path / "pages.warc").write_bytes(Archive().add(b"<p>x", status="404 Gone").bytes())
    feed = reader()
    assert summary(feed.read(file, tmp_path / "pages.warc")) == [("https://a.example/1", TEXT)]
    assert feed.left_out == {
        "malformed": 1,
        "no_content": 1,
        "another version of a page": 1,
        "too_large": 1,
        "status 404": 1,
    }


def test_a_file_that_is_missing_or_breaks_off_is_named_after_its_documents(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"gone\.jsonl does not exist"):
        list(reader().read(tmp_path / "gone.jsonl"))
    with pytest.raises(NearDupError, match="contains no HTML or"):
        list(reader().read(tmp_path))
    (tmp_path / "cut.jsonl.xz").write_bytes(PACKERS[".xz"](b'{"text": "%s"}\n' % TEXT.encode() * 3)[:-9])
    documents = reader().read(tmp_path / "cut.jsonl.xz")
    assert next(documents).text == TEXT
    with pytest.raises(NearDupError, match="cannot be read to its end"):
        list(documents)


def test_a_workbook_is_not_taken_for_json_lines(tmp_path: Path) -> None:
    (tmp_path / "book.xlsx").write_bytes(b"PK")
    with pytest.raises(NearDupError, match="CSV UTF-8"):
        list(reader().read(tmp_path / "book.xlsx"))
