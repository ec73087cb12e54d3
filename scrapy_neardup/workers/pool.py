"""Worker processes that read pages and can be ended, each with a thread that waits for its answers.

A hostile page of any size can keep a parser busy for minutes, and Python cannot interrupt C. So a worker ends
itself when a page takes too long. The pool replaces it, and also a worker that grew too large or died. Only the page is
to blame.

The workers are plain child processes. ``multiprocessing``, ``concurrent.futures`` and pebble import the main module of
the program again in each child, so a script without ``if __name__ == "__main__"`` would start a crawl in each. They
also unpickle what a child sends. Fork is no way either: the parent has a reactor, threads and an open database.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Condition, Event, Thread
from time import monotonic
from typing import Any, BinaryIO, cast, get_args

from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.files import Entry, InputRecord
from scrapy_neardup.page.extraction import Answer, PageContent
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.workers.worker import MAX_KEPT, ReadingOptions, receive, send

#: The paths are set before any import: ``-c`` puts the working directory before them.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from scrapy_neardup.workers.worker import main; main()"
#: The parameter M_ARENA_MAX of mallopt in malloc.h.
_ARENA_MAX = -8
#: More workers would wait for the process that judges: judging takes a third of the time of reading.
_MOST_WORKERS = 4
#: Bytes of free memory for each worker: it uses 100 MB, and a page may take 180 MB more.
_WORKER_MEMORY = 400_000_000
#: How often a process is started before the crawl goes on without workers.
_STARTS = 3
#: Errors of a pipe if its other end is dead or sends no message.
_BROKEN = OSError, EOFError, ValueError, TypeError, MemoryError, OverflowError


class PendingAnswer(Future[Answer]):
    """The answer to come. ``begun``: when a worker that had started took the page, by the monotonic clock; else 0."""

    begun = 0.0

    def __init__(self, content: PageContent) -> None:
        super().__init__()
        self.content = content
        self.site = site_of(content.url)


class WorkerPool:
    """Reads pages in at most ``size`` workers; another worker starts when all others are busy.

    The site with the fewest pages in workers comes next, so a site of slow pages leaves one worker to the others.

    The threads parse nothing, because lxml crashes when two threads parse. They are daemons, so an interrupted crawl
    does not wait for the queue.
    """

    def __init__(self, options: ReadingOptions, size: int, name: str = "neardup-worker") -> None:
        self.size = size
        #: How many workers ended before their time, and why the last of them did.
        self.replaced, self.why_replaced = 0, ""
        self._options = options
        self._name = name
        self._workers: list[_Worker] = []
        #: Pages that wait for a worker, and what a worker without a page waits for.
        self._waiting: list[PendingAnswer] = []
        self._lock = Condition()
        self._unfinished = 0
        self._closing = Event()

    @property
    def spent(self) -> float:
        """Seconds of reading, in all workers together."""
        return sum(worker.spent for worker in self._workers)

    @property
    def busy_since(self) -> float:
        """When the last free worker took a page, by the monotonic clock; 0 if a worker is free or starts."""
        begun = [worker.begun for worker in self._workers]
        return max(begun, default=0.0) if all(begun) else 0.0

    def submit(self, content: PageContent) -> PendingAnswer:
        """Read a page; the result is an ExtractionError if that fails. A page that waits can be cancelled."""
        reading = PendingAnswer(content)
        if self._closing.is_set():
            reading.set_result(_crawl_over())
            return reading
        with self._lock:
            if len(self._workers) < min(self.size, self._unfinished + 1):
                with suppress(RuntimeError):  # the system has no more threads; the other workers go on
                    self._add_worker()
            if not self._workers:
                reading.set_result(NoWorker("too_slow", "the system has no thread to wait for a worker"))
                return reading
            self._unfinished += 1
            self._waiting.append(reading)
            self._lock.notify()
        return reading

    def read(self, content: PageContent) -> Answer:
        return self.submit(content).result()

    @property
    def process_ids(self) -> list[int]:
        return [child.pid for worker in self._workers if (child := worker.child) is not None]

    def close(self) -> None:
        """Kill all workers; unfinished pages fail."""
        self._closing.set()
        for worker in self._workers:
            if (child := worker.child) is not None:
                child.kill()
        with self._lock:
            self._lock.notify_all()
        for worker in self._workers:
            worker.thread.join()

    def _add_worker(self) -> None:
        _share_arenas()
        worker = _Worker(self._options, self._closing, self._note_replaced)
        worker.thread = Thread(target=self._serve, args=(worker,), name=self._name, daemon=True)
        worker.thread.start()
        self._workers.append(worker)

    def _note_replaced(self, why: str) -> None:
        with self._lock:
            self.replaced, self.why_replaced = self.replaced + 1, why

    def _next(self, worker: _Worker) -> PendingAnswer | None:
        """Wait for a page of the site that comes next; None if the pool is closed and no page waits."""
        with self._lock:
            self._lock.wait_for(lambda: self._waiting or self._closing.is_set())
            if not self._waiting:
                return None
            busy = [one.site for one in self._workers if one is not worker]
            reading = min(self._waiting, key=lambda one: (busy.count(one.site), one.site == worker.site))
            self._waiting.remove(reading)
            worker.site = reading.site
            return reading

    def _serve(self, worker: _Worker) -> None:
        while (reading := self._next(worker)) is not None:
            answer: Answer = None
            if is_wanted := reading.set_running_or_notify_cancel():
                try:
                    answer = worker.read(reading)
                except ExtractionError as error:
                    answer = error
                except Exception as error:  # nobody may wait forever because of a bug
                    answer = ExtractionError("method_failed", f"{type(error).__name__}: {error}")
            with self._lock:
                self._unfinished -= 1
            if is_wanted:
                reading.set_result(answer)
            del reading, answer  # a page may be large
        worker.end()


class _Worker:
    """Reads one page at a time in a child process, and replaces a process that ends before its time.

    One thread sends the pages. Others may only kill the child.
    """

    thread: Thread

    def __init__(self, options: ReadingOptions, closing: Event, note_replaced: Callable[[str], None]) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.spent = 0.0
        #: The site of its last page, and when it took the page; 0 while it reads none.
        self.site, self.begun = "", 0.0
        self._options = options
        self._closing = closing
        self._note_replaced = note_replaced

    def read(self, reading: PendingAnswer) -> Answer:
        """Read a page. Raises ExtractionError.

        A page gets a second process if the first one dies: somebody else may have killed it, or the system, for want of
        memory.
        """
        seconds = self._options.seconds
        for _ in range(2):
            child = self._start()
            reading.begun = self.begun = begun = monotonic()
            try:
                answer, is_full = _exchange(child, reading.content)
                if not isinstance(answer, get_args(Answer)):
                    raise TypeError("a page is needed")
            except _BROKEN:
                if self._closing.is_set():
                    raise _crawl_over() from None
                if monotonic() - begun >= seconds:
                    self._replace(f"was ended because a page took more than {seconds:g} s")
                    raise ExtractionError("too_slow", f"reading it takes more than {seconds:g} s") from None
                self._replace("died")
                continue
            finally:
                self.spent += monotonic() - begun
                self.begun = 0.0
            if is_full:
                self._replace(f"was ended because it used more than {MAX_KEPT // 10**6} MB")
            return cast(Answer, answer)
        raise ExtractionError("too_large", "the worker that read it died twice")

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        if (child := self.child) is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):  # bytes that the process has not read
                cast(BinaryIO, pipe).close()
        child.wait()
        self.child = None

    def _start(self) -> subprocess.Popen[bytes]:
        """The process, started if there is none."""
        if self._closing.is_set():
            raise _crawl_over()
        if self.child is not None:
            if self.child.poll() is None:
                return self.child
            self._replace("was killed by something else between two pages")
        for _ in range(_STARTS):  # the system may kill one for want of memory
            try:
                return self._start_once()
            except _BROKEN as error:  # noqa: PERF203 - three times at most
                self.end()
                if self._closing.is_set():
                    raise _crawl_over() from None
                why = str(error) or "it ended at once"
        raise NoWorker("too_slow", f"no worker could be started to read it: {why}")

    def _start_once(self) -> subprocess.Popen[bytes]:
        """Raises an error of ``_BROKEN``."""
        self.child = child = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable or "python", "-c", _PROGRAM, *map(str, sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal goes to all processes of a session
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
        )
        if self._closing.is_set():  # in the meantime: then nobody else kills this process
            child.kill()
        _exchange(child, self._options)
        return child

    def _replace(self, why: str) -> None:
        self._note_replaced(why)
        self.end()


def _exchange(child: subprocess.Popen[bytes], message: Any) -> Any:
    """Send a message, and wait for the answer. Raises an error of ``_BROKEN``."""
    send(cast(BinaryIO, child.stdin), message)
    return receive(cast(BinaryIO, child.stdout))


def _crawl_over() -> ExtractionError:
    return ExtractionError("too_slow", "the crawl is over")


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

    def take() -> tuple[InputRecord, Answer | None]:
        record, answer, _ = ahead.popleft()
        return record, answer.result() if answer is not None else None

    try:
        for record in records:
            content = content_of(record) if isinstance(record, Entry) else None
            if content is not None and first_pages > 0:
                first_pages -= 1
                content = None
            ahead.append((record, pool.submit(content), len(content.content)) if content else (record, None, 0))
            while len(ahead) >= _MOST_RECORDS or sum(size for *_, size in ahead) >= _MOST_BYTES:
                yield take()
    except Exception:
        while ahead:
            yield take()
        raise
    while ahead:
        yield take()


@cache
def _share_arenas() -> None:
    """Let all threads allocate memory in two arenas of glibc.

    By default each thread has its own. A page is allocated in one thread and freed in another, so these grow: by 70 MB
    over 5,000 pages of 130 kB.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def default_size(cgroup: Path = Path("/sys/fs/cgroup"), meminfo: Path = Path("/proc/meminfo")) -> int:
    """How many workers this machine and its container have room for.

    A single core gains nothing, and a frozen program has no interpreter to start.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no container, or one of another kind
        quota, period = (cgroup / "cpu.max").read_text("ascii").split()
        cores = min(cores, round(int(quota) / int(period)))
    if cores < 2 or getattr(sys, "frozen", False):
        return 0
    free = [_MOST_WORKERS * _WORKER_MEMORY]
    with suppress(OSError, ValueError, StopIteration):  # a system that does not tell
        lines = meminfo.read_text("ascii").splitlines()
        free.append(1024 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(OSError, ValueError):  # "max" is no number
        used = int((cgroup / "memory.current").read_text("ascii"))
        free.append(max(0, int((cgroup / "memory.max").read_text("ascii")) - used))
    return min(cores, min(free) // _WORKER_MEMORY)
