"""The pages that are named to a command by their URLs: one by one, or as a list."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.inputs import FORMATS, STDIN, Entry, read_input


def add_urls(parser: argparse.ArgumentParser) -> None:
    """The options that name pages."""
    parser.add_argument(
        "urls",
        metavar="URL",
        nargs="*",
        help="a page, by its URL as crawled; -: read URLs from standard input, one per line",
    )
    parser.add_argument("--from", dest="file", metavar="FILE", help="the pages in the field url of a file of records")
    parser.add_argument("--format", choices=FORMATS, default="", help="format of FILE (default: by suffix)")


def named(arguments: argparse.Namespace) -> list[str]:
    """The URLs, each once; raises NearDupError where there is none, or a list cannot be read."""
    urls = [one for url in arguments.urls for one in (_lines() if url == STDIN else [url])]
    if arguments.file:
        urls += _records(arguments.file, arguments.format)
    if not urls:
        raise SettingsError("No page is named. Give URLs, or - for standard input, or --from FILE.")
    return list(dict.fromkeys(urls))


def _lines() -> Iterator[str]:
    """URLs from standard input, as they are or as JSON lines."""
    for text in sys.stdin:
        if text.lstrip().startswith("{"):
            try:
                yield _url(json.loads(text), "standard input")
            except ValueError:
                raise NearDupError(f"{text.strip()[:80]!r} is no JSON. Give one URL or JSON object per line.") from None
        elif text.strip():
            yield text.strip()


def _records(file: str, format: str) -> Iterator[str]:
    for record in read_input(file, format):
        if isinstance(record, Entry):
            yield _url(record.fields, record.place)
        else:
            raise NearDupError(f"{record.place} cannot be read: {record.why}. Nothing is changed.")


def _url(fields: object, place: str) -> str:
    url = fields.get("url") if hasattr(fields, "get") else None
    if not isinstance(url, str) or not url.strip():
        raise NearDupError(f"{place} has no url, but each record needs one. Nothing is changed.")
    return url.strip()
