"""Pages of a state that a user names by URL."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

from scrapy_neardup.cli.output import describe_missing
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN, Entry, read_input
from scrapy_neardup.inspect.urls import near_urls
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


def read_urls(arguments: argparse.Namespace) -> list[str]:
    """Return the URLs, each once; raises NearDupError if there is none, or if a list cannot be read."""
    urls = [one for url in arguments.urls for one in (_urls_of_lines() if url == STDIN else [url])]
    if arguments.file:
        urls += _urls_of_records(arguments.file, arguments.format)
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


def _urls_of_records(file: str, format: str) -> Iterator[str]:
    for record in read_input(file, format):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} cannot be read: {record.why}. Nothing is changed.")
        yield _url_of(record.fields, record.place)


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
