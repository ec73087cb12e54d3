"""The other end of ``child``: a process that answers one thing after the other, until its standard input ends.

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
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

#: Before every message its length.
LENGTH = struct.Struct(">Q")
#: Seconds beyond its time after which the process ends by itself, for whoever should end it may be gone.
_GRACE = 2.0
#: Bytes beyond those that it has when it begins: with more, what it is asked for is too large.
MEMORY = 180_000_000
#: Of these, how many it may keep between two answers: with more, it is to be replaced.
KEPT = 90_000_000


class Message(NamedTuple):
    """What is asked or answered: plain data, and bytes of which they tell."""

    head: dict[str, Any]
    content: bytes = b""


def send(to: BinaryIO, message: bytes) -> None:
    """Write bytes."""
    to.write(LENGTH.pack(len(message)))
    to.write(message)
    to.flush()


def receive(source: BinaryIO) -> bytes:
    """Read bytes; raises EOFError if there are none, or only a part of them."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    message = source.read(LENGTH.unpack(head)[0])
    if len(message) < LENGTH.unpack(head)[0]:
        raise EOFError
    return message


def send_message(to: BinaryIO, message: Message) -> None:
    """Write a message."""
    send(to, json.dumps(message.head).encode())
    send(to, message.content)


def receive_message(source: BinaryIO) -> Message:
    """Read a message; raises EOFError if there is none, ValueError if it is none of ours."""
    return Message(json.loads(receive(source)), receive(source))


def answer_all(begin: Callable[[dict[str, Any]], Callable[[Message], Message]]) -> None:
    """Answer every message. ``begin`` is given the terms, and gives what answers, with all loaded that it takes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started us, and closes the pipe
    asked = sys.stdin.buffer
    with (
        contextlib.suppress(EOFError, BrokenPipeError),
        os.fdopen(os.dup(1), "wb") as answers,  # closed here: Python would tell of what cannot be written any more
        Path(os.devnull).open("wb") as nowhere,
    ):
        os.dup2(2, 1)  # what an extractor prints is no answer
        terms: dict[str, Any] = json.loads(receive(asked))
        answer = begin(terms)
        _limit_memory()
        begun = _size().held
        send(answers, b"ready")
        while True:
            message = receive_message(asked)
            faulthandler.dump_traceback_later(terms["seconds"] + _GRACE, exit=True, file=nowhere)
            said = answer(message)
            faulthandler.cancel_dump_traceback_later()
            said.head["full"] = said.head.get("full") or _size().held - begun > KEPT
            send_message(answers, said)
            del message, said


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
