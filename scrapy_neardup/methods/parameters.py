"""Parameters that check themselves when they are made.

A method's parameters are the fields of a frozen dataclass derived from ``Parameters``, each declared by one of the
functions below: ``n: int = whole(5, 1, 64)``. What a field may hold stands in one place, with its default, and the
errors read the same for every method.

A parameter on which no fingerprint depends, but only what is made of two of them, is declared by ``decides`` of such a
function. It is no part of a state's recipe, and may be changed between crawls. In doubt a parameter is none of these: a
state that is refused costs less than one that is misread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.text.script import converter_name

# A field's metadata hold its check, which answers nothing or how the sentence "... must be" ends, and under "limits" or
# "choices" what it may be.
_Check = Callable[[Any], str]
_T = TypeVar("_T")


def whole(default: int, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``."""

    def check(value: Any) -> str:
        return "" if type(value) is int and low <= value <= high else f"a whole number from {low} to {high}"

    return field(default=default, metadata={"check": check, "limits": (low, high)})


def option(default: int, *choices: int) -> int:
    """One of a few whole numbers."""

    def check(value: Any) -> str:
        return "" if type(value) is int and value in choices else f"one of {', '.join(map(str, choices))}"

    return field(default=default, metadata={"check": check, "choices": choices})


def number(default: float, low: float = 0.0, high: float = 1.0) -> float:
    """A number from ``low`` to ``high``; a share or a similarity where nothing else is said."""

    def check(value: Any) -> str:
        right = type(value) in (int, float) and math.isfinite(value) and low <= value <= high
        return "" if right else f"a number from {low:g} to {high:g}"

    return field(default=default, metadata={"check": check, "limits": (low, high)})


def choice(default: str, *choices: str) -> str:
    """One of a few names."""

    def check(value: Any) -> str:
        return "" if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"

    return field(default=default, metadata={"check": check, "choices": choices})


def names(default: str, *choices: str) -> str:
    """Some of a few names, with commas between them."""

    def check(value: Any) -> str:
        given = value.split(",") if isinstance(value, str) else [""]
        return "" if set(given) <= set(choices) else f"one or more of {', '.join(choices)}, separated by commas"

    return field(default=default, metadata={"check": check, "choices": choices})


def flag(default: bool) -> bool:
    """True or False."""

    def check(value: Any) -> str:
        return "" if type(value) is bool else "True or False"

    return field(default=default, metadata={"check": check, "choices": (True, False)})


def file(what: str) -> str:
    """The path of a file; empty for none. The recipe of a state holds a digest of what is in the file, not its path."""

    def check(value: Any) -> str:
        if isinstance(value, str) and (not value or Path(value).is_file()):
            return ""
        return f"the path of {what}, or an empty string for none"

    return field(default="", metadata={"check": check, "file": True})


def decides(declared: _T) -> _T:
    """The same field, of a parameter on which neither keys nor sketches nor counted sentences depend."""
    made = cast("Field[_T]", declared)
    return cast(_T, field(default=made.default, metadata={**made.metadata, "decides": True}))


@dataclass(frozen=True, slots=True)
class Parameters:
    """What all methods may be told; a method's own parameters are added by a derived class."""

    #: The name of the method, for errors.
    method: ClassVar[str] = "method"

    #: Read traditional Chinese characters as simplified ones, so that a copy in the other script is found too. Needs
    #: the extra ``opencc``.
    simplified: bool = flag(default=False)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if wrong := one.metadata["check"](value):
                raise SettingsError(f"{self.method}: {one.name} must be {wrong}, not {value!r}.")
        if self.simplified:
            converter_name()
        self._check()

    def _check(self) -> None:
        """What fields must be to one another; raises SettingsError."""

    def recipe(self) -> dict[str, Any]:
        """Those on which fingerprints depend, as plain data, a file as the digest of its content."""
        return {name: value for name, value in self.as_data().items() if name not in self._deciding()}

    def decisions(self) -> dict[str, Any]:
        """The others, which only decide: two crawls of one state may have them different."""
        return {name: getattr(self, name) for name in self._deciding()}

    def as_data(self) -> dict[str, Any]:
        """All of them."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        files = [one.name for one in fields(self) if one.metadata.get("file") and values[one.name]]
        return {**values, **{name: _digest(values[name]) for name in files}}

    def _deciding(self) -> list[str]:
        return [one.name for one in fields(self) if one.metadata.get("decides")]


def _digest(path: str) -> str:
    return blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
