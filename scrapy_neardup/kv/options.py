"""NEARDUP_STORE_OPTIONS: how a store uses memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from scrapy_neardup.errors import SettingsError

_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?B|)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of all stores; each store uses its own.

    They change speed, never contents, and may differ with each opening.
    """

    #: Bytes of cache for reads (LevelDB, SQLite).
    cache: int = 8 * 2**20
    #: Bytes of writes in memory, and in the log, before they are sorted into files (LevelDB).
    write_buffer: int = 16 * 2**20


#: The smallest and largest value of each option.
_LIMITS = {"cache": (0, 2**40), "write_buffer": (64 * 2**10, 2**30)}
#: The fastest values that we measured.
DEFAULT = Options()


def read_options(name: str, value: Mapping[str, Any]) -> Options:
    """Read the options. Raises SettingsError."""
    found: dict[str, int] = {}
    for option, said in value.items():
        if option not in _LIMITS:
            close = get_close_matches(str(option), _LIMITS, 1)
            raise SettingsError(
                f"{name} has no option {option!r}.{f' Did you mean {close[0]!r}?' if close else ''} "
                f"The options are: {', '.join(_LIMITS)}."
            )
        (low, high), number = _LIMITS[option], parse_size(said)
        if number is None or not low <= number <= high:
            ends = f"{format_size(low)} to {format_size(high)}, such as '64MB'"
            raise SettingsError(f"{name} has {option!r}: {said!r}. Set it to a size from {ends}.")
        found[option] = number
    return Options(**found)


def parse_size(said: object) -> int | None:
    """Parse a size; None if it is none."""
    if type(said) is int:
        return said
    read = _SIZE.fullmatch(said.strip()) if isinstance(said, str) else None
    return round(float(read[1]) * _UNITS[read[2].upper()]) if read else None


def format_size(size: int) -> str:
    """Format a round size.

    >>> format_size(64 * 2**10), format_size(2**30), format_size(0)
    ('64kB', '1GB', '0')
    """
    for unit, bytes in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size and size % bytes == 0:
            return f"{size // bytes}{unit}"
    return str(size)
