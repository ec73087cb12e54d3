"""The state that a command writes into, made if it is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from scrapy_neardup.stores import Secret, Store, close_store, open_store, parse_url
from scrapy_neardup.stores.options import DEFAULT, Options

#: The option that names the state, as messages tell it.
OPTION = "--store"


@contextmanager
def opened_or_made(
    url: str,
    recipe: Mapping[str, Any] | None,
    secret: Secret | None,
    named_by: str = OPTION,
    options: Options = DEFAULT,
) -> Iterator[Store]:
    """The state at a URL, closed at the end; without a recipe it must be there.

    Raises StoreMismatch that speaks of ``named_by`` if it is of another recipe. What a crawl would take back when it
    opens the state is taken back now; a line on standard error says so.
    """
    kind, location = parse_url(url, named_by)
    if hint := kind.misplaced(location):
        sys.stderr.write(f"{named_by}: {hint}\n")
    store = open_store(url, recipe, named_by, secret, options=options)
    try:
        tell_taken_back(store)
        yield store
    finally:
        close_store(store)


def tell_taken_back(store: Store) -> None:
    """A line on standard error if the opening of a state took something back."""
    if back := store.taken_back.pages:
        many, whose = (f"{back:,} pages are", "their") if back > 1 else ("1 page is", "its")
        crawls = ", ".join(store.taken_back.crawls) or "unknown"
        sys.stderr.write(
            f"{many} rolled back in the state, because {whose} crawl ({crawls}) was killed or its feed was not "
            "stored.\n"
        )
