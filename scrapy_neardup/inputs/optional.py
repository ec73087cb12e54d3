"""Libraries that are installed with an extra, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from scrapy_neardup.errors import NearDupError


def library(module: str, extra: str, what: str) -> Any:
    """The module of that name, needed for ``what``; raises NearDupError that names the extra if it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise NearDupError(
            f"{what} needs the package {package}, which cannot be imported ({error}). Run: "
            f"pip install 'scrapy-neardup[{extra}]'"
        ) from None
