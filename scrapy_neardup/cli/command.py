"""A command, and the options that several commands have.

A value that has a setting has no option: ``-s NAME=VALUE`` gives it to every command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from scrapy_neardup.settings import DEFAULT_FIELDS, Config, parse_age
from scrapy_neardup.state.urls import STORES

#: The option that names the state.
STORE = "--store"

#: Adds an option to a parser or a group.
Option = Callable[[argparse._ActionsContainer], object]
#: Runs a command with its options and the settings, and returns its exit code.
Run = Callable[[argparse.Namespace, Config], int]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the examples below its help, its options, and its function.

    ``run`` raises NearDupError for everything that the user can correct.
    """

    examples: str
    options: tuple[Option, ...]
    run: Run

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        for add in self.options:
            add(parser)


def command(*options: Option, examples: str) -> Callable[[Run], Command]:
    """Return a decorator that makes a command of a function."""
    return lambda run: Command(examples, options, run)


def option(names: str, help: str, **details: Any) -> Option:
    """Return an option, named as in the help: ``"-o, --output FILE"``, or ``"urls URL"`` for an argument ``urls``.

    ``add_argument`` gets the ``details``.
    """
    words = names.split()
    flags = [word.removesuffix(",") for word in words if word.startswith("-")] or words[:1]
    if placeholder := words[len(flags) :]:
        details["metavar"] = placeholder[0]
    return lambda parser: parser.add_argument(*flags, help=help, **details)


def flag(name: str, help: str) -> Option:
    """Return an option without a value."""
    return option(name, help, action="store_true")


def number(minimum: int) -> Callable[[str], int]:
    """Return a type for an option: a whole number, at least ``minimum``."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?\d{1,18}", text) or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number of {minimum} or more")
        return int(text)

    return parse


def past_time(text: str, now: datetime | None = None) -> float:
    """Return a time or an age in seconds since 1970: a type for an option.

    >>> [past_time(text, datetime(1970, 1, 9, tzinfo=timezone.utc)) for text in ("1w", "1970-01-02", "30 min")]
    [86400.0, 86400.0, 689400.0]
    """
    now, text = now or datetime.now(timezone.utc), text.strip()
    if not text.isdecimal() and (ago := parse_age(text)) is not None:
        return (now - timedelta(seconds=ago)).timestamp()
    try:
        parsed = None if text.isdecimal() else datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        parsed = None
    parsed = parsed.replace(tzinfo=timezone.utc) if parsed and not parsed.tzinfo else parsed
    if parsed is None or parsed > now:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time in the past. Give a date (2025-03-01), a time (2025-03-01T08:00+08:00), or an age "
            "with its unit (600s, 30min, 12h, 90d, 4w)"
        )
    return parsed.timestamp()


def add_fields(parser: argparse._ActionsContainer) -> None:
    """Add an option for the field of each part of a record."""
    group = parser.add_argument_group("fields", "Names of the fields, if they differ from these.")
    option("--id FIELD", '(default: id; "": records are known by their URL)', default="id")(group)
    for part, name in DEFAULT_FIELDS.items():
        option(f"--{part} FIELD", f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")(group)


#: A state: by its URL, or by a spider.
STATE = (
    option(
        f"{STORE} URL",
        f"the state: its path, {STORES.forms(persistent=True)} (default: that of this project or directory)",
    ),
    option("--spider NAME", "use the state and settings of this spider"),
)
JSON = flag("--json", "print one JSON object")
JSON_LINES = flag("--json", "print one JSON object per line")


def fields_of(arguments: argparse.Namespace, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the names of the fields. Options go before the settings."""
    return {part: getattr(arguments, part) or name for part, name in fields.items()}
