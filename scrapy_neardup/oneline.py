"""What comes from pages, as it may stand in a line of a log, in the message of an error, or on a terminal.

A URL or a title may hold anything: the end of a line and a second line that never was logged, sequences that clear a
screen, marks that turn the direction of what follows them. ``one_line`` shows such characters as Python would write
them. Whoever makes a sentence of what strangers wrote calls it; every logger of this package (``line_logger``) and
every error (``errors``) does so once more for what was forgotten.
"""

from __future__ import annotations

import logging
import shlex
import traceback
import unicodedata
from typing import Any

#: Longest URL, and longest argument of a line or message of an error, that is shown whole.
URL, MESSAGE = 400, 4000

# Control characters, what shows nothing (marks of direction among it), halves of characters, ends of lines.
_ESCAPED = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
# Soft hyphens, and the joiners that Persian, Hindi and the like cannot do without.
_KEPT = frozenset("\xad\u200c\u200d")


def one_line(text: str, limit: int = URL) -> str:
    r"""The text with escapes for what could disturb; of more than ``limit`` characters the middle is left out.

    >>> one_line("http://a.example/\n\x1b[2J\u202e渡口"), one_line("http://a.example/" + "a" * 90 + ".html", 30)
    ('http://a.example/\\n\\x1b[2J\\u202e渡口', 'http://a.example/aa…aaaaa.html')
    """
    if len(text) > limit:
        end = limit // 3
        text = f"{text[: limit - end - 1]}…{text[-end:]}"
    return text if text.isprintable() else "".join(map(_escaped, text))


def shell_word(url: str) -> str:
    """A URL as it can be copied into a shell from a line that tells what to type: a page may have put a command in it.

    >>> shell_word("http://a.example/1;reboot")
    "'http://a.example/1;reboot'"
    """
    return shlex.quote(one_line(url))


def line_logger(name: str) -> logging.Logger:
    """The logger of a module, whose lines are lines: what is put into a message is cleaned, tracebacks are indented."""
    logger = logging.getLogger(name)
    logger.addFilter(_clean)
    return logger


def _escaped(char: str) -> str:
    if char.isprintable() or char in _KEPT or unicodedata.category(char) not in _ESCAPED:
        return char
    return char.encode("unicode_escape").decode()


def _clean(record: logging.LogRecord) -> bool:
    """Clean what a record tells, before any handler sees it; the message itself is ours, and stays for grouping."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_argument, record.args))
    if record.exc_info and record.exc_info[0] and not record.exc_text:
        told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        record.exc_text = "\n".join(f"  {one_line(line, MESSAGE)}" for line in told.split("\n"))
    return True


def _argument(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else one_line(str(value), MESSAGE)
