"""Options that several commands have, and their values."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods import METHODS
from scrapy_neardup.settings import DEFAULT_FIELDS, Config

#: A comma before another parameter; other commas belong to a value.
_NEXT = re.compile(r",(?=\s*\w+\s*=)")


def add_json(parser: argparse._ActionsContainer, help: str = "print one JSON object") -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=help)


def add_strict(parser: argparse.ArgumentParser) -> None:
    """Add ``--strict``, which refuses a state that other versions wrote."""
    parser.add_argument(
        "--strict", action="store_true", help="refuse a state written by other versions, even if they read pages alike"
    )


def add_method(parser: argparse.ArgumentParser) -> None:
    """Add ``--method`` for one method, by default that of the project."""
    parser.add_argument(
        "--method",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)} (default: the project's, else cascade)",
    )


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Add the files of documents that a command reads."""
    parser.add_argument("file", nargs="+", type=Path, metavar="FILE", help="documents: JSON lines, .txt, or a folder")


def add_fields(group: argparse._ActionsContainer) -> None:
    """Add an option for each field of a record: ``--url``, ``--title``, ``--text`` and so on."""
    for part, name in DEFAULT_FIELDS.items():
        group.add_argument(f"--{part}", metavar="FIELD", help=f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")


def fields_of(arguments: argparse.Namespace, config: Config) -> dict[str, str]:
    """Return the names of the fields: those of ``add_fields``, else those of the settings."""
    return {part: getattr(arguments, part) or name for part, name in config.fields.items()}


def config_of(arguments: argparse.Namespace) -> Config:
    """Return the settings, stricter with ``--strict``."""
    config = Config.from_settings(arguments.settings)
    return replace(config, strict=config.strict or getattr(arguments, "strict", False))


def check_minimum(arguments: argparse.Namespace, option: str, minimum: int) -> None:
    """Raise SettingsError if the value of an option is below the minimum."""
    value = getattr(arguments, option)
    if value is not None and value < minimum:
        raise SettingsError(f"--{option} is {value}. Give {minimum} or more.")


def parse_parameters(texts: Iterable[str]) -> dict[str, Any]:
    """Return parameters of a method from ``NAME=VALUE``; a value that is not JSON is a string.

    >>> parse_parameters(["base=0.8", "short=100", "lexicon=news.txt"])
    {'base': 0.8, 'short': 100, 'lexicon': 'news.txt'}
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise SettingsError(f"{text!r} is no parameter. Write NAME=VALUE, for example base=0.8.")
        found[name.strip()] = _value(value.strip())
    return found


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of a method from ``NAME`` or ``NAME:PARAMETER=VALUE,…``. Values may hold commas.

    >>> parse_method("cascade:base=0.7,short=50")
    ('cascade', {'base': 0.7, 'short': 50})
    """
    name, _, parameters = text.partition(":")
    return name.strip(), parse_parameters(_NEXT.split(parameters) if parameters else [])


def format_parameters(parameters: Mapping[str, Any], separator: str = ",", *, wide: bool = False) -> str:
    """Return parameters as ``parse_method`` reads them.

    >>> format_parameters({"base": 0.7, "lexicon": "news.txt"})
    'base=0.7,lexicon="news.txt"'
    """
    return separator.join(f"{name}={json.dumps(value, ensure_ascii=not wide)}" for name, value in parameters.items())


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
