"""Make strings of strangers safe to show: in a log, an error, a terminal, JSON or a report.

A URL or a title may hold line ends, terminal sequences or marks that change the direction of text. ``one_line`` escapes
them as Python does, for messages. ``clean_text`` and ``clean_line`` replace them, for texts that people read. Every
logger (``line_logger``) and error (``errors``) of this package cleans its message once more.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
import traceback
import unicodedata
from typing import Any

#: Longest URL, and longest log argument or error message, shown whole.
URL, MESSAGE = 400, 4000
#: The longest title, sentence, URL and site in a report.
TITLE, SENTENCE, REPORT_URL, SITE = 160, 300, 1000, 60

#: Controls, invisible characters (also marks of direction), surrogates and line ends.
_DISTURBING = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
#: Soft hyphens, and joiners that Persian, Hindi and others need.
_KEPT = frozenset("\xad\u200c\u200d")
#: Marks that change the direction of text, and non-characters: a reader must see that they were there.
_MISLEADING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufffe\uffff")
#: For speed: the characters that might disturb.
_SUSPECT = re.compile(
    "[^ -~\xa0-\xac\xae-\u05ff\u0606-\u061b\u061d-\u06dc\u06de-\u070e\u0710-\u088f\u08e3-\u180d\u180f-\u200a"
    "\u2010-\u2027\u202f-\u205f\u2070-\ud7ff\ue000-\ufefe\uff00-\ufff8]"
)
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_SPACE = re.compile(r"\s+")


def is_disturbing(char: str) -> bool:
    """Whether a character could disturb a line."""
    return not char.isprintable() and char not in _KEPT and unicodedata.category(char) in _DISTURBING


def one_line(text: str, limit: int = URL) -> str:
    r"""Escape characters that could disturb, and leave out the middle of longer texts.

    >>> one_line("http://a.example/\n\x1b[2J\u202e渡口"), one_line("http://a.example/" + "a" * 90 + ".html", 30)
    ('http://a.example/\\n\\x1b[2J\\u202e渡口', 'http://a.example/aa…aaaaa.html')
    """
    if len(text) > limit:
        end = limit // 3
        text = f"{text[: limit - end - 1]}…{text[-end:]}"
    return text if text.isprintable() else _SUSPECT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode() if is_disturbing(found[0]) else found[0]


def shell_word(url: str) -> str:
    """Quote a URL for a shell: a page may have put a command in it.

    >>> shell_word("http://a.example/1;reboot")
    "'http://a.example/1;reboot'"
    """
    return shlex.quote(one_line(url))


def escape_json(text: str) -> str:
    r"""Escape in JSON what a terminal should not get.

    >>> escape_json('{"title": "渡口\u202e\x9b2J"}')
    '{"title": "渡口\\u202e\\u009b2J"}'
    """
    return _SUSPECT.sub(_escape_in_json, text)


def _escape_in_json(found: re.Match[str]) -> str:
    char = found[0]
    return json.dumps(char)[1:-1] if char in _KEPT or (char != "\n" and is_disturbing(char)) else char


def clean_text(text: str) -> str:
    r"""Return a text of several lines: other line ends are ``\n``, invisible characters gone, others replaced.

    >>> clean_text("The boat\x1b\u202e sank.\r\n\tAll\u200b swam.")
    'The boat�� sank.\n All swam.'
    """
    return _SUSPECT.sub(_replace, _LINE_END.sub("\n", text))


def _replace(found: re.Match[str]) -> str:
    char = found[0]
    if char in "\n\t":
        return "\n" if char == "\n" else " "
    if char in _MISLEADING:
        return "\N{REPLACEMENT CHARACTER}"
    if not is_disturbing(char):
        return char
    return "" if unicodedata.category(char) == "Cf" else "\N{REPLACEMENT CHARACTER}"


def clean_line(text: str, limit: int) -> str:
    r"""Return a single line of at most ``limit`` characters and an ellipsis.

    >>> clean_line("  The boat\n sank", 8)
    'The boat…'
    """
    line = _SPACE.sub(" ", clean_text(text[: 4 * limit])).strip()
    return line if len(line) <= limit and len(text) <= 4 * limit else line[:limit].rstrip() + "…"


def link(url: str) -> str:
    """Return a cleaned URL that may be a link, else nothing: another scheme can run code, a cut URL leads elsewhere.

    >>> link("https://a.example/ferry"), link("javascript:alert(1)")
    ('https://a.example/ferry', '')
    """
    is_whole = not url.endswith("…") and "\N{REPLACEMENT CHARACTER}" not in url and not _SPACE.search(url)
    return url if is_whole and url.lower().startswith(("http://", "https://")) else ""


def line_logger(name: str) -> logging.Logger:
    """Return a module's logger that cleans arguments and indents tracebacks."""
    logger = logging.getLogger(name)
    logger.addFilter(_clean_record)
    return logger


def _clean_record(record: logging.LogRecord) -> bool:
    """Clean a record before any handler sees it; the message itself stays, for grouping."""
    if isinstance(record.args, tuple):
        record.args = tuple(map(_clean_argument, record.args))
    if record.exc_info and record.exc_info[0] and not record.exc_text:
        trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
        record.exc_text = "\n".join(f"  {one_line(line, MESSAGE)}" for line in trace.split("\n"))
    return True


def _clean_argument(value: Any) -> Any:
    return value if isinstance(value, (int, float)) else one_line(str(value), MESSAGE)
