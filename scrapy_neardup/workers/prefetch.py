"""Read and fingerprint the next records of a file in workers, while earlier ones are judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.files import Entry, InputRecord
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import Answer, PageContent
from scrapy_neardup.workers.pool import TaskFailed, WorkerPool
from scrapy_neardup.workers.speculation import PreparedFingerprint
from scrapy_neardup.workers.tasks import FingerprintTask, ReadPage, ReadTask

#: Records that are read ahead at most, and bytes or characters of their pages.
_MOST_RECORDS = 64
_MOST_BYTES = 50_000_000
#: Texts that are sent together, and characters after which no more are added. Waking a thread takes some tenths of a
#: millisecond; with such groups that is little.
_GROUP_PAGES, _GROUP_CHARACTERS = 16, 100_000

#: None if the page is to be fingerprinted where it is judged; an error if workers died of it or took too long.
Ready = PreparedFingerprint | ExtractionError | None


class ReadAhead(NamedTuple):
    """What workers know of a record before it is judged.

    ``answer``: what a worker read of its HTML. ``page``: the page of a record with its own text. ``ready``: the
    fingerprint of either.
    """

    answer: Answer | None = None
    page: Page | None = None
    ready: Ready = None


#: Of a record that no worker saw.
NOTHING = ReadAhead()


class Prefetcher:
    """Reads so many records ahead that the workers stay busy."""

    def __init__(
        self,
        content: Callable[[Entry], PageContent | Page | None],
        page_pool: WorkerPool | None,
        text_pool: WorkerPool | None,
        *,
        first_pages: int = 0,
        first_characters: int = 0,
    ) -> None:
        """``content``: the HTML that a worker reads for a record, or the page that it fingerprints; else None.

        The judge itself handles the ``first_pages`` with HTML and the ``first_characters`` of texts: these are not
        worth a process. So it does with everything that has no pool.
        """
        self._content = content
        self._page_pool = page_pool
        self._texts = _TextGroups(text_pool) if text_pool else None
        self._first_pages = first_pages
        self._first_characters = first_characters
        self._most = max(_MOST_RECORDS if page_pool else 1, self._texts.most if self._texts else 1)

    def read(self, records: Iterable[InputRecord]) -> Iterator[tuple[InputRecord, ReadAhead]]:
        """The records in their order. An error of the records is raised after all records before it."""
        ahead: deque[tuple[InputRecord, Callable[[], ReadAhead], int]] = deque()
        ahead_size, error = 0, None
        records = iter(records)
        while True:
            while error is None and len(ahead) < self._most and ahead_size < _MOST_BYTES:
                try:
                    record = next(records)
                except Exception as raised:  # StopIteration too
                    error = raised
                    break
                wait, size = self._send(record)
                ahead.append((record, wait, size))
                ahead_size += size
            if not ahead:
                if isinstance(error, StopIteration):
                    return
                assert error is not None
                raise error
            record, wait, size = ahead.popleft()
            ahead_size -= size
            yield record, wait()

    def _send(self, record: InputRecord) -> tuple[Callable[[], ReadAhead], int]:
        """Send a record to a worker; returns what waits for the result, and the size of the page."""
        content = self._content(record) if isinstance(record, Entry) else None
        if isinstance(content, Page):
            return self._send_text(content), len(content.text)
        if content is None or self._page_pool is None:
            return lambda: NOTHING, 0
        if self._first_pages > 0:
            self._first_pages -= 1
            return lambda: NOTHING, 0
        future = self._page_pool.submit(ReadTask(content))

        def wait() -> ReadAhead:
            result = future.result()
            return ReadAhead(result.page, ready=result.prepared) if isinstance(result, ReadPage) else ReadAhead(result)

        return wait, content.size

    def _send_text(self, page: Page) -> Callable[[], ReadAhead]:
        if self._texts is None or self._first_characters > 0:
            self._first_characters -= len(page.text)
            return lambda: ReadAhead(page=page)
        wait = self._texts.add(page)
        return lambda: ReadAhead(page=page, ready=wait())


class _TextGroups:
    """Fingerprints texts in groups. ``most``: how many texts keep the workers busy; more would rest on older counts."""

    def __init__(self, pool: WorkerPool) -> None:
        self.most = _GROUP_PAGES * (2 * pool.size + 1)
        self._pool = pool
        self._group = _Group()
        self._has_started = self._is_off = False

    def add(self, page: Page) -> Callable[[], Ready]:
        """Add a page to the next group; returns what waits for its fingerprint."""
        if self._is_off:
            return lambda: None
        group, number = self._group, len(self._group.pages)
        group.pages.append(page)
        if len(group.pages) == _GROUP_PAGES or sum(len(one.text) for one in group.pages) >= _GROUP_CHARACTERS:
            self._send()
        return lambda: self._wait(group, number)

    def _send(self) -> None:
        self._group.result = self._submit(self._group.pages)
        self._group = _Group()

    def _submit(self, pages: list[Page]) -> _GroupResult:
        return self._pool.submit(FingerprintTask(pages), self._note_start)

    def _note_start(self) -> None:
        self._has_started = True

    def _wait(self, group: _Group, number: int) -> Ready:
        if group is self._group:
            self._send()
        assert group.result is not None
        if not (self._has_started or group.result.done()):
            group.skipped += 1
            if group.skipped == len(group.pages):
                group.result.cancel()
            return None  # this process has nothing better to do while the workers start
        result = group.result.result()
        if isinstance(result, TaskFailed) and len(group.pages) > 1:  # one of the pages is to blame
            group.retries = group.retries or [self._submit([page]) for page in group.pages]
            result, number = group.retries[number].result(), 0
        if not isinstance(result, ExtractionError):
            return result[number]
        self._is_off |= isinstance(result, NoWorker)
        return result if isinstance(result, TaskFailed) else None


_GroupResult = Future[list[PreparedFingerprint | None] | ExtractionError]


@dataclass(eq=False)
class _Group:
    """Pages that are sent together; ``skipped``: how many were judged before a worker started."""

    pages: list[Page] = field(default_factory=list)
    skipped: int = 0
    result: _GroupResult | None = None
    #: The results of each page alone.
    retries: list[_GroupResult] = field(default_factory=list)
