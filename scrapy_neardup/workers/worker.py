"""The main function of a worker: a process that reads one page after the other until its standard input ends.

It starts as ``python -c`` with the import paths as arguments, and imports nothing of the program that started it. A
question is the content of a page, an answer the page and whether the process has become too large.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, extract
from scrapy_neardup.page.limits import is_risky, is_too_large, limit_page
from scrapy_neardup.page.source import Answer, PageContent, RiskyPage
from scrapy_neardup.workers.messages import ReadingOptions, receive, send

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
        options: ReadingOptions = receive(questions)
        worker = _Worker(options)
        _limit_memory()
        size = _size().resident
        send(answers, None)
        while True:
            question = receive(questions)
            faulthandler.dump_traceback_later(options.seconds + _GRACE, exit=True, file=nowhere)
            answer = worker.answer(question)
            faulthandler.cancel_dump_traceback_later()
            is_full = worker.is_full or _size().resident - size > MAX_KEPT
            send(answers, (answer, is_full))
            del question, answer


class _Worker:
    """Reads pages as ``ReadingOptions`` say."""

    def __init__(self, options: ReadingOptions) -> None:
        self.is_full = False
        self._options = options
        self._extractor = _import(options.extractor) if options.extractor else None
        # Load what the first page needs, so that its time and memory do not count.
        extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)

    def answer(self, content: PageContent) -> Answer:
        """Read a page."""
        try:
            return self._read(content)
        except ExtractionError as error:
            if not isinstance(error.__cause__, MemoryError):
                return error
        except MemoryError:
            pass
        self.is_full = True  # it may have little memory left for the next page
        return ExtractionError("too_large", f"reading it takes more than {MAX_MEMORY // 10**6} MB")

    def _read(self, content: PageContent) -> Page | RiskyPage:
        html, max_html = content.html(), self._options.max_html
        if self._options.only_quick and not is_too_large(html, max_html) and is_risky(html):
            return RiskyPage(html)
        page = extract(html, content.url, max_html=max_html, extractor=self._extractor)
        return limit_page(page, self._options.max_text)


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
