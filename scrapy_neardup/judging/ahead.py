"""Pages of records are read in other processes while those before them are judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from scrapy_neardup.inputs import Entry, InputRecord
from scrapy_neardup.page.apart import Answer
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.page.raw import Raw

#: Records that are read ahead at most, and bytes of their pages.
_MOST = 64
_MOST_BYTES = 50_000_000


def read_ahead(
    records: Iterable[InputRecord], raw: Callable[[Entry], Raw | None], pool: Pool, *, after: int = 0
) -> Iterator[tuple[InputRecord, Answer | None]]:
    """The records in their order, each with what a process says of its page; None for one that is not to be read.

    ``raw``: what the page of a record is to be read from, if it is; ``after``: for how many pages no process is asked.
    An error of the records is raised where it would be without reading ahead: behind all that come before.
    """
    ahead: deque[tuple[InputRecord, Future[Answer] | None, int]] = deque()
    size, failed = 0, None
    coming = iter(records)
    while True:
        while failed is None and len(ahead) < _MOST and size < _MOST_BYTES:
            try:
                record = next(coming)
            except Exception as error:  # StopIteration is one too
                failed = error
                break
            page = raw(record) if isinstance(record, Entry) else None
            if page is not None and after > 0:
                page, after = None, after - 1
            bytes_of_it = len(page.content) if page is not None else 0
            ahead.append((record, _asked(page, pool), bytes_of_it))
            size += bytes_of_it
        if not ahead:
            if isinstance(failed, StopIteration):
                return
            assert failed is not None
            raise failed
        record, answer, bytes_of_it = ahead.popleft()
        size -= bytes_of_it
        yield record, answer.result() if answer is not None else None


def _asked(page: Raw | None, pool: Pool) -> Future[Answer] | None:
    if page is None:
        return None
    future: Future[Answer] = Future()
    pool.ask(page, lambda answer, _: future.set_result(answer))
    return future
