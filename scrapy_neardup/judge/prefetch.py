"""Read and fingerprint the next records in workers while earlier ones are judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import NamedTuple

from scrapy_neardup.inputs import Entry, InputRecord
from scrapy_neardup.judge.fingerprint_tasks import Preparing, Ready
from scrapy_neardup.judge.page_tasks import Readers, ReadPage
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import Answer
from scrapy_neardup.page.response import PageContent

#: Records that are read ahead at most, and bytes and characters of their pages.
_MOST = 64
_MOST_BYTES = 50_000_000


class ReadAhead(NamedTuple):
    """What is known of a record before it is judged.

    ``answer``: what a process says of its page, that was to be read. ``page``: of one that brings its text. ``ready``:
    the fingerprint that a process has made of either.
    """

    answer: Answer | None = None
    page: Page | None = None
    ready: Ready = None


#: Of a record of which nothing was asked.
NOTHING = ReadAhead()


class Prefetcher:
    """Reads so many records ahead as it takes to keep other processes at work."""

    def __init__(
        self,
        coming: Callable[[Entry], PageContent | Page | None],
        pages: Readers | None,
        texts: Preparing | None,
        *,
        after: int = 0,
        after_characters: int = 0,
    ) -> None:
        """``coming``: what the page of a record is to be read from, if it is, or the page if it brings its text.

        ``after``: for how many pages no process is asked; ``after_characters``: the same of texts. Without ``pages``
        or ``texts`` none ever is.
        """
        self._coming = coming
        self._pages = pages
        self._texts = texts
        self._after = after
        self._after_characters = after_characters
        self._most = max(_MOST if pages else 1, texts.most if texts else 1)

    def read(self, records: Iterable[InputRecord]) -> Iterator[tuple[InputRecord, ReadAhead]]:
        """The records in their order.

        An error of the records is raised where it would be without reading ahead: behind all that come before.
        """
        ahead: deque[tuple[InputRecord, Callable[[], ReadAhead], int]] = deque()
        size, failed = 0, None
        coming = iter(records)
        while True:
            while failed is None and len(ahead) < self._most and size < _MOST_BYTES:
                try:
                    record = next(coming)
                except Exception as error:  # StopIteration is one too
                    failed = error
                    break
                found, takes = self._asked(record)
                ahead.append((record, found, takes))
                size += takes
            if not ahead:
                if isinstance(failed, StopIteration):
                    return
                assert failed is not None
                raise failed
            record, found, takes = ahead.popleft()
            size -= takes
            yield record, found()

    def _asked(self, record: InputRecord) -> tuple[Callable[[], ReadAhead], int]:
        """What waits for what becomes of a record, and how much that holds."""
        page = self._coming(record) if isinstance(record, Entry) else None
        if isinstance(page, Page):
            return self._of_text(page), len(page.text)
        if page is None or self._pages is None:
            return _nothing, 0
        if self._after > 0:
            self._after -= 1
            return _nothing, 0
        future: Future[ReadPage | Answer] = Future()
        self._pages.ask(page, lambda answer, _: future.set_result(answer))
        return lambda: _read(future.result()), page.size

    def _of_text(self, page: Page) -> Callable[[], ReadAhead]:
        if self._texts is None or self._after_characters > 0:
            self._after_characters -= len(page.text)
            return lambda: ReadAhead(page=page)
        ready = self._texts.add(page)
        return lambda: ReadAhead(page=page, ready=ready())


def _read(answer: ReadPage | Answer) -> ReadAhead:
    if isinstance(answer, ReadPage):
        return ReadAhead(answer=answer.page, ready=answer.prepared)
    return ReadAhead(answer=answer)


def _nothing() -> ReadAhead:
    return NOTHING
