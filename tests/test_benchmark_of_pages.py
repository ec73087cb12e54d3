"""A corpus that is made into pages: a copy under another headline is one as a page as well."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from scrapy_neardup import Deduplicator
from tests.methods.cascade_pages import BELL, FERRY, scattered

FILE = Path(__file__).parent.parent / "benchmarks" / "as_pages.py"


def test_each_document_is_a_page_with_its_title_as_headline(tmp_path: Path) -> None:
    documents = [
        {"id": "1", "title": "夙愿得偿", "text": FERRY, "url": "https://river.example/1"},
        {"id": "2", "title": "水上坦途 <b>", "text": scattered(FERRY, 0.7, 3), "url": "https://hill.example/2"},
        {"id": "3", "title": "余音绕梁", "text": BELL},
    ]
    (tmp_path / "docs.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in documents), "utf-8")
    (tmp_path / "pairs.jsonl").write_text("", "utf-8")
    done = subprocess.run(
        [sys.executable, FILE, tmp_path], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    pages = [json.loads(line) for line in done.stdout.splitlines()]
    assert [page["url"] for page in pages] == [
        "https://river.example/1",
        "https://hill.example/2",
        "https://3.example/",
    ]
    with Deduplicator() as deduplicator:
        verdicts = [deduplicator.check(html=page["html"], url=page["url"]) for page in pages]
    assert [verdict.kind.value for verdict in verdicts] == ["unique", "duplicate", "unique"]
    assert verdicts[1].match is not None
    assert verdicts[1].match.url == "https://river.example/1"
