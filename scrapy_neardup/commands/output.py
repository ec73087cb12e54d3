"""What the commands share: text to standard output, colours, tables, a bar for those who wait, parameters."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from tabulate import tabulate
from tqdm import tqdm

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.oneline import one_line

T = TypeVar("T")

#: What may steer a terminal: ends of lines, and the colours of marked texts.
_OURS = re.compile("(\n|\x1b\\[(?:32|90|0)m)")
#: A comma before another parameter; any other is part of a value.
_NEXT = re.compile(r",(?=\s*\w+\s*=)")


def write(text: str) -> None:
    """Write to standard output at once; characters that it cannot take are written as escapes, not refused.

    So are those that steer a terminal, but for ends of lines and our own colours: whoever makes the text has seen to
    that, and this is for what was forgotten.
    """
    text = "".join(part if _OURS.fullmatch(part) else one_line(part, len(part)) for part in _OURS.split(text))
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def is_coloured() -> bool:
    """Whether standard output is a terminal that shows colours, and nobody minds (NO_COLOR)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or sys.platform == "win32"
    return sys.stdout.isatty() and not plain


def table(headers: Sequence[str], rows: Iterable[Sequence[object]], *, words: int = 1, remarks: int = 0) -> str:
    """A table in Markdown; the first ``words`` and the last ``remarks`` columns to the left, figures to the right.

    >>> print(table(["method", "F1"], [["cascade", "0.9912"]]).splitlines()[2])
    | cascade  | 0.9912 |
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    right = range(words, len(headers) - remarks)
    aligned = ["right" if column in right else "left" for column in range(len(headers))]
    return tabulate(cells, headers, tablefmt="github", colalign=aligned if cells else None, disable_numparse=True)


def progress(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """The same items, with a bar on standard error while they are used: on a terminal only, after a second."""
    return tqdm(iterable, total=total, unit=f" {what}", file=sys.stderr, disable=None, delay=1, leave=False)


def parameter_overrides(given: Iterable[str]) -> dict[str, Any]:
    """Parameters of a method from ``NAME=VALUE``; a value that is no JSON is a string.

    Raises SettingsError where there is no name.

    >>> parameter_overrides(["base=0.8", "short=100", "lexicon=news.txt"])
    {'base': 0.8, 'short': 100, 'lexicon': 'news.txt'}
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise SettingsError(f"{text!r} is no parameter. Write NAME=VALUE, for example base=0.8.")
        found[name.strip()] = _value(value.strip())
    return found


def method_spec(text: str) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a method that is written ``NAME`` or ``NAME:PARAMETER=VALUE,…``; values may hold commas.

    >>> method_spec("cascade:base=0.7,short=50")
    ('cascade', {'base': 0.7, 'short': 50})
    """
    name, _, given = text.partition(":")
    return name.strip(), parameter_overrides(_NEXT.split(given) if given else [])


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
