"""The output of commands: text that is safe on a terminal, JSON, tables, progress."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar

from tabulate import tabulate
from tqdm import tqdm

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inspect import as_data
from scrapy_neardup.report.words import format_size
from scrapy_neardup.text.marking import Mark, Part
from scrapy_neardup.untrusted import clean_text, escape_json, one_line

T = TypeVar("T")

#: Brackets around a marked part of a text.
BRACKETS = {Mark.NONE: ("", ""), Mark.SHARED: ("[[", "]]"), Mark.BOILERPLATE: ("{{", "}}")}


# Streams and files.


def write(text: str) -> None:
    """Write to standard output at once, with escapes for characters that it cannot take or that steer a terminal."""
    text = "\n".join(one_line(line, len(line)) for line in text.split("\n"))
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def warn(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"{text}\n")


def present(arguments: argparse.Namespace, data: Any, text: str | Iterable[str]) -> None:
    """Print the findings of a command: with ``--json`` the data, else the text or its lines."""
    shown = as_json(data) if arguments.json else text if isinstance(text, str) else "\n".join(text)
    write(shown.rstrip("\n") + "\n")


def progress(iterable: Iterable[T], total: int | None = None, what: str = "pages") -> Iterable[T]:
    """Yield the same items. After a second on a terminal, show a bar on standard error."""
    return tqdm(iterable, total=total, unit=f" {what}", file=sys.stderr, disable=None, delay=1, leave=False)


def check_outputs(inputs: Iterable[str | Path], *outputs: str | Path | None) -> None:
    """Raise NearDupError if a file to be written is an input or is named twice. ``-`` and devices are no files."""
    files = [Path(one) for one in outputs if one and str(one) != "-"]
    files = [one for one in files if one.is_file() or not one.exists()]
    present = [Path(one) for one in inputs if Path(one).exists()]
    for number, output in enumerate(files):
        if output.exists() and any(one.samefile(output) for one in present):
            raise NearDupError(f"{output} is also an input and would be replaced. Name another file.")
        if os.path.realpath(output) in map(os.path.realpath, files[:number]):
            raise NearDupError(f"{output} is named for two outputs. Name another file for one of them.")


def as_json(found: Any, indent: int | None = 2, *, wide: bool | None = None) -> str:
    """Return plain data and dataclasses as JSON that a terminal can show.

    ``wide``: whether letters beyond ASCII are not escaped; None: only if standard output is UTF-8.

    >>> as_json({"title": "渡口\\u202e\\x9b2J"}, indent=None, wide=True)
    '{"title": "渡口\\\\u202e\\\\u009b2J"}'
    """
    if wide is None:
        wide = codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf-8")
    return escape_json(json.dumps(found, ensure_ascii=not wide, indent=indent, default=as_data))


# Text.


def to_line(text: str) -> str:
    """Return the text of a page as one line for a terminal, not shortened.

    >>> print(to_line("The boat\\x1b[31m\\r\\n sank"))
    The boat\\x1b[31m sank
    """
    return one_line(" ".join(text.split()), len(text))


def format_parts(parts: Iterable[Part]) -> str:
    """Return a text with its marked parts in brackets."""
    return "".join("{1}{0}{2}".format(clean_text(part.text), *BRACKETS[part.mark]) for part in parts)


def format_count(number: int, singular: str) -> str:
    """Return a number with its noun.

    >>> format_count(1, "page"), format_count(2400, "page")
    ('1 page', '2,400 pages')
    """
    return f"{number:,} {singular if number == 1 else singular + 's'}"


def format_counts(counts: Mapping[str, object]) -> str:
    """Return counts under their names in JSON; zeros and values that are no counts are left out.

    >>> format_counts({"dry_run": True, "pages": 2400, "other_copies": 0, "urls": []})
    'pages: 2,400'
    """
    named = ((name.replace("_", " "), value) for name, value in counts.items() if type(value) is int and value)
    return ", ".join(f"{name}: {value:,}" for name, value in named)


def format_rest(rest: int) -> str:
    """Return a line for list items that are not shown; nothing if there are none."""
    return f"  (and {rest:,} more)\n" if rest > 0 else ""


def format_data(data: Any, *hidden: str, indent: str = "") -> str:
    """Return a JSON object as text: names and values in two columns, then a table for each list of objects.

    Values that say nothing (null, false, 0, empty) and ``hidden`` names are left out. A name that begins with "bytes"
    is a size.
    """
    facts, tables = [], []
    for name, value in _as_dict(data).items():
        if name in hidden or not value:
            continue
        if isinstance(value, (list, tuple)) and not isinstance(value[0], str):
            rows = [_as_dict(one) for one in value]
            cells = [[_format_value(*item).replace("\n", " ") for item in row.items()] for row in rows]
            tables.append(f"\n{_spaced(name)}:\n\n{format_table([*map(_spaced, rows[0])], cells)}\n")
        else:
            facts.append((_spaced(name), _format_value(name, value)))
    width = max((len(name) for name, _ in facts), default=0) + 2
    below = f"\n{indent}{' ' * width}"
    return "".join([f"{indent}{name:<{width}}{value.replace(chr(10), below)}\n" for name, value in facts] + tables)


def _as_dict(data: Any) -> dict[str, Any]:
    return data if isinstance(data, dict) else as_data(data)


def _format_value(name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "\n".join(map(to_line, value))
    if value is None or isinstance(value, bool):
        return "yes" if value else "" if value is None else "no"
    if isinstance(value, str):
        return "\n".join(map(to_line, (value.value if isinstance(value, Enum) else value).split("\n")))
    if isinstance(value, (int, float)):
        return format_size(int(value)) if name.startswith("bytes") else f"{value:,}"
    parts = {key: _format_value(key, one) for key, one in _as_dict(value).items() if one}
    if "url" in parts:  # a page
        title = [f'"{parts.pop("title")}"'] if "title" in parts else []
        return "\n".join([parts.pop("url"), *title, *(f"{_spaced(key)} {one}" for key, one in parts.items())])
    entries = [f"{key}: {one}" for key, one in parts.items()]
    is_flat = isinstance(value, dict) and not any(isinstance(one, dict) for one in value.values())
    return fill(", ".join(entries), 100, break_on_hyphens=False) if is_flat else "\n".join(entries)


def _spaced(name: str) -> str:
    return to_line(name.replace("_", " "))


def format_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table. The first column is aligned left, others right.

    >>> print(format_table(["method", "F1"], [["cascade", "0.9912"]]).splitlines()[2])
    | cascade  | 0.9912 |
    """
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    aligned = ["left", *["right"] * (len(headers) - 1)] if cells else None
    return tabulate(cells, headers, tablefmt="github", colalign=aligned, disable_numparse=True)
