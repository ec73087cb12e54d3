"""The other end of ``apart``: a process that reads one page after the other, until its standard input ends.

It is started as ``python -c``, with the paths to import from as arguments, and imports nothing of the program that
started it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import struct
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.extraction import Extractor, extract
from scrapy_neardup.page.limits import limited

#: Before every message its length.
LENGTH = struct.Struct(">Q")
#: Seconds beyond its time after which the process ends by itself, for whoever should end it may be gone.
_GRACE = 2.0
#: Bytes beyond those that it has when it begins to read: with more, a page is too large.
MEMORY = 180_000_000


def send(to: BinaryIO, message: bytes) -> None:
    """Write a message."""
    to.write(LENGTH.pack(len(message)))
    to.write(message)
    to.flush()


def receive(source: BinaryIO) -> bytes:
    """Read a message; raises EOFError if there is none, or only a part of one."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    message = source.read(LENGTH.unpack(head)[0])
    if len(message) < LENGTH.unpack(head)[0]:
        raise EOFError
    return message


def main() -> None:
    """Answer every page with what was read of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us, and closes the pipe
    pages, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what an extractor prints is no answer
    with contextlib.suppress(EOFError, BrokenPipeError), Path(os.devnull).open("wb") as nowhere:
        given: dict[str, Any] = json.loads(receive(pages))
        extractor = _extractor(given["extractor"])
        _warm_up()
        _limit_memory()
        send(answers, b"ready")
        while True:
            url, html = receive(pages).decode(), receive(pages).decode("utf-8", "surrogatepass")
            faulthandler.dump_traceback_later(given["seconds"] + _GRACE, exit=True, file=nowhere)
            answer = _read(html, url, extractor, given)
            faulthandler.cancel_dump_traceback_later()
            send(answers, json.dumps(answer).encode())


def _read(html: str, url: str, extractor: Extractor | None, given: dict[str, Any]) -> dict[str, Any]:
    try:
        page = extract(html, url, max_html=given["max_html"], extractor=extractor)
        return {"page": asdict(limited(page, given["max_text"]))}
    except ExtractionError as error:
        if not isinstance(error.__cause__, MemoryError):
            return {"reason": error.reason, "message": str(error)}
    except MemoryError:
        pass
    return {"reason": "too_large", "message": f"it takes more than {MEMORY // 10**6} MB to be read"}


def _extractor(path: str) -> Extractor | None:
    if not path:
        return None
    module, _, name = path.rpartition(".")
    found: Extractor = getattr(import_module(module), name)
    return found


def _warm_up() -> None:
    """Load what the first page would: it is not to be counted for its time and memory."""
    extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)


def _limit_memory() -> None:
    """Where the system can."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, OSError, ValueError):  # not on Windows, and macOS has another way to tell its size
        return
