"""The pages of a feed, as a crawl would judge them: of any format that ``inputs`` reads, HTML among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.inputs import Entry, Malformed, Skipped, format_of, read_input
from scrapy_neardup.inputs.packed import find_file
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import decode_body
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import PageSource

#: The field that holds the name of a record, if it has one.
_ID = "id"


def told_format(path: Path) -> str:
    """The format of a file by its name; JSON lines where that says nothing."""
    try:
        return format_of(str(path))
    except SettingsError:
        return "jsonl"


class FeedReader:
    """Reads feeds; ``left_out`` counts the records that are no pages, by the reason."""

    def __init__(self, fields: Mapping[str, str], source: PageSource, *, renamed: bool = False) -> None:
        """``fields``: which field of a record holds what; ``renamed``: they have names of the user's own."""
        self.left_out: Counter[str] = Counter()
        self._fields = fields
        self._source = source
        self._renamed = renamed

    def is_needed(self, path: Path) -> bool:
        """Whether a file is no plain corpus: not JSON lines under the usual names, and no text."""
        return not path.is_dir() and (self._renamed or told_format(path) not in ("jsonl", "text"))

    def pages(self, name: str) -> Iterator[tuple[str, Page]]:
        """The URL of each page, where it has one, and the page under the name of its record.

        That is its id, or else its URL, or else its place. Of several records of one name the first one is read: the
        others are versions of the same page. Of the folder of a corpus its documents are read.
        """
        seen = set()
        docs = find_file(Path(name), "docs.jsonl") if Path(name).is_dir() else None
        for entry in read_input(str(docs or name)):
            if isinstance(entry, (Malformed, Skipped)):
                self.left_out["malformed" if isinstance(entry, Malformed) else entry.why] += 1
                continue
            own, url = self._names(entry)
            if own in seen:
                self.left_out["another version of a page"] += 1
                continue
            seen.add(own)
            try:
                page = self._page(entry, own, url)
            except PageError as error:
                self.left_out[error.reason] += 1
                continue
            if page.unread:
                self.left_out[page.unread] += 1
            else:
                yield url, page

    def _names(self, entry: Entry) -> tuple[str, str]:
        id, given = entry.fields.get(_ID), entry.fields.get(self._fields["url"])
        url = given.strip() if isinstance(given, str) else ""
        if isinstance(id, (str, int)) and not isinstance(id, bool) and str(id).strip():
            return str(id).strip(), url
        if url:
            return self._source.fields.named(entry.fields, url), url
        return f"{entry.unit} {entry.number}" if entry.unit else entry.source, ""

    def _page(self, entry: Entry, own: str, url: str) -> Page:
        fields = dict(entry.fields)
        if entry.html:
            fields[self._fields["html"]] = decode_body(entry.html, entry.content_type or None)
        page = self._source.page(fields, None, url or own)
        return replace(page, url=own, site=site_of(url or own))
