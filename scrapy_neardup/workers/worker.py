"""The main function of a worker: a process that answers one question after the other until its standard input ends.

It starts as ``python -c`` with the import paths as arguments, and imports nothing of the program that started it. A
question is a task with the updates of boilerplate, an answer the result and whether the process has become too large.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, extract
from scrapy_neardup.page.limits import is_risky, is_too_large, limit_page
from scrapy_neardup.page.source import PageContent, RiskyPage
from scrapy_neardup.workers.speculation import Boilerplate, BoilerplateUpdate, PreparedFingerprint, apply_updates
from scrapy_neardup.workers.tasks import (
    FingerprintOptions,
    FingerprintTask,
    ReadingOptions,
    ReadPage,
    ReadTask,
    WorkerOptions,
    receive,
    send,
)

#: Seconds beyond its time after which a worker ends itself: the process that should kill it may be gone.
_GRACE = 2.0
#: Bytes that a worker may use beyond those of its start. A page that needs more is too large.
MAX_MEMORY = 180_000_000
#: Bytes of these that it may keep between two questions. Then another worker replaces it.
MAX_KEPT = 90_000_000


def main() -> None:
    """Answer every question."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    questions = sys.stdin.buffer
    with (
        contextlib.suppress(EOFError, BrokenPipeError),
        os.fdopen(os.dup(1), "wb") as answers,  # closed here, else Python complains about a broken pipe at exit
        Path(os.devnull).open("wb") as nowhere,
    ):
        os.dup2(2, 1)  # an extractor may print
        options: WorkerOptions = receive(questions)
        worker = _Worker(options)
        _limit_memory()
        size = _size().resident
        send(answers, None)
        while True:
            question = receive(questions)
            faulthandler.dump_traceback_later(options.seconds + _GRACE, exit=True, file=nowhere)
            answer = worker.answer(*question)
            faulthandler.cancel_dump_traceback_later()
            is_full = worker.is_full or _size().resident - size > MAX_KEPT
            send(answers, (answer, is_full))
            del question, answer


class _Worker:
    """Reads pages and makes fingerprints, under the boilerplate that it assumes."""

    def __init__(self, options: WorkerOptions) -> None:
        # Load what the first page needs, so that its time and memory do not count.
        self.is_full = False
        self._boilerplate = Boilerplate()
        self._reader = _Reader(options.reading) if options.reading else None
        self._method = _make_method(options.fingerprints) if options.fingerprints else None
        self._fingerprint(Page("", "渡口重新开航", text="渡口今天早上重新开航，第一班船是空的。"))

    def answer(self, task: ReadTask | FingerprintTask, updates: tuple[bool, list[BoilerplateUpdate]]) -> Any:
        """The result of a task, after the updates of boilerplate."""
        self._boilerplate = apply_updates(self._boilerplate, updates)
        if isinstance(task, FingerprintTask):
            return [self._fingerprint(page) for page in task.pages]
        try:
            return self._read(task.raw)
        except ExtractionError as error:
            if not isinstance(error.__cause__, MemoryError):
                return error
        except MemoryError:
            pass
        self.is_full = True  # it may have little memory left for the next page
        return ExtractionError("too_large", f"reading it takes more than {MAX_MEMORY // 10**6} MB")

    def _read(self, raw: PageContent) -> ReadPage | RiskyPage:
        assert self._reader is not None
        page = self._reader.read(raw)
        if isinstance(page, RiskyPage) or self._method is None:
            return page if isinstance(page, RiskyPage) else ReadPage(page)
        return ReadPage(page, self._fingerprint(raw.metadata.apply_to(page, raw.url, self._reader.max_text)))

    def _fingerprint(self, page: Page) -> PreparedFingerprint | None:
        return PreparedFingerprint.make(self._method, page, self._boilerplate) if self._method is not None else None


class _Reader:
    """Reads pages, as ``ReadingOptions`` say."""

    def __init__(self, options: ReadingOptions) -> None:
        self.max_text = options.max_text
        self._options = options
        self._extractor = _import(options.extractor) if options.extractor else None
        extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)

    def read(self, raw: PageContent) -> Page | RiskyPage:
        """The page, or the HTML of one that may take long. Raises ExtractionError and MemoryError."""
        html, max_html = raw.html(), self._options.max_html
        if self._options.only_quick and not is_too_large(html, max_html) and is_risky(html):
            return RiskyPage(html)
        return limit_page(extract(html, raw.url, max_html=max_html, extractor=self._extractor), self.max_text)


def _make_method(options: FingerprintOptions) -> Any:
    return make_method(options.method, options.parameters).with_hashes(options.hashes)


def _import(path: str) -> Extractor:
    module, _, name = path.rpartition(".")
    extractor: Extractor = getattr(import_module(module), name)
    return extractor


class _Size(NamedTuple):
    """Bytes of addresses, of which each thread has many, and of resident memory."""

    addresses: int
    resident: int


def _size() -> _Size:
    """The size of this process on Linux; zeros elsewhere."""
    try:
        addresses, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
        page = os.sysconf("SC_PAGE_SIZE")
        return _Size(int(addresses) * page, int(resident) * page)
    except (AttributeError, OSError, ValueError):
        return _Size(0, 0)


def _limit_memory() -> None:
    if not (size := _size().addresses):
        return
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size + MAX_MEMORY, size + MAX_MEMORY))
