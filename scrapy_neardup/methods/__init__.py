"""The methods by name. A new method is a class in ``METHODS``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.base import Method
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.literature import PUBLISHED

METHODS: dict[str, type[Method]] = {Cascade.name: Cascade, **{method.name: method for method in PUBLISHED}}


def make_method(name: str, parameters: Mapping[str, Any]) -> Method:
    """Return the method called ``name``, or at that import path, with ``parameters``.

    Raises SettingsError with the valid names, or with the wrong parameter.
    """
    method = METHODS.get(name) or _import_method(name)
    valid = [field.name for field in fields(method.parameters_type)]
    unknown = sorted(set(parameters) - set(valid))
    if unknown:
        raise SettingsError(f"{name} has no parameter {', '.join(unknown)}. Its parameters are: {', '.join(valid)}.")
    return method(method.parameters_type(**parameters))


def _import_method(path: str) -> type[Method]:
    module, _, name = path.rpartition(".")
    if not module:
        close = get_close_matches(path.lower().replace("-", "_"), METHODS, 1)
        meant = f" Did you mean {close[0]}?" if close else ""
        raise SettingsError(
            f"There is no method {path!r}.{meant} Use one of: {', '.join(METHODS)}; or the import path of your own."
        )
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"The method {path!r} cannot be imported: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Method)):
        raise SettingsError(f"{path!r} is no method. Derive its class from scrapy_neardup.methods.Method.")
    missing = [name for name in ("name", "version", "parameters_type") if not hasattr(found, name)]
    missing += sorted(getattr(found, "__abstractmethods__", ()))
    if missing:
        raise SettingsError(f"The method {path!r} lacks {', '.join(missing)}. See scrapy_neardup.methods.Method.")
    return found


__all__ = ["METHODS", "Method", "make_method"]
