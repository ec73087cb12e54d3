"""How the commands on a state write times, sizes, texts of pages, and JSON that a terminal can take."""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Any

from scrapy_neardup.model import ROW
from scrapy_neardup.oneline import one_line
from scrapy_neardup.states.known import Known

#: Characters that steer a terminal or show nothing, beside those that JSON escapes anyway.
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def as_json(data: Any, indent: int | None = 2, *, wide: bool | None = None) -> str:
    """Data as JSON; what could steer a terminal is escaped, which is the same to a program that reads it.

    ``wide``: whether other letters than those of ASCII stand as they are; as standard output can take them, if None.

    >>> as_json({"title": "渡口\\u202e\\x9b2J"}, indent=None, wide=True)
    '{"title": "渡口\\\\u202e\\\\u009b2J"}'
    """
    if wide is None:
        wide = codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf-8")
    text = json.dumps(data, ensure_ascii=not wide, indent=indent)
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def iso(seconds: float) -> str | None:
    """Seconds since 1970 as a time in UTC; None for 0.

    >>> iso(1_700_000_000.7)
    '2023-11-14T22:13:20+00:00'
    """
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds") if seconds else None


def line(text: str) -> str:
    """A text of a page in one line of a terminal, whole.

    >>> print(line("The boat\\x1b[31m\\r\\n sank"))
    The boat\\x1b[31m sank
    """
    return one_line(" ".join(text.split()), len(text))


def room(size: float) -> str:
    """A number of bytes as people read it.

    >>> room(999), room(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_UNITS[-1]}"


def counted(many: int, one: str, more: str = "") -> str:
    """A number with its noun.

    >>> counted(1, "page"), counted(2400, "copy", "copies")
    ('1 page', '2,400 copies')
    """
    return f"{many:,} {one if many == 1 else more or one + 's'}"


def facts(pairs: Iterable[tuple[str, object]], width: int = 14, indent: str = "  ") -> str:
    """Names and values in two columns; the further lines of a value below its first one."""
    return "".join(
        f"{indent}{name:<{width}}" + f"\n{indent}{' ' * width}".join(str(value).split("\n")) + "\n"
        for name, value in pairs
    )


def verdict(known: Known) -> str:
    """What was said of a page, with its kind where that is known."""
    kind = ROW if known.record.is_row else known.evidence.likeness if known.evidence else ""
    return f"{known.verdict.value} ({line(kind)})" if kind else known.verdict.value


def missing(url: str, near: list[str], location: str) -> str:
    """That a URL is not in the state, and which ones are that are written nearly like it."""
    said = f"{line(url)}\n  is not in the state at {location}."
    if not near:
        return f"{said} Write the URL as crawled.\n"
    return f"{said} Similar URLs:\n" + "".join(f"    {line(one)}\n" for one in near)
