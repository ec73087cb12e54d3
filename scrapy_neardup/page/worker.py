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
from typing import Any, BinaryIO, NamedTuple

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.page.extraction import Extractor, extract, is_too_large
from scrapy_neardup.page.limits import limited
from scrapy_neardup.page.raw import Raw
from scrapy_neardup.page.risk import is_risky

#: Before every message its length.
LENGTH = struct.Struct(">Q")
#: Seconds beyond its time after which the process ends by itself, for whoever should end it may be gone.
_GRACE = 2.0
#: Bytes beyond those that it has when it begins to read: with more, a page is too large.
MEMORY = 180_000_000
#: Of these, how many it may keep between two pages: with more, it is to be replaced.
KEPT = 90_000_000


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


def sent_raw(to: BinaryIO, raw: Raw) -> None:
    """Write what a page is to be read from."""
    text = isinstance(raw.content, str)
    head = {"url": raw.url, "text": text, "type": raw.content_type, "named": raw.is_named}
    send(to, json.dumps(head).encode())
    send(to, raw.content.encode("utf-8", "surrogatepass") if isinstance(raw.content, str) else raw.content)


def received_raw(source: BinaryIO) -> Raw:
    """Read what a page is to be read from; raises EOFError if there is none."""
    head, content = json.loads(receive(source)), receive(source)
    html = content.decode("utf-8", "surrogatepass") if head["text"] else content
    return Raw(head["url"], html, head["type"], is_named=head["named"])


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
        begun = _size().held
        send(answers, b"ready")
        while True:
            raw = received_raw(pages)
            faulthandler.dump_traceback_later(given["seconds"] + _GRACE, exit=True, file=nowhere)
            answer = _read(raw, extractor, given)
            faulthandler.cancel_dump_traceback_later()
            html = answer.pop("html", None)
            answer["full"] = answer.get("full") or _size().held - begun > KEPT
            send(answers, json.dumps(answer).encode())
            if html is not None:
                send(answers, html.encode("utf-8", "surrogatepass"))
            del raw, answer, html


def _read(raw: Raw, extractor: Extractor | None, given: dict[str, Any]) -> dict[str, Any]:
    """What is answered: the page, or why there is none, or the HTML of one that may take long and was not asked for."""
    try:
        html = raw.html()
        if given["only_quick"] and not is_too_large(html, given["max_html"]) and is_risky(html):
            return {"html": html}
        page = extract(html, raw.url, max_html=given["max_html"], extractor=extractor)
        return {"page": asdict(limited(page, given["max_text"]))}
    except ExtractionError as error:
        if not isinstance(error.__cause__, MemoryError):
            return {"reason": error.reason, "message": str(error)}
    except MemoryError:
        pass
    # It may have asked for so much that little is left for the next page.
    return {"reason": "too_large", "message": f"it takes more than {MEMORY // 10**6} MB to be read", "full": True}


def _extractor(path: str) -> Extractor | None:
    if not path:
        return None
    module, _, name = path.rpartition(".")
    found: Extractor = getattr(import_module(module), name)
    return found


def _warm_up() -> None:
    """Load what the first page would: it is not to be counted for its time and memory."""
    extract("<p>The ferry sails again&#x300; after seven long months.</p>" * 3, "http://a.example/", max_html=1_000)


class _Size(NamedTuple):
    """Bytes of addresses that the process has, and of memory that it holds; every thread has many of the former."""

    addresses: int
    held: int


def _size() -> _Size:
    """Where the system tells it: not on Windows, and macOS has another way; there it is nothing."""
    try:
        addresses, held = Path("/proc/self/statm").read_text("ascii").split()[:2]
        page = os.sysconf("SC_PAGE_SIZE")
        return _Size(int(addresses) * page, int(held) * page)
    except (AttributeError, OSError, ValueError):
        return _Size(0, 0)


def _limit_memory() -> None:
    """Where the system can."""
    if not (size := _size().addresses):
        return
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
