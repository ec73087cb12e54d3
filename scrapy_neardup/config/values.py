"""Values of settings by their kind: from Python, or as text from the command line.

Each raises SettingsError that says what the setting must be.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from scrapy_neardup.errors import SettingsError


def boolean(name: str, value: Any) -> bool:
    """True or False, or a word for it."""
    text = str(value).strip().lower()
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise SettingsError(f"{name} is {value!r}. Set it to True or False.")


def text(name: str, value: Any) -> str:
    """A string, as it is."""
    if isinstance(value, str):
        return value
    raise SettingsError(f"{name} is {value!r}. Set it to a string.")


def import_path(name: str, value: Any) -> str:
    """An import path; an object from a settings module is named by where it lives."""
    if isinstance(value, str):
        return value
    if callable(value) and hasattr(value, "__qualname__") and "." not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    raise SettingsError(f"{name} is {value!r}. Set it to an import path, such as 'myproject.text.own'.")


def choice(*choices: str) -> Callable[[str, Any], str]:
    """What reads one of these words."""

    def read(name: str, value: Any) -> str:
        if value in choices:
            return str(value)
        raise SettingsError(f"{name} is {value!r}. Set it to one of: {', '.join(choices)}.")

    return read


def number(low: float, high: float) -> Callable[[str, Any], float]:
    """What reads a number within these bounds."""

    def read(name: str, value: Any) -> float:
        try:
            found = float(value)
        except (TypeError, ValueError, OverflowError):
            found = float("nan")
        if not low <= found <= high:
            raise SettingsError(f"{name} is {value!r}. Set it to a number from {_plain(low)} to {_plain(high)}.")
        return found

    return read


def _plain(number: float) -> str:
    """A number as people write it, however large."""
    return str(int(number)) if number == int(number) else f"{number:g}"


def whole(low: int, high: int) -> Callable[[str, Any], int]:
    """What reads a whole number within these bounds."""

    def read(name: str, value: Any) -> int:
        found = number(low, high)(name, value)
        if found != int(found):
            raise SettingsError(f"{name} is {value!r}. Set it to a whole number.")
        return int(found)

    return read


def mapping(name: str, value: Any) -> dict[str, Any]:
    """A dict, or one as JSON; its keys are strings."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise SettingsError(f"{name} is {value!r}. Set it to a dict (on the command line as JSON).") from None
    if not isinstance(value, Mapping):
        raise SettingsError(f"{name} is {value!r}. Set it to a dict.")
    if not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name} is {value!r}. Its keys must be strings.")
    return dict(value)
