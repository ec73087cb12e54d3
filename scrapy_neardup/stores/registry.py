"""The kinds of store by the scheme of their URLs, each imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from scrapy_neardup.stores.base import Store


class Registry(Mapping[str, type[Store]]):
    """Scheme -> kind of store, made from scheme -> "module:class"."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def __getitem__(self, scheme: str) -> type[Store]:
        module, _, name = self.places[scheme].partition(":")
        kind: type[Store] = getattr(import_module(module), name)
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def forms(self, *, lasting: bool = False) -> str:
        """How the URLs of all kinds look, or of those that outlive their store, for a message."""
        *others, last = [kind.form() for kind in self.values() if kind.lasts or not lasting]
        return f"{', '.join(others)} or {last}" if others else last
