"""A process that reads one page after the other until its standard input ends, and its messages.

It starts as ``python -c`` with the import paths as arguments, and imports nothing of the program that started it. A
question is the content of a page, an answer the page and whether the process has become too large.

A message is JSON, and the bytes of a page behind it. Nothing is pickled, because a process that read hostile HTML
answers: a message makes only objects of the classes in ``_KINDS``.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.model import Page
from scrapy_neardup.page.extraction import Answer, Extractor, HtmlReader, PageContent
from scrapy_neardup.page.limits import MAX_TEXT

#: Seconds that a page may take by default.
MAX_SECONDS = 1.5


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a worker reads pages; ``extractor`` is an import path, empty for our own reader.

    ``seconds``: how long a page may take. ``only_quick``: a page that may take long is not read, but the answer is
    None.
    """

    max_html: int
    max_text: int = MAX_TEXT
    extractor: str = ""
    seconds: float = MAX_SECONDS
    only_quick: bool = False

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the extractor."""
        return not self.extractor.startswith("__main__.")


#: The lengths of a message's JSON and of the bytes behind it.
_LENGTHS = struct.Struct(">QQ")
#: The classes of objects that may be sent.
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Page, PageContent, ExtractionError, ReadingOptions)}


def send(pipe: BinaryIO, value: Any) -> None:
    """Write a message. Raises OSError, and TypeError for a value that no message holds."""
    content = b""

    def encode(one: Any) -> dict[str, list[Any]]:
        nonlocal content
        name = type(one).__name__
        if isinstance(one, bytes) and not content:
            content = one
            return {name: []}
        if _KINDS.get(name) is not type(one):
            raise TypeError(f"{name} cannot be sent to another process")
        if isinstance(one, ExtractionError):
            return {name: [one.reason, str(one)]}
        return {name: [getattr(one, field.name) for field in fields(one)]}

    head = json.dumps(value, default=encode).encode()
    pipe.write(_LENGTHS.pack(len(head), len(content)) + head)
    pipe.write(content)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read a message. Raises EOFError if there is none or only a part of it, ValueError if it is malformed."""
    lengths = _LENGTHS.unpack(_read(pipe, _LENGTHS.size))
    head, content = (_read(pipe, length) for length in lengths)

    def decode(found: dict[str, Any]) -> Any:
        [(name, values)] = found.items()
        if name == "bytes":
            return content
        return _KINDS[name](*(tuple(one) if isinstance(one, list) else one for one in values))

    try:
        return json.loads(head, object_hook=decode)
    except (TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"a message is malformed: {error}") from None


def _read(pipe: BinaryIO, length: int) -> bytes:
    found = pipe.read(length)
    if len(found) < length:
        raise EOFError
    return found


#: Bytes that a worker may use after its start. A page that needs more is too large.
MAX_MEMORY = 180_000_000
#: Of these, bytes that it may keep between two questions. If it keeps more, another worker replaces it.
MAX_KEPT = 90_000_000
#: Seconds that a worker may take to start.
_START_SECONDS = 60.0
_SAMPLE = PageContent("http://a.example/", "<p>The ferry sails again&#x300; after seven long months.</p>" * 3)


def main() -> None:
    """Answer every question. A page that takes too long ends the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which closes the pipe
    questions = sys.stdin.buffer
    with (
        suppress(EOFError, BrokenPipeError),
        os.fdopen(os.dup(1), "wb") as answers,  # closed here, else Python complains about a broken pipe at exit
        Path(os.devnull).open("wb") as nowhere,
    ):
        os.dup2(2, 1)  # an extractor may print
        if hasattr(os, "register_at_fork"):  # a process that it forks would keep the pipe open when this one ends
            os.register_at_fork(after_in_child=answers.close)
        options: ReadingOptions = receive(questions)
        # The thread of faulthandler works without the interpreter and the parent.
        end_after = partial(faulthandler.dump_traceback_later, exit=True, file=nowhere)
        end_after(_START_SECONDS)
        module, _, name = options.extractor.rpartition(".")
        extractor: Extractor | None = getattr(import_module(module), name) if name else None
        reader = HtmlReader(options.max_html, options.max_text, extractor)
        HtmlReader(1_000).read(_SAMPLE)  # the loading of modules counts for no page
        faulthandler.cancel_dump_traceback_later()
        addresses, size = _size()
        _limit_memory(addresses + MAX_MEMORY)
        send(answers, None)
        while True:
            question = receive(questions)
            end_after(options.seconds)
            answer, is_full = _answer(reader, question, options.only_quick)
            faulthandler.cancel_dump_traceback_later()
            send(answers, (answer, is_full or _size()[1] - size > MAX_KEPT))
            del question, answer


def _answer(reader: HtmlReader, content: PageContent, only_quick: bool) -> tuple[Answer, bool]:
    """Read a page; also return whether there was too little memory, so the next page may lack it too."""
    with suppress(MemoryError):
        answer = reader.read(content, only_quick=only_quick)
        if not (isinstance(answer, ExtractionError) and isinstance(answer.__cause__, MemoryError)):
            return answer, False
    return ExtractionError("too_large", f"reading it takes more than {MAX_MEMORY // 10**6} MB"), True


def _size() -> tuple[int, int]:
    """The bytes of address space, which each thread reserves too, and of resident memory; zeros if not on Linux."""
    try:
        addresses, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
        page = os.sysconf("SC_PAGE_SIZE")
        return int(addresses) * page, int(resident) * page
    except (AttributeError, OSError, ValueError):
        return 0, 0


def _limit_memory(addresses: int) -> None:
    if addresses > MAX_MEMORY:  # the size is known
        with suppress(ImportError, OSError, ValueError):
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
