"""Judges records of files as a crawl judges pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import PageError, StoreError
from scrapy_neardup.files import Entry
from scrapy_neardup.files.entry import name_entry
from scrapy_neardup.judge.immediate import ImmediateJudge
from scrapy_neardup.judge.in_flight import Ruled
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)


@dataclass(frozen=True, slots=True)
class Judged:
    """A record with its verdict; ``fields`` are written to the output."""

    verdict: Verdict
    fields: Mapping[str, Any]


class RecordReader:
    """Makes pages of records.

    The name of a record is its id; else its URL and part, as in a crawl; else its place in the file.
    """

    def __init__(self, source: PageSource, id_field: str) -> None:
        """``id_field`` names the field of the id, or is empty."""
        self._source = source
        self._html_field = source.fields.names["html"]
        self._id_field = id_field

    def name(self, entry: Entry) -> str:
        """Return the name of a record."""
        place = f"{entry.source}#{entry.number}" if entry.unit else entry.source
        return name_entry(entry, self._source.fields, self._id_field) or place

    def url(self, entry: Entry, name: str) -> str:
        """Return the URL of a record, or its name."""
        return self._source.fields.url(entry.fields) or name

    def draft(self, entry: Entry, name: str) -> Page | UnreadPage:
        """Return the page of a record with text, or the unread page of one with HTML. Raises ExtractionError."""
        fields = dict(entry.fields)
        if entry.html:
            fields[self._html_field] = entry.html
        made = self._source.prepare(fields, None, self.url(entry, name), entry.content_type or None)
        return replace(made, url=name) if isinstance(made, Page) and made.url != name else made

    def read(self, made: Page | UnreadPage, name: str, answer: Answer | None = None) -> Page:
        """Read a page, or take the ``answer`` of a worker. Raises ExtractionError."""
        return made if isinstance(made, Page) else replace(self._source.read(made, answer), url=name)

    def add_item_hash(self, page: Page, entry: Entry) -> Page:
        """Add the hash of a record to a page that has none: see ``PageSource.add_item_hash``."""
        if page.html or page.reader:
            return page
        return self._source.add_item_hash(page, entry.fields, self.url(entry, page.url))


class Batch:
    """Judges records one after the other. Each counts as soon as it is judged, and permanently once it is sealed.

    Two records with one name are versions of one page, not copies.
    """

    def __init__(self, now: ImmediateJudge, source: PageSource, id_field: str) -> None:
        """``now`` judges the records. A ``source`` without ``bodies`` reads also records whose bytes are known.

        ``id_field``: see ``RecordReader``.
        """
        self._now = now
        self._detector = now.detector
        self._passes = now.detector.policy.passes
        self._reader = RecordReader(source, id_field)
        self._html_field = source.fields.names["html"]

    def coming(self, entry: Entry) -> PageContent | None:
        """What a worker needs to read the page of a record.

        None if a worker has nothing to do: the record has its own text or is no page, or its bytes are known.
        """
        if not entry.html and not entry.fields.get(self._html_field):
            return None
        name = self._reader.name(entry)
        try:
            made = self._reader.draft(entry, name)
            if isinstance(made, Page):
                return None
            is_known = self._detector.may_know(name, made.body)
        except Exception:  # it happens again when the record is judged, and is reported then
            return None
        return None if is_known and not (entry.html and self._passes(Verdict(Kind.DUPLICATE, name))) else made.content

    def judge(self, entry: Entry, answer: Answer | None = None) -> Judged:
        """Judge a record; one with wrong content is unjudged. Raises StoreError.

        ``answer``: of a worker that read it.
        """
        name = self._reader.name(entry)
        page = Page(name)
        try:
            made = self._reader.draft(entry, name)
            verdict = self._verdict_by_bytes(made, entry, name)
            if verdict is None or (entry.html and self._passes(verdict)):
                page = self._reader.read(made, name, answer)
            if verdict is None:
                verdict = self._verdict(page, entry)
        except PageError as error:
            verdict = Verdict(Kind.UNJUDGED, name, reason=error.reason)
        except StoreError:
            raise
        except Exception:  # an unforeseen page must not cost the others; the traceback says what to mend
            logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", entry.place)
            verdict = Verdict(Kind.UNJUDGED, name, reason="method_failed")
        return Judged(verdict, output_fields(entry, page))

    def _verdict(self, page: Page, entry: Entry) -> Verdict:
        verdict = self._now.judge(page, sealed=False)
        if verdict.kind is not Kind.UNJUDGED:
            return verdict
        # The mark of a text takes as long as all other reading, and few pages need it, so it is made only now.
        marked = self._reader.add_item_hash(page, entry)
        # Without a mark, nothing was written.
        return self._now.judge(marked, sealed=False) if marked is not page else verdict

    def _verdict_by_bytes(self, made: Page | UnreadPage, entry: Entry, name: str) -> Verdict | None:
        if isinstance(made, Page) or not made.body:
            return None
        ruling = self._detector.check_bytes(name, site_of(self._reader.url(entry, name)), made.body)
        return ruling.verdict if isinstance(ruling, Ruled) else None  # nobody waits for a page in flight


def output_fields(entry: Entry, page: Page) -> Mapping[str, Any]:
    """Return the fields of a record; of a document, what was read from its HTML in place of the HTML."""
    if not entry.html:
        return entry.fields
    about = {"title": page.title, "keywords": list(page.keywords), "description": page.description}
    return {**entry.fields, **about, "text": page.text}
