"""Records of files before a detector: the same verdicts as in a crawl, without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import PageError, StoreError
from scrapy_neardup.inputs import Entry
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.apart import Answer
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import Draft, PageSource, Read

logger = line_logger(__name__)


@dataclass(frozen=True, slots=True)
class Judged:
    """A record with its verdict; ``fields`` are what is written of it."""

    verdict: Verdict
    fields: Mapping[str, Any]


class Batch:
    """Judges records one after the other; each counts as soon as it is judged, and for good once it is sealed.

    A record is known by its id, if it has one; else by its URL and part, as in a crawl; else by its place. Under the
    same name it is another version of the same page, and no copy.
    """

    def __init__(
        self,
        detector: Detector,
        *,
        fields: Mapping[str, str],
        id_field: str,
        max_html: int,
        extractor: Extractor | None,
        max_text: int = MAX_TEXT,
        apart: Read | None = None,
    ) -> None:
        """``fields``: which field of a record holds what; ``id_field``: which one its id, empty if none does.

        The rest is what ``PageSource`` takes.
        """
        self._detector = detector
        self._fields = fields
        self._id_field = id_field
        self._source = PageSource(
            fields, max_html, extractor, max_text=max_text, apart=apart, is_unchanged=detector.is_unchanged
        )

    def raw(self, entry: Entry) -> Raw | None:
        """What the page of a record is to be read from; None if it brings its text, or is no page, as is said later."""
        if not (entry.html or entry.fields.get(self._fields["html"])):
            return None
        try:
            made = self._draft(entry, self._name(entry))
        except Exception:  # it happens again, and is told, when the record is judged
            return None
        return made.raw if isinstance(made, Draft) else None

    def judge(self, entry: Entry, answer: Answer | None = None) -> Judged:
        """The verdict on a record; whatever is wrong with its content, it is unjudged. Raises StoreError.

        ``answer``: what a process said that was asked to read its page.
        """
        name = self._name(entry)
        page = Page(name)
        try:
            page = self._page(entry, name, answer)
            verdict = self._detector.judge_now(page, sealed=False)
        except PageError as error:
            return Judged(Verdict(Kind.UNJUDGED, name, reason=error.reason), self._written(entry, page))
        except StoreError:
            raise
        except Exception:  # a page that no one foresaw must not cost the others; the traceback says what to mend
            logger.exception("%s could not be judged.", entry.place)
            return Judged(Verdict(Kind.UNJUDGED, name, reason="method_failed"), self._written(entry, page))
        return Judged(verdict, self._written(entry, page))

    def _name(self, entry: Entry) -> str:
        id, url = entry.fields.get(self._id_field), entry.fields.get(self._fields["url"])
        if isinstance(id, (str, int)) and not isinstance(id, bool) and str(id).strip():
            return str(id).strip()
        if isinstance(url, str) and url.strip():
            return self._source.named(entry.fields, url.strip())
        return f"{entry.source}#{entry.number}" if entry.unit else entry.source

    def _page(self, entry: Entry, name: str, answer: Answer | None) -> Page:
        made = self._draft(entry, name)
        page = self._source.read(made, answer) if isinstance(made, Draft) else made
        return replace(page, url=name, site=site_of(self._url(entry, name)))

    def _draft(self, entry: Entry, name: str) -> Page | Draft:
        fields = dict(entry.fields)
        if entry.html:
            fields[self._fields["html"]] = entry.html
        return self._source.draft(fields, None, self._url(entry, name), entry.content_type or None)

    def _url(self, entry: Entry, name: str) -> str:
        given = entry.fields.get(self._fields["url"])
        return given.strip() if isinstance(given, str) and given.strip() else name

    def _written(self, entry: Entry, page: Page) -> Mapping[str, Any]:
        """A record as it is; of a document what was taken from it, without its HTML."""
        if not entry.html:
            return entry.fields
        about = {"title": page.title, "keywords": list(page.keywords), "description": page.description}
        return {**entry.fields, **about, "text": page.text}
