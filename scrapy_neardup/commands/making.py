"""The state that a command writes into, made if it is not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scrapy_neardup.commands.opening import tell_taken_back
from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.stores import Store, close_store, open_store


@contextmanager
def opened_or_made(url: str, recipe: Mapping[str, Any] | None) -> Iterator[Store]:
    """The state at a URL, closed at the end; without a recipe it must be there.

    Raises StoreMismatch that speaks of --store if it is of another recipe.
    """
    with speaking_of_store():
        store = open_store(url, recipe)
    try:
        tell_taken_back(store)
        yield store
    finally:
        close_store(store)


@contextmanager
def speaking_of_store() -> Iterator[None]:
    """Put the option of a command where a message names the setting of a crawl."""
    try:
        yield
    except StoreMismatch as error:
        raise StoreMismatch(str(error).replace("NEARDUP_STORE", "--store")) from None
