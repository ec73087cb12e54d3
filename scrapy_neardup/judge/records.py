"""Judge records of files, and pages of scripts, as a crawl judges pages. But each counts at once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from scrapy_neardup.errors import PageError, StoreError
from scrapy_neardup.files import Entry
from scrapy_neardup.files.entry import name_entry
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.in_flight import Blocked
from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.item import TEXT_PREFIX
from scrapy_neardup.page.source import PageSource, UnreadPage
from scrapy_neardup.untrusted import line_logger

logger = line_logger(__name__)

T = TypeVar("T")
#: Seconds between two requests for the counts of other crawls.
_PAUSE = 1.0


#: Judges a page, which counts from then on. Raises StoreError.
JudgeNow = Callable[[Page], Verdict]


@contextmanager
def open_judge(detector: Detector, wait: float, *, sealed: bool = False) -> Iterator[JudgeNow]:
    """Yield the judge for the state of a detector; leave it before the state is closed.

    ``wait``: as NEARDUP_WAIT. ``sealed``: whether each page is permanent at once.
    """
    if not detector.store.is_shared:
        yield partial(detector.judge_now, sealed=sealed)
        return
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="neardup-judging", daemon=True)

    def run(work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        finally:
            futures.wait([future])  # an interrupted caller must not use the state while the thread does

    async def make() -> _SharedJudge:
        return _SharedJudge(detector, wait, sealed)

    thread.start()
    try:
        shared = run(make())
        try:
            yield lambda page: run(shared.judge(page))
        finally:
            run(shared.crawl.link.close())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _SharedJudge:
    """Judges pages on a state that other crawlers share, in the loop that runs when it is made.

    The pages take the way of a crawl's pages, so two copies that come at once see each other. That way is asynchronous,
    and callers are not, or run a loop themselves. So this loop runs in another thread, while a caller waits.
    """

    def __init__(self, detector: Detector, wait: float, sealed: bool) -> None:
        """``wait``: seconds that a page waits for each near-duplicate of another crawler."""
        from scrapy_neardup.judge.remote import RemoteCrawl  # only a state on a server needs redis-py

        self._errors: list[StoreError] = []
        self.crawl = RemoteCrawl(detector, self._errors.append)
        self._wait, self._sealed, self._caught_up = wait, sealed, 0.0

    async def judge(self, page: Page) -> Verdict:
        """Judge a page; it is unjudged (``in_flight``) if another crawler takes too long."""
        if (now := asyncio.get_running_loop().time()) - self._caught_up >= _PAUSE:
            self._caught_up = now
            await self.crawl.catch_up()
        try:
            async with self.crawl.judgement() as judgement:
                while isinstance(ruling := await judgement.check(page), Blocked):
                    await judgement.wait(ruling.by, self._wait)
            if ruling.reservation is not None:
                self.crawl.commit(ruling.reservation, sealed=self._sealed)
        finally:
            await self.crawl.finish()
        if self._errors:
            raise self._errors.pop()
        return ruling.verdict


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
        name = name_entry(entry, self._source.fields, self._id_field)
        return name or (f"{entry.source}#{entry.number}" if entry.unit else entry.source)

    def url(self, entry: Entry, name: str) -> str:
        return self._source.fields.url(entry.fields) or name

    def draft(self, entry: Entry, name: str) -> Page | UnreadPage:
        """Return the page of a record with text, or the unread page of one with HTML. Raises ExtractionError."""
        fields = {**entry.fields, self._html_field: entry.html} if entry.html else entry.fields
        return self._source.prepare(fields, None, self.url(entry, name), entry.content_type or None, name)

    def read(self, made: Page | UnreadPage, name: str, answer: Answer | None = None) -> Page:
        """Read a page, or take the ``answer`` of a worker. Raises ExtractionError."""
        page = made if isinstance(made, Page) else self._source.read(made, answer)
        return replace(page, html=0) if name.startswith(TEXT_PREFIX) else page

    def item_hash(self, page: Page, entry: Entry) -> int:
        """Return ``Page.html``, or for a page without it the hash of the record: see ``ItemFields.hash``.

        A page that is named by its text stays without: it may be the third that says "see attachment".
        """
        if page.html or page.reader or page.url.startswith(TEXT_PREFIX):
            return page.html
        return self._source.fields.hash(entry.fields, self.url(entry, page.url))


class Batch:
    """Judges records one after the other. Each counts at once.

    Two records with one name are versions of one page, not copies.
    """

    def __init__(self, detector: Detector, judge: JudgeNow, source: PageSource, id_field: str = "") -> None:
        """``judge``: of the same ``detector``. A ``source`` without ``bodies`` also reads records with known bytes.

        ``id_field``: see ``RecordReader``.
        """
        self._detector = detector
        self._judge_now = judge
        self._reader = RecordReader(source, id_field)
        self._html_field = source.fields.names["html"]

    def coming(self, entry: Entry) -> PageContent | None:
        """The HTML that a worker reads for a record.

        None if a worker has nothing to do: the record has its own text or is no page, or its bytes are known.
        """
        if not entry.html and not entry.fields.get(self._html_field):
            return None
        name = self._reader.name(entry)
        try:
            made = self._reader.draft(entry, name)
            if isinstance(made, Page) or self._may_save_reading(entry, name, made):
                return None
        except Exception:  # it happens again when the record is judged, and is reported then
            return None
        return made.content

    def judge(self, entry: Entry, answer: Answer | None = None, *, remember: bool = True) -> Judged:
        """Judge a record; one with wrong content is unjudged. Raises StoreError.

        ``answer``: of a worker that read it. ``remember``: whether the state changes.
        """
        name = self._reader.name(entry)
        page, verdict, judge = Page(name), None, self._judge_now if remember else self._detector.look
        try:
            made = self._reader.draft(entry, name)
            if isinstance(made, UnreadPage) and self._may_save_reading(entry, name, made):
                unchanged = self._detector.check_bytes(name, made.body, writes=remember)
                verdict = unchanged.verdict if unchanged is not None else None
            if verdict is None:
                page = self._reader.read(made, name, answer)
                verdict = judge_with_hash(judge, page, partial(self._reader.item_hash, page, entry))
        except PageError as error:
            verdict = Verdict(Outcome.UNJUDGED, name, reason=error.reason)
        except StoreError:
            raise
        except Exception:  # an unforeseen page must not cost the others; the traceback says what to mend
            logger.exception("%s could not be judged. This is a bug; please report it with the traceback.", entry.place)
            verdict = Verdict(Outcome.UNJUDGED, name, reason="method_failed")
        return Judged(verdict, output_fields(entry, page))

    def _may_save_reading(self, entry: Entry, name: str, made: UnreadPage) -> bool:
        """Whether the state may know the bytes, and no output needs the text of a document."""
        if entry.html and self._detector.policy.passes(Verdict(Outcome.UNCHANGED, name)):
            return False
        return self._detector.may_know(name, made.body)


def judge_with_hash(judge: JudgeNow, page: Page, hash_item: Callable[[], int]) -> Verdict:
    """Judge a page. It gets the hash of its item only if that matters: the hash takes as long as all other reading."""
    verdict = judge(page)
    if verdict.outcome is Outcome.UNJUDGED and not verdict.id and (hashed := hash_item()) != page.html:
        return judge(replace(page, html=hashed))  # nothing was written before
    return verdict


def output_fields(entry: Entry, page: Page) -> Mapping[str, Any]:
    """Return the fields of a record. A document has its title, keywords, description and text in place of the HTML."""
    if not entry.html:
        return entry.fields
    about = {"title": page.title, "keywords": list(page.keywords), "description": page.description}
    return {**entry.fields, **about, "text": page.text}
