"""A store that is looked into and not written to: for a verdict of which nothing is to stay."""

from __future__ import annotations

from typing import Any, cast

from scrapy_neardup.stores import Store


class _Glance:
    """Answers as the store does; what a detector writes comes to nothing."""

    def __init__(self, store: Store) -> None:
        self.base = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)

    def begin(self, who: str, job: str = "") -> int:
        return 0

    def add(self, *_: Any, **__: Any) -> None:
        return

    def touch(self, *_: Any, **__: Any) -> None:
        return

    def note(self, *_: Any, **__: Any) -> None:
        return

    def note_form(self, *_: Any, **__: Any) -> None:
        return

    def write(self, *_: Any, **__: Any) -> None:
        return


def glance(store: Store) -> Store:
    """The store for a detector that must leave no trace: a write that a detector learns to do belongs in the class."""
    return cast(Store, _Glance(store))


def base_of(store: Store) -> Store:
    """The store beneath a glance; any other store is its own base."""
    return store.base if isinstance(store, _Glance) else store
