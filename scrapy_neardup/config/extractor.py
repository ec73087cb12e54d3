"""A function of the user's that finds the text of a page."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from scrapy_neardup.errors import SettingsError


def load_extractor(path: str) -> Callable[[str, str], str | None]:
    """The callable at an import path: takes HTML and URL, gives the text or None."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which cannot be imported: {error}.") from error
    if not callable(found):
        raise SettingsError(f"NEARDUP_EXTRACTOR is {path!r}, which is no function. Name a function(html, url) -> text.")
    return found  # type: ignore[no-any-return]  # what it gives is checked where it is called
