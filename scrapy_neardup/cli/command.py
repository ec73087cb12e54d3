"""A command, and the options that several commands have."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.files import FORMATS
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.urls import STORES

#: The option that names the state.
STORE = "--store"
#: A comma before another parameter; other commas belong to a value.
_NEXT = re.compile(r",(?=\s*\w+\s*=)")

#: Adds an option to a parser or a group.
Option = Callable[[argparse._ActionsContainer], object]
#: Runs a command and returns its exit code.
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name, the examples that follow its help, its options, and what it does.

    ``run`` gets the options, with Scrapy's settings in ``settings``. It raises NearDupError for all that the user can
    correct.
    """

    name: str
    examples: str
    options: tuple[Option, ...]
    run: Run

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options to the command's parser."""
        for add in self.options:
            add(parser)


def command(name: str, *options: Option, examples: str) -> Callable[[Run], Command]:
    """Return a decorator that makes a command of a function."""
    return lambda run: Command(name, examples, options, run)


def option(names: str, help: str, **details: Any) -> Option:
    """Return an option, named as in the help: ``"-o, --output FILE"``, or ``"urls URL"`` for an argument ``urls``.

    ``details`` are those of ``add_argument``.
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


def limit_option(default: int | None, help: str) -> Option:
    """Return ``--limit``."""
    return option("--limit N", help, type=number(0), default=default)


def method_option(help: str, names: str = "--method", **details: Any) -> Option:
    """Return ``--method``, perhaps with other names."""
    return option(f"{names} NAME[:PARAMETER=VALUE,…]", f"one of {', '.join(METHODS)}{help}", **details)


def fields_option(description: str, *own: Option) -> Option:
    """Return a group with ``own`` options and one for each field of a record: ``--url``, ``--title`` and so on."""

    def add(parser: argparse._ActionsContainer) -> None:
        group = parser.add_argument_group("fields", description)
        for one in own:
            one(group)
        for part, name in DEFAULT_FIELDS.items():
            option(f"--{part} FIELD", f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")(group)

    return add


RECORD_FIELDS = fields_option(
    "Names of the fields, if they differ from these.",
    option("--id FIELD", '(default: id; "": records are known by their URL)', default="id"),
)
#: A state: by its URL, or by a spider.
STATE = (
    option(f"{STORE} URL", f"the state: {STORES.forms(persistent=True)} (default: that of this project or directory)"),
    option("--spider NAME", "use the state and settings of this spider"),
)
JSON = flag("--json", "print one JSON object")
METHOD = method_option(" (default: the project's, else cascade)")
FORCE = flag("--force", "replace the file if it exists")
DRY_RUN = flag("--dry-run", "show what would go, and change nothing")


def format_option(of: str) -> Option:
    """Return ``--format``, the format of what the command reads."""
    return option("--format", f"format of {of} (default: by suffix)", choices=FORMATS, default="")


def fields_of(arguments: argparse.Namespace, config: Config) -> dict[str, str]:
    """Return the names of the fields: those of ``fields_option``, else those of the settings."""
    return {part: getattr(arguments, part) or name for part, name in config.fields.items()}


def config_of(arguments: argparse.Namespace) -> Config:
    """Return the settings."""
    return Config.from_settings(arguments.settings)


def method_of(arguments: argparse.Namespace, config: Config) -> Method:
    """Return the method of ``--method``, else that of the settings."""
    return make_method(*parse_method(arguments.method)) if arguments.method else config.make_method()


def name_method(arguments: argparse.Namespace, config: Config) -> Config:
    """Return the settings with the method of ``--method``."""
    if not arguments.method:
        return config
    name, parameters = parse_method(arguments.method)
    return replace(config, method=name, parameters=parameters)


def parse_parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Return parameters of a method from ``NAME=VALUE``; a value that is not JSON is a string.

    >>> parse_parameters(["base=0.8", "short=100", "lexicon=news.txt"])
    {'base': 0.8, 'short': 100, 'lexicon': 'news.txt'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name.isidentifier():
            raise SettingsError(f"{text!r} is no parameter. Write NAME=VALUE, for example base=0.8.")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of a method from ``NAME`` or ``NAME:PARAMETER=VALUE,…``. Values may hold commas.

    >>> parse_method("cascade:base=0.7,short=50")
    ('cascade', {'base': 0.7, 'short': 50})
    """
    name, _, parameters = text.partition(":")
    return name.strip(), parse_parameters(_NEXT.split(parameters) if parameters else [])


def format_parameters(parameters: Mapping[str, Any]) -> str:
    """Return parameters as ``parse_method`` reads them.

    >>> format_parameters({"base": 0.7, "lexicon": "news.txt"})
    'base=0.7,lexicon="news.txt"'
    """
    return ",".join(f"{name}={json.dumps(value)}" for name, value in parameters.items())
