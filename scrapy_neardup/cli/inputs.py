"""Pages and documents that a user names: URLs of a state, files of records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from scrapy_neardup.cli.output import describe_missing, progress, warn
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN, Entry, read_input
from scrapy_neardup.inspect.sources import open_source
from scrapy_neardup.inspect.urls import near_urls
from scrapy_neardup.lab.documents import Document, DocumentReader
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record
from scrapy_neardup.untrusted import one_line


def read_documents(command: str, config: Config, *names: str | Path) -> Iterator[Document]:
    """Yield the documents of files, read as a crawl with these settings would.

    Records without a document are a warning at the end. Raises NearDupError if there is no document.
    """
    count = 0
    with open_source(config, marks=False) as source:
        reader = DocumentReader(source)
        for document in progress(reader.read(*names), what="documents read"):
            count += 1
            yield document
    if reader.left_out:
        why = ", ".join(f"{number:,} {one_line(reason)}" for reason, number in reader.left_out.most_common())
        warn(f"{command}: left out: {why}.")
    if not count:
        where = ", ".join("standard input" if str(name) == STDIN else str(name) for name in names)
        raise NearDupError(
            f"{where} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )


def read_urls(arguments: argparse.Namespace) -> list[str]:
    """Return the URLs, each once; raises NearDupError if there is none, or if a list cannot be read."""
    urls = [one for url in arguments.urls for one in (_urls_of_lines() if url == STDIN else [url])]
    for record in read_input(arguments.file, arguments.format) if arguments.file else ():
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} cannot be read: {record.why}. Nothing is changed.")
        urls.append(_url_of(record.fields, record.place))
    if not urls:
        raise SettingsError("No page is named. Give URLs, or - for standard input, or --from FILE.")
    return list(dict.fromkeys(urls))


def _urls_of_lines() -> Iterator[str]:
    """Read standard input, where a line is a URL or a JSON object."""
    for text in sys.stdin:
        if text.lstrip().startswith("{"):
            try:
                yield _url_of(json.loads(text), "standard input")
            except ValueError:
                raise NearDupError(f"{text.strip()[:80]!r} is no JSON. Give one URL or JSON object per line.") from None
        elif text.strip():
            yield text.strip()


def _url_of(fields: object, place: str) -> str:
    url = fields.get("url") if hasattr(fields, "get") else None
    if not isinstance(url, str) or not url.strip():
        raise NearDupError(f"{place} has no url, but each record needs one. Nothing is changed.")
    return url.strip()


def find_pages(store: PageStore, urls: Iterable[str]) -> tuple[list[Record], list[str]]:
    """Return the records of URLs, and the URLs without one. Each of those is a warning with similar URLs."""
    found, missing = [], []
    for url in urls:
        if (record := store.find(url)) is not None:
            found.append(record)
        else:
            missing.append(url)
            sys.stderr.write(describe_missing(url, near_urls(store, url), store.location))
    return found, missing
