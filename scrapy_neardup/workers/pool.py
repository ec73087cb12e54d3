"""Worker processes that read pages and can be killed, each with a thread that waits for its answers.

No limit on its input bounds the time of a parser on a hostile page, and nothing within a process can end it. So a
worker that takes too long, grows too large or dies is replaced, and only its page is to blame.

The workers are plain child processes. ``multiprocessing``, ``concurrent.futures`` and pebble import the main module of
the program again in each child, so a script without ``if __name__ == "__main__"`` would start a crawl in each. They
also unpickle what a child sends. Fork is no way either: the parent has a reactor, threads and an open database.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from math import inf
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, BinaryIO, cast, get_args

from scrapy_neardup.errors import ExtractionError, NoWorker
from scrapy_neardup.model import Page
from scrapy_neardup.page.source import Answer, PageContent
from scrapy_neardup.workers.messages import ReadingOptions, receive, send
from scrapy_neardup.workers.worker import MAX_KEPT

#: The paths are set before any import: ``-c`` puts the working directory before them.
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from scrapy_neardup.workers.worker import main; main()"
#: Seconds that a worker may take to start.
_START_SECONDS = 60.0
#: The parameter M_ARENA_MAX of mallopt in malloc.h.
_ARENA_MAX = -8
#: More workers would wait for the process that judges: judging takes a third of the time of reading.
_MOST_WORKERS = 4
#: Bytes of free memory for each worker: it uses 100 MB, and a page may take 180 MB more.
_WORKER_MEMORY = 400_000_000
_CGROUP = Path("/sys/fs/cgroup")
_MEMORY = Path("/proc/meminfo")
#: Errors of a pipe whose other end is dead, or talks nonsense.
_BROKEN = OSError, EOFError, ValueError, MemoryError, OverflowError


class WorkerPool:
    """Reads pages in at most ``size`` workers; another worker starts when all others are busy.

    The threads parse nothing, because lxml crashes when two threads parse. They are daemons, so an interrupted crawl
    does not wait for the queue.
    """

    def __init__(self, options: ReadingOptions, size: int, name: str = "neardup-worker") -> None:
        self.size = size
        self._options = options
        self._name = name
        self._workers: list[_Worker] = []
        self._threads: list[Thread] = []
        self._queue: SimpleQueue[_QueuedPage | None] = SimpleQueue()
        self._lock = Lock()
        self._unfinished = 0
        self._closed = Event()

    def submit(self, content: PageContent, on_start: Callable[[], None] = lambda: None) -> Future[Answer]:
        """Read a page; the result is an ExtractionError if that fails. A page that waits can be cancelled.

        ``on_start`` is called in a thread when a worker begins with the page, and again if another worker retries it.
        """
        future: Future[Answer] = Future()
        if self._closed.is_set():
            future.set_result(_crawl_over())
            return future
        with self._lock:
            error = self._add_worker() if len(self._workers) < min(self.size, self._unfinished + 1) else ""
            if error and not self._workers:
                future.set_result(NoWorker("too_slow", error))
                return future
            self._unfinished += 1
        self._queue.put((content, on_start, future))
        return future

    def read(self, content: PageContent) -> Page:
        """Read a page, and wait for it. Raises ExtractionError."""
        answer = self.submit(content).result()
        if isinstance(answer, ExtractionError):
            raise answer
        assert isinstance(answer, Page)
        return answer

    @property
    def process_ids(self) -> list[int]:
        """The process ids of all workers."""
        return [worker.process_id for worker in self._workers if worker.process_id]

    @property
    def replaced(self) -> int:
        """How many workers ended before their time."""
        return sum(worker.replaced for worker in self._workers)

    @property
    def why_replaced(self) -> str:
        """Why one of them ended; empty if none did."""
        return next((worker.why_replaced for worker in self._workers if worker.why_replaced), "")

    def close(self) -> None:
        """Kill all workers; unfinished pages fail."""
        self._closed.set()
        for worker in self._workers:
            worker.kill()
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _add_worker(self) -> str:
        """Add a worker; returns the reason if the system has no more threads."""
        _share_arenas()
        worker = _Worker(self._options, self._closed)
        try:
            if not self._threads:
                self._start_thread(self._kill_late_workers)
            self._start_thread(self._serve, worker)
        except RuntimeError as error:
            return f"the thread that waits for a worker cannot be started: {error}"
        self._workers.append(worker)
        return ""

    def _start_thread(self, target: Callable[..., None], *arguments: object) -> None:
        thread = Thread(target=target, args=arguments, name=self._name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _serve(self, worker: _Worker) -> None:
        while (queued := self._queue.get()) is not None:
            self._run(worker, *queued)
            del queued  # a page may be large
        worker.end()

    def _run(self, worker: _Worker, content: PageContent, on_start: Callable[[], None], future: Future[Answer]) -> None:
        answer: Answer
        if is_wanted := future.set_running_or_notify_cancel():
            try:
                answer = worker.read(content, on_start)
            except ExtractionError as error:
                answer = error
            except Exception as error:  # nobody may wait forever because of a bug
                answer = ExtractionError("method_failed", f"{type(error).__name__}: {error}")
        with self._lock:
            self._unfinished -= 1
        if is_wanted:
            future.set_result(answer)

    def _kill_late_workers(self) -> None:
        """Sleep until the next deadline. New pages get ``pause`` seconds or more, so their deadlines come later."""
        pause = wait = min(self._options.seconds, _START_SECONDS)
        while not self._closed.wait(wait):
            now = monotonic()
            wait = min([pause, *(worker.kill_if_late(now) - now for worker in self._workers)])


_QueuedPage = tuple[PageContent, Callable[[], None], "Future[Answer]"]


class _Worker:
    """Reads one page at a time in a child process, and replaces a process that ends before its time.

    One thread sends the pages. Others may only kill.
    """

    def __init__(self, options: ReadingOptions, closed: Event) -> None:
        self.replaced = 0
        self.why_replaced = ""
        self._options = options
        self._closed = closed
        self._child: subprocess.Popen[bytes] | None = None
        self._lock = Lock()
        self._deadline = inf
        self._is_late = False

    def read(self, content: PageContent, on_start: Callable[[], None]) -> Answer:
        """Read a page. Raises ExtractionError.

        A page whose process dies gets a second process: somebody else may have killed the first one, or the system, for
        want of memory.
        """
        for _ in range(2):
            child = self._start()
            on_start()
            if (answer := self._ask(child, content)) is not None:
                return answer
        raise ExtractionError("too_large", "the worker that read it died twice")

    @property
    def process_id(self) -> int:
        """The id of the process; 0 if there is none."""
        return child.pid if (child := self._child) is not None else 0

    def kill(self) -> None:
        """Kill the process."""
        if (child := self._child) is not None:
            child.kill()

    def kill_if_late(self, now: float) -> float:
        """Kill the process if its deadline has passed; returns the next deadline."""
        with self._lock:
            if self._deadline <= now:
                self._is_late, self._deadline = True, inf
                self.kill()
            return self._deadline

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        if (child := self._child) is None:
            return
        child.kill()
        for pipe in _pipes(child):
            with suppress(OSError):  # bytes that the process has not read
                pipe.close()
        child.wait()
        self._child = None

    def _start(self) -> subprocess.Popen[bytes]:
        """The process, started if there is none."""
        if self._closed.is_set():
            raise _crawl_over()
        if self._child is not None:
            if self._child.poll() is None:
                return self._child
            self._replace("was killed by something else between two pages")
        self._is_late = False
        try:
            self._child = child = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable or "python", "-c", _PROGRAM, *map(str, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in a terminal goes to all processes of a session
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # the same on Windows
            )
            if self._closed.is_set():  # in the meantime: then nobody else kills this process
                child.kill()
            self._exchange(child, self._options, _START_SECONDS)
        except _BROKEN as error:
            self.end()
            if self._closed.is_set():
                raise _crawl_over() from None
            why = str(error) or "it ended at once"
            raise NoWorker("too_slow", f"no worker could be started to read it: {why}") from None
        return child

    def _ask(self, child: subprocess.Popen[bytes], content: PageContent) -> Answer | None:
        """Return the answer; None if the process died. Raises ExtractionError."""
        seconds, answer, is_full = self._options.seconds, None, False
        with suppress(*_BROKEN):
            found = self._exchange(child, content, seconds)
            if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], get_args(Answer)):
                answer, is_full = found[0], bool(found[1])
        if self._is_late:
            self._replace(f"was ended because a page took more than {seconds:g} s")
            if answer is None:
                raise ExtractionError("too_slow", f"reading it takes more than {seconds:g} s")
        elif answer is None:
            if self._closed.is_set():
                raise _crawl_over()
            self._replace("died")
        elif is_full:
            self._replace(f"was ended because it used more than {MAX_KEPT // 10**6} MB")
        return answer

    def _exchange(self, child: subprocess.Popen[bytes], message: Any, seconds: float) -> Any:
        """Send a message, and wait for the answer. Raises an error of ``_BROKEN``."""
        stdin, stdout = _pipes(child)
        self._set_deadline(seconds)
        try:
            send(stdin, message)
            return receive(stdout)
        finally:
            self._set_deadline(inf)

    def _set_deadline(self, seconds: float) -> None:
        with self._lock:
            self._deadline = monotonic() + seconds

    def _replace(self, why: str) -> None:
        self.replaced, self.why_replaced = self.replaced + 1, why
        self.end()


def _pipes(child: subprocess.Popen[bytes]) -> tuple[BinaryIO, BinaryIO]:
    return cast(BinaryIO, child.stdin), cast(BinaryIO, child.stdout)


def _crawl_over() -> ExtractionError:
    return ExtractionError("too_slow", "the crawl is over")


@cache
def _share_arenas() -> None:
    """Let all threads allocate memory in two arenas of glibc.

    By default each thread has its own. A page is allocated in one thread and freed in another, so these grow: by 70 MB
    over 5,000 pages of 130 kB.
    """
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


def default_size() -> int:
    """How many workers this machine has room for; 0 in a frozen program, which has no interpreter to start."""
    return 0 if getattr(sys, "frozen", False) else size_for(available_cores(), free_memory())


def size_for(cores: int, memory: int | None) -> int:
    """How many workers so many cores and free bytes (None: unknown) have room for; a single core gains nothing.

    >>> [size_for(cores, None) for cores in (1, 2, 4, 64)], size_for(4, 900_000_000)
    ([0, 2, 4, 4], 2)
    """
    if cores < 2:
        return 0
    return min(cores, _MOST_WORKERS, _MOST_WORKERS if memory is None else memory // _WORKER_MEMORY)


def available_cores(cgroup: Path = _CGROUP) -> int:
    """The cores that this process may use, by its affinity and the share of its container; at least one."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows
        cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no container, or one of another kind
        quota, period = (cgroup / "cpu.max").read_text("ascii").split()
        cores = min(cores, round(int(quota) / int(period)))
    return max(1, cores)


def free_memory(cgroup: Path = _CGROUP, memory: Path = _MEMORY) -> int | None:
    """The free bytes of the machine and its container; None where the system does not tell."""
    free = []
    with suppress(OSError, ValueError, StopIteration):
        lines = memory.read_text("ascii").splitlines()
        free.append(1024 * int(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))))
    with suppress(OSError, ValueError):  # "max" is no number
        used = int((cgroup / "memory.current").read_text("ascii"))
        free.append(max(0, int((cgroup / "memory.max").read_text("ascii")) - used))
    return min(free, default=None)
