"""Feeds as documents: of every format, under the names that a crawl knows their pages by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scrapy_neardup.lab.documents import Document, FeedReader, documents_of, read_documents, spooled
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS

TEXT = "The ferry to the island sails again from Monday on, at nine and at four, weather permitting."


def feed(**renamed: str) -> FeedReader:
    fields = {**DEFAULT_FIELDS, **renamed}
    return FeedReader(fields, PageSource(fields, 100_000, None), renamed=bool(renamed))


def written(folder: Path, *records: dict[str, Any]) -> str:
    file = folder / "feed.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return str(file)


def test_a_document_is_named_by_its_id_or_its_url_or_its_line(tmp_path: Path) -> None:
    name = written(
        tmp_path,
        {"id": 7, "url": "https://a.example/1", "text": TEXT},
        {"url": " https://a.example/2 ", "text": TEXT},
        {"text": TEXT},
    )
    found = list(documents_of(feed(), name))
    assert [one.id for one in found] == ["7", "https://a.example/2", "line 3"]
    assert [one.id for one in read_documents(Path(name))] == ["7", "https://a.example/2", "line 3"]
    assert [one.page().site for one in found] == ["a.example", "a.example", ""]
    assert [one.page().url for one in found] == [one.id for one in found]


def test_what_is_no_page_is_left_out_and_counted(tmp_path: Path) -> None:
    name = written(tmp_path, {"url": "https://a.example/1", "text": TEXT}, {"url": "https://a.example/2"})
    with Path(name).open("a") as file:
        file.write('{"broken\n' + json.dumps({"url": "https://a.example/1", "text": "another version"}) + "\n")
    source = feed()
    assert [one.text for one in documents_of(source, name)] == [TEXT]
    assert source.left_out == {"malformed": 1, "another version of a page": 1, "no_content": 1}


def test_fields_of_other_names_and_other_formats_are_read(tmp_path: Path) -> None:
    table = tmp_path / "feed.csv"
    table.write_text(f'url,body\nhttps://a.example/1,"{TEXT}"\n', encoding="utf-8")
    source = feed(text="body")
    assert source.is_needed(table)
    assert [one.text for one in read_documents(table, feed=source)] == [TEXT]
    assert not feed().is_needed(tmp_path / "docs.jsonl")
    assert feed(text="body").is_needed(tmp_path / "docs.jsonl")
    assert not feed(text="body").is_needed(tmp_path)
    assert not feed().is_needed(tmp_path / "pages.of.today")
    (tmp_path / "corpus").mkdir()
    written(tmp_path / "corpus", {"id": "a", "text": TEXT})
    (tmp_path / "corpus" / "feed.jsonl").rename(tmp_path / "corpus" / "docs.jsonl")
    assert [one.id for one in documents_of(feed(), str(tmp_path / "corpus"))] == ["a"]


def test_html_is_read_as_a_crawl_reads_it_and_stays_so_on_disk(tmp_path: Path) -> None:
    html = f"<html><head><title>Ferry</title></head><body><article><h1>Ferry</h1><p>{TEXT}</p></article></body></html>"
    name = written(tmp_path, {"url": "https://a.example/1", "html": html})
    [found] = documents_of(feed(), name)
    assert found.title == "Ferry"
    assert TEXT in found.text
    assert found.page().reader
    with spooled([found, Document("\ud800", "half", "half a character \ud800")]) as spool:
        assert len(spool) == 2
        assert spool[0] == found
        assert spool[1].page() == Document("\ud800", "half", "half a character \ud800").page()
        assert (spool[1].id, spool[0].url) == ("\ud800", "https://a.example/1")
