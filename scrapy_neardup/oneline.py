"""Make text from pages safe in one line of a log, an error or a terminal.

A URL or a title may hold line ends, terminal sequences or marks of direction. ``one_line`` escapes them as Python does.
Sentences with text of strangers call it; every logger (``line_logger``) and error (``errors``) of this package does it
once more.
"""

from __future__ import annotations

import logging
import shlex
import traceback
import unicodedata
from typing import Any

#: Longest URL, and longest log argument or error message, shown whole.
URL, MESSAGE = 400, 4000

# Control characters, invisible ones (also marks of direction), surrogates, line ends.
_ESCAPED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Soft hyphens, and joiners that Persian, Hindi and others need.
_KEPT = frozenset("\xad\u200c\u200d")


def one_line(text: str, limit: int = URL) -> str:
    r"""Escape characters that could disturb, and leave out the middle of longer texts.

    >>> one_line("http://a.example/\n\x1b[2J\u202e渡口"), one_line("http://a.example/" + "a" * 90 + ".html", 30)
    ('http://a.example/\\n\\x1b[2J\\u202e渡口', 'http://a.example/aa…aaaaa.html')
    """
    if len(text) > limit:
        end = limit // 3
        text = f"{text[: limit - end - 1]}…{text[-end:]}"
    return text if text.isprintable() else "".join(map(_escape, text))


def shell_word(url: str) -> str:
    """Quote a URL for a shell: a page may have put a command in it.

    >>> shell_word("http://a.example/1;reboot")
    "'http://a.example/1;reboot'"
    """
    return shlex.quote(one_line(url))


def line_logger(name: str) -> logging.Logger:
    """Return a module's logger that cleans arguments and indents tracebacks."""
    logger = logging.getLogger(name)
    logger.addFilter(_clean)
    return logger


def _escape(char: str) -> str:
    if char.isprintable() or char in _KEPT or unicodedata.category(char) not in _ESCAPED:
        return char
    return char.encode("unicode_escape").decode()


def _clean(record: logging.LogRecord) -> bool:
    """Clean a record before any handler sees it; the message itself stays, for grouping."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_argument, record.args))
    if record.exc_info and record.exc_info[0] and not record.exc_text:
        trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        record.exc_text = "\n".join(f"  {one_line(line, MESSAGE)}" for line in trace.split("\n"))
    return True


def _argument(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else one_line(str(value), MESSAGE)
