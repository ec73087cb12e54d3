"""Read the next records of a file in workers, while earlier ones are judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future

from scrapy_neardup.files import Entry, InputRecord
from scrapy_neardup.page.source import Answer, PageContent
from scrapy_neardup.workers.pool import WorkerPool

#: Records that are read ahead at most, and bytes or characters of their pages.
_MOST_RECORDS = 64
_MOST_BYTES = 50_000_000


def read_ahead(
    records: Iterable[InputRecord],
    content_of: Callable[[Entry], PageContent | None],
    pool: WorkerPool,
    *,
    first_pages: int = 0,
) -> Iterator[tuple[InputRecord, Answer | None]]:
    """Yield the records in their order, each with the answer of a worker; None if no worker read it.

    ``content_of``: the HTML of a record for a worker. The ``first_pages`` are not worth a process. An error of the
    records is raised after all records before it.
    """
    ahead: deque[tuple[InputRecord, Future[Answer] | None, int]] = deque()
    ahead_size, error = 0, None
    records = iter(records)
    while True:
        while error is None and len(ahead) < _MOST_RECORDS and ahead_size < _MOST_BYTES:
            try:
                record = next(records)
            except Exception as raised:  # StopIteration too
                error = raised
                break
            content = content_of(record) if isinstance(record, Entry) else None
            if content is not None and first_pages > 0:
                first_pages -= 1
                content = None
            ahead.append((record, pool.submit(content), content.size) if content else (record, None, 0))
            ahead_size += ahead[-1][2]
        if not ahead:
            if isinstance(error, StopIteration):
                return
            assert error is not None
            raise error
        record, answer, size = ahead.popleft()
        ahead_size -= size
        yield record, answer.result() if answer is not None else None
