"""A corpus of texts as pages of HTML, each with its title as headline, to be judged as pages are served.

    python benchmarks/as_pages.py CORPUS > pages.jsonl
    scrapy neardup dedup pages.jsonl --tag -o tagged.jsonl

CORPUS is a folder as ``scrapy neardup evaluate`` reads it. A document without a URL is given one of a site of its own.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path

from scrapy_neardup.lab.labels import read_corpus


def as_page(title: str, text: str) -> str:
    """The smallest page that a browser would show so."""
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in text.split("\n") if line.strip())
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>'
    return f"<html><head>{head}</head><body><article><h1>{escape(title)}</h1>{paragraphs}</article></body></html>"


def main() -> None:
    for document in read_corpus(Path(sys.argv[1])).documents():
        url = document.url or f"https://{document.id}.example/"
        html = as_page(document.title, document.text)
        print(json.dumps({"id": document.id, "url": url, "html": html}, ensure_ascii=False))


if __name__ == "__main__":
    main()
