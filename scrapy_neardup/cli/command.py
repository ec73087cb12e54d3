"""A command, and the options that several commands have.

A value that has a setting has no option: ``-s NAME=VALUE`` gives it to every command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scrapy_neardup.settings import DEFAULT_FIELDS, Config
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
