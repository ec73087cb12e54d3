"""The names of a table's columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from scrapy_neardup.errors import NearDupError


def column_names(cells: Iterable[Any], place: str) -> list[str]:
    """The first row as names, without empty cells at its end; raises NearDupError for a name that comes twice.

    One column may be without a name: pandas writes its row numbers so.

    >>> column_names(["", "title", 2024, None], "book.xlsx")
    ['', 'title', '2024']
    """
    names = ["" if cell is None else str(cell).strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    require_distinct(names, place)
    return names


def require_distinct(names: Sequence[str], place: str) -> None:
    """Raises NearDupError if two columns have the same name, or none."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        said = " and ".join(f"named {name!r}" if name else "without a name" for name in twice)
        raise NearDupError(f"{place} has several columns {said}. Give each column its own name.")
