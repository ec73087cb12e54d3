"""Records of files before a detector: the same verdicts as in a crawl, without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import ExtractionError, PageError, StoreError
from scrapy_neardup.inputs import Entry
from scrapy_neardup.judge.immediate import ImmediateJudge
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.oneline import line_logger
from scrapy_neardup.page.extraction import Extractor
from scrapy_neardup.page.limits import MAX_TEXT
from scrapy_neardup.page.response import PageContent
from scrapy_neardup.page.sites import site_of
from scrapy_neardup.page.source import Answer, ContentReader, PageSource, UnreadPage
from scrapy_neardup.workers.prefetch import NOTHING, ReadAhead, Ready
from scrapy_neardup.workers.speculation import PreparedFingerprint

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
        now: ImmediateJudge,
        *,
        fields: Mapping[str, str],
        id_field: str,
        max_html: int,
        extractor: Extractor | None,
        max_text: int = MAX_TEXT,
        read_risky: ContentReader | None = None,
    ) -> None:
        """``now``: what judges them. ``fields``: which field of a record holds what; ``id_field``: which one its id,
        empty if none does.

        The rest is what ``PageSource`` takes.
        """
        self._now = now
        detector = now.detector
        self._passes = detector.passes
        self._fields = fields
        self._id_field = id_field
        self._source = PageSource(
            fields,
            max_html,
            extractor,
            max_text=max_text,
            read_risky=read_risky,
            is_unchanged=detector.is_unchanged,
            bodies=detector.bodies,
            marks=detector.store.is_shared,
        )
        #: Bodies of records that are to be judged soon, and of how many.
        self._coming: Counter[int] = Counter()

    def coming(self, entry: Entry) -> PageContent | Page | None:
        """What the page of a record is to be read from, in their order, or the page of one that brings its text.

        None if nothing is to be asked of it: of one that is no page, as is said later, and one that will be known by
        its bytes.
        """
        name = self._name(entry)
        try:
            made = self._draft(entry, name)
            if isinstance(made, Page):
                return made
            is_known = made.body and (self._coming[made.body] or self._now.may_know(name, made.body))
        except Exception:  # it happens again, and is told, when the record is judged
            return None
        self._coming[made.body] += 1
        return None if is_known and not (entry.html and self._passes(Verdict(Kind.DUPLICATE, name))) else made.content

    def judge(self, entry: Entry, found: ReadAhead = NOTHING) -> Judged:
        """The verdict on a record; whatever is wrong with its content, it is unjudged. Raises StoreError.

        ``found``: what other processes have made of it.
        """
        name = self._name(entry)
        page = Page(name)
        try:
            made = found.page or self._draft(entry, name)
            verdict = self._by_bytes(made, entry, name)
            if verdict is None or (entry.html and self._passes(verdict)):
                page = self._page(made, entry, name, found.answer)
            if verdict is None:
                verdict = self._verdict(page, entry, found.ready)
        except PageError as error:
            return Judged(Verdict(Kind.UNJUDGED, name, reason=error.reason), self._written(entry, page))
        except StoreError:
            raise
        except Exception:  # a page that no one foresaw must not cost the others; the traceback says what to mend
            logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", entry.place)
            return Judged(Verdict(Kind.UNJUDGED, name, reason="method_failed"), self._written(entry, page))
        return Judged(verdict, self._written(entry, page))

    def _verdict(self, page: Page, entry: Entry, ready: Ready) -> Verdict:
        """The verdict on a page. A mark takes as long to make as all else that is read of a text, and few need one."""
        if isinstance(ready, ExtractionError):  # it was too much for two processes
            page, ready = replace(page, text="", unread=ready.reason), None
        verdict = self._ruled(page, ready)
        if verdict.kind is not Kind.UNJUDGED or page.html or page.reader:
            return verdict
        marked = self._source.add_item_hash(page, entry.fields, self._url(entry, page.url))
        return self._ruled(marked, ready) if marked.html else verdict  # without it, nothing was written

    def _ruled(self, page: Page, ready: PreparedFingerprint | None) -> Verdict:
        if ready is None:
            return self._now.judge(page, sealed=False)
        return self._now.judge_prepared(page, ready, sealed=False)

    def _name(self, entry: Entry) -> str:
        id, url = entry.fields.get(self._id_field), entry.fields.get(self._fields["url"])
        if isinstance(id, (str, int)) and not isinstance(id, bool) and str(id).strip():
            return str(id).strip()
        if isinstance(url, str) and url.strip():
            return self._source.fields.article_url(entry.fields, url.strip())
        return f"{entry.source}#{entry.number}" if entry.unit else entry.source

    def _by_bytes(self, made: Page | UnreadPage, entry: Entry, name: str) -> Verdict | None:
        """The verdict on a page that need not be read."""
        if isinstance(made, Page) or not made.body:
            return None
        if self._coming[made.body] > 1:
            self._coming[made.body] -= 1
        else:
            del self._coming[made.body]
        return self._now.judge_bytes(name, site_of(self._url(entry, name)), made.body, sealed=False)

    def _page(self, made: Page | UnreadPage, entry: Entry, name: str, answer: Answer | None) -> Page:
        if isinstance(made, Page):
            return made
        return replace(self._source.read(made, answer), url=name)

    def _draft(self, entry: Entry, name: str) -> Page | UnreadPage:
        fields = dict(entry.fields)
        if entry.html:
            fields[self._fields["html"]] = entry.html
        made = self._source.prepare(fields, None, self._url(entry, name), entry.content_type or None)
        return replace(made, url=name) if isinstance(made, Page) and made.url != name else made

    def _url(self, entry: Entry, name: str) -> str:
        given = entry.fields.get(self._fields["url"])
        return given.strip() if isinstance(given, str) and given.strip() else name

    def _written(self, entry: Entry, page: Page) -> Mapping[str, Any]:
        """A record as it is; of a document what was taken from it, without its HTML."""
        if not entry.html:
            return entry.fields
        about = {"title": page.title, "keywords": list(page.keywords), "description": page.description}
        return {**entry.fields, **about, "text": page.text}
