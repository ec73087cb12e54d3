"""What commands print: text, tables, JSON, progress."""

from __future__ import annotations

import argparse
import codecs
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar

from tabulate import tabulate
from tqdm import tqdm

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.lookup import Known
from scrapy_neardup.model import ROW
from scrapy_neardup.oneline import one_line
from scrapy_neardup.outputs import WRITERS, opened_output, output_format
from scrapy_neardup.text.marking import Mark, Part

# ----------------------------------------------------------------------------------------------------------------------
# How the commands on a state write times, sizes, texts of pages, and JSON that a terminal can take.


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


# ----------------------------------------------------------------------------------------------------------------------
# What the commands share: text to standard output, colours, tables, a bar for those who wait, parameters.


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


# ----------------------------------------------------------------------------------------------------------------------
# How the marked sentences of a text are shown on a terminal.


#: What is written before and behind a marked part, without colours and with them (green, and grey).
BRACKETS = {Mark.NONE: ("", ""), Mark.SHARED: ("[[", "]]"), Mark.BOILERPLATE: ("{{", "}}")}
COLOURS = {Mark.NONE: ("", ""), Mark.SHARED: ("\x1b[32m", "\x1b[0m"), Mark.BOILERPLATE: ("\x1b[90m", "\x1b[0m")}

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


def shown(parts: list[Part], *, coloured: bool) -> str:
    """The text as it is printed, with what marks its parts."""
    around = COLOURS if coloured else BRACKETS
    return "".join(f"{around[part.mark][0]}{printable(part.text)}{around[part.mark][1]}" for part in parts)


def printable(text: str) -> str:
    """Without what would command a terminal, or show on it as something else: a page may hold anything.

    >>> printable("The \\x1b[2Jboat\\u202e sank\\tat 9.")
    'The �[2Jboat sank at 9.'
    """
    return "".join(map(_printable, _LINE_END.sub("\n", text)))


def _printable(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    if char == "\t":
        return " "
    category = unicodedata.category(char)
    if category == "Cf":  # marks of direction, soft hyphens: they show nothing themselves
        return ""
    return "\N{REPLACEMENT CHARACTER}" if category in ("Cc", "Cs") else char


# ----------------------------------------------------------------------------------------------------------------------
# A list of records that a command prints for people, or as JSON lines, or writes to a file of any format.


#: Records that a terminal is shown unless more are asked for.
_SHOWN = 50


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """The options that say where the list goes; ``what`` it is a list of."""
    parser.add_argument("-o", "--output", metavar="FILE", help=f"write the {what} to this file, all or nothing")
    parser.add_argument("--output-format", choices=WRITERS, default="", help="(default: by the suffix of FILE)")
    parser.add_argument(
        "--limit", type=int, metavar="N", help=f"{what} to show, the last ones (default: {_SHOWN}; 0: all)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines")


def check_output(arguments: argparse.Namespace) -> None:
    """Raises NearDupError for a format that is none, before a state is opened."""
    if arguments.limit is not None and arguments.limit < 0:
        raise SettingsError(f"--limit is {arguments.limit}. Give 0 (all) or more.")
    if arguments.output:
        output_format(arguments.output, arguments.output_format)


def put(
    arguments: argparse.Namespace, records: Iterable[dict[str, Any]], shown: Callable[[dict[str, Any]], str], what: str
) -> int:
    """Print or write the records, all with the same fields; returns how many there were.

    A table is for people and may hold what strangers wrote, so nothing in it is run by a spreadsheet. Less is shown to
    people than there is; whoever wants JSON or a file gets all.
    """
    if arguments.output:
        many, format = 0, output_format(arguments.output, arguments.output_format)
        with opened_output(arguments.output, format, "", for_spreadsheet=True) as out:
            for record in records:
                out.write(record, None)
                many += 1
        if arguments.output != "-":
            sys.stderr.write(f"{counted(many, *_one_and_more(what))} written to {arguments.output}.\n")
        return many
    found = list(records)
    limit = _SHOWN if arguments.limit is None else arguments.limit
    if arguments.json:
        few = found if arguments.limit is None else found[-limit:]
        for record in few:
            write(as_json(record, indent=None) + "\n")
        return len(found)
    for record in found[-limit:]:
        write(shown(record))
    if (rest := len(found) - len(found[-limit:])) > 0:
        write(f"(and {rest:,} before these; --limit 0 shows all)\n")
    return len(found)


def _one_and_more(what: str) -> tuple[str, str]:
    """A noun in the plural as singular and plural."""
    return what.removesuffix("s"), what
