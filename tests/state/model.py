"""What a store should hold, said as plainly as can be: pages in dictionaries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import pytest

from scrapy_neardup.state import boilerplate
from scrapy_neardup.state.journal import UnsealedPages


class Numbered(Protocol):
    """All that the model asks of a page."""

    @property
    def id(self) -> int: ...

    @property
    def url(self) -> str: ...


P = TypeVar("P", bound=Numbered)


@dataclass
class Pages(Generic[P]):
    """Pages by id and by URL, sealed and unsealed."""

    pages: dict[int, P] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    # Page -> the generation under which it is unsealed, and the page it replaces.
    unsealed: dict[int, tuple[int, int]] = field(default_factory=dict)
    crawls: dict[int, str] = field(default_factory=dict)

    def find(self, url: str) -> P | None:
        return self.pages.get(self.newest.get(url, 0))

    def remove(self, id: int) -> None:
        page = self.pages.pop(id, None)
        if page is not None and self.newest.get(page.url) == id:
            del self.newest[page.url]

    def add(self, page: P, generation: int, replaces: int) -> None:
        self.pages[page.id] = page
        if generation:
            self.unsealed[page.id] = generation, replaces
        else:
            self.supersede(replaces)
        self.newest[page.url] = page.id

    def unsealed_of(self, generation: int) -> list[int]:
        return sorted(id for id, (of_which, _) in self.unsealed.items() if of_which == generation)

    def seal(self, generation: int, ids: list[int]) -> None:
        for id in ids:
            if id in self.unsealed and self.unsealed[id][0] == generation:
                self.supersede(self.unsealed.pop(id)[1])

    def supersede(self, id: int) -> None:
        """Remove a page in whose place another one is for good, and those in whose place it was."""
        while id:
            self.remove(id)
            _, id = self.unsealed.pop(id, (0, 0))

    def roll_back(self, id: int) -> None:
        _, replaced = self.unsealed.pop(id, (0, 0))
        page = self.pages.get(id)
        if page is None:
            return
        if self.newest.get(page.url) == id:
            self.remove(id)
            if replaced:
                self.newest[page.url] = replaced
        else:
            self.remove(id)
            for later, (generation, names) in self.unsealed.items():
                if names == id:
                    self.unsealed[later] = generation, replaced

    def take_back(self) -> UnsealedPages:
        told = UnsealedPages(len(self.unsealed), tuple(self.crawls.values()))
        for id in sorted(self.unsealed, reverse=True):
            self.roll_back(id)
        self.crawls.clear()
        return told


@contextmanager
def small_tables() -> Iterator[None]:
    """Tables of sentences that hold 2,048 instead of 131,072, as loading those takes half of the time of a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boilerplate, "_BUCKETS", 256)
        patch.setattr(boilerplate, "BLOCKS", 256 // boilerplate.IN_BLOCK)
        yield
