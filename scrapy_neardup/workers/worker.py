"""The main function of a worker: a process that answers one question after the other until its standard input ends.

It starts as ``python -c`` with the import paths as arguments, and imports nothing of the program that started it.
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
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Extractor, extract
from scrapy_neardup.page.limits import is_risky, is_too_large, limit_page
from scrapy_neardup.workers.speculation import Boilerplate, apply_updates
from scrapy_neardup.workers.tasks import (
    EncodedFingerprint,
    Message,
    decode_pages,
    decode_raw,
    encode_fingerprint,
    encode_fingerprints,
    encode_read_page,
    encode_risky,
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
        options = receive(questions).head
        reader = _Reader(options["reading"]) if options["reading"] else None
        maker = _FingerprintMaker(options["fingerprints"]) if options["fingerprints"] else None
        _limit_memory()
        size = _size().resident
        send(answers, Message({}))
        while True:
            question = receive(questions)
            faulthandler.dump_traceback_later(options["seconds"] + _GRACE, exit=True, file=nowhere)
            answer = _answer(question, reader, maker)
            faulthandler.cancel_dump_traceback_later()
            answer.head["is_full"] = answer.head.get("is_full") or _size().resident - size > MAX_KEPT
            send(answers, answer)
            del question, answer


def _answer(question: Message, reader: _Reader | None, maker: _FingerprintMaker | None) -> Message:
    if maker is not None:
        maker.boilerplate = apply_updates(question.head, maker.boilerplate)
        if "pages" in question.head:
            return encode_fingerprints([maker.make(page) for page in decode_pages(question)])
    assert reader is not None
    return reader.read(question, maker)


class _Reader:
    """Reads pages, as ``ReadingOptions`` say."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._extractor = _import(options["extractor"]) if options["extractor"] else None
        # Load what the first page needs, so that its time and memory do not count.
        extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)

    def read(self, question: Message, maker: _FingerprintMaker | None) -> Message:
        """The page with its fingerprint, the HTML of a page that may take long, or why there is no page."""
        try:
            raw = decode_raw(question)
            html, max_html, max_text = raw.html(), self._options["max_html"], self._options["max_text"]
            if self._options["only_quick"] and not is_too_large(html, max_html) and is_risky(html):
                return encode_risky(html)
            page = limit_page(extract(html, raw.url, max_html=max_html, extractor=self._extractor), max_text)
        except ExtractionError as error:
            if isinstance(error.__cause__, MemoryError):
                return _too_large()
            return Message({"reason": error.reason, "message": str(error)})
        except MemoryError:
            return _too_large()
        return encode_read_page(
            page, maker.make(raw.metadata.apply_to(page, raw.url, max_text)) if maker else (None, b"")
        )


class _FingerprintMaker:
    """Makes fingerprints, as ``FingerprintOptions`` say, under the boilerplate that it assumes."""

    def __init__(self, options: dict[str, Any]) -> None:
        hashes = Keyed(bytes.fromhex(options["secret"]))
        self._method: Method = make_method(options["method"], options["parameters"]).with_hashes(hashes)
        self.boilerplate = Boilerplate()
        # Load what the first page needs, so that its time and memory do not count.
        self.make(Page("", "渡口重新开航", text="渡口今天早上重新开航，第一班船是空的。"))

    def make(self, page: Page) -> EncodedFingerprint:
        """The fingerprint of a page; without one, the judge tries it with the state, and reports the error."""
        counts = self.boilerplate.on_site(page.site)
        try:
            made = self._method.for_state(page, counts)
            title = "" if made.title is None else self._method.pack_title(made.title)
            return encode_fingerprint(made, title, counts.assumptions)
        except Exception:
            return None, b""


def _import(path: str) -> Extractor:
    module, _, name = path.rpartition(".")
    extractor: Extractor = getattr(import_module(module), name)
    return extractor


def _too_large() -> Message:
    """Answer that a page needs too much memory; this worker may have little left for the next page."""
    message = f"reading it takes more than {MAX_MEMORY // 10**6} MB"
    return Message({"reason": "too_large", "message": message, "is_full": True})


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
