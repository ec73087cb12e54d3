"""The methods by name. A new one is a file beside this one and a line in ``METHODS``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.base import Method
from scrapy_neardup.methods.cascade import Cascade, CascadeParameters

#: Name -> (the method, the frozen dataclass of its parameters).
METHODS: dict[str, tuple[type[Method], type[Any]]] = {
    Cascade.name: (Cascade, CascadeParameters),
}


def make_method(name: str, parameters: Mapping[str, Any]) -> Method:
    """The method called ``name`` with ``parameters``; raises SettingsError that lists the valid names."""
    if name not in METHODS:
        raise SettingsError(f"There is no method {name!r}; the methods are: {', '.join(sorted(METHODS))}.")
    method, kind = METHODS[name]
    valid = [field.name for field in fields(kind)]
    unknown = sorted(set(parameters) - set(valid))
    if unknown:
        raise SettingsError(f"{name} has no parameter {', '.join(unknown)}; it has: {', '.join(valid)}.")
    return method(kind(**parameters))  # type: ignore[call-arg]  # every method takes its parameters alone


__all__ = ["METHODS", "Method", "make_method"]
