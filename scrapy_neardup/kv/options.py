"""NEARDUP_STORE_OPTIONS: how a store uses memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from scrapy_neardup.errors import SettingsError

_UNITS = {"": 1, "B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?B|)", re.IGNORECASE)
_MB = 2**20


def _size(default: int, low: int, high: int) -> int:
    found: int = field(default=default, metadata={"low": low, "high": high, "size": True})
    return found


def _number(default: int, low: int, high: int) -> int:
    found: int = field(default=default, metadata={"low": low, "high": high, "size": False})
    return found


@dataclass(frozen=True, slots=True)
class Options:
    """Options of all stores; each store uses its own.

    They change speed, never contents, and may differ with each opening.
    """

    #: Bytes of cache for reads (LevelDB, SQLite).
    cache: int = _size(8 * _MB, 0, 2**40)
    #: Bytes of writes in memory, and in the log, before they are sorted into files (LevelDB).
    write_buffer: int = _size(16 * _MB, 64 * 2**10, 2**30)
    #: Bits per row of the Bloom filter; 0: none (LevelDB). Existing files keep theirs.
    bloom: int = _number(10, 0, 64)
    #: Files to keep open and mapped into memory (LevelDB).
    open_files: int = _number(1000, 74, 50_000)
    #: Bytes of neighbouring rows that are compressed together (LevelDB). Existing files keep theirs.
    block: int = _size(16 * 2**10, 2**10, 2**20)


#: The fastest values that we measured.
DEFAULT = Options()


def read_options(name: str, value: Mapping[str, Any]) -> Options:
    """Read the options. Raises SettingsError."""
    known = {one.name: one for one in fields(Options)}
    found: dict[str, int] = {}
    for option, said in value.items():
        if option not in known:
            close = get_close_matches(str(option), known, 1)
            raise SettingsError(
                f"{name} has no option {option!r}.{f' Did you mean {close[0]!r}?' if close else ''} "
                f"The options are: {', '.join(known)}."
            )
        limits = known[option].metadata
        number = parse_size(said) if limits["size"] else said
        if type(number) is not int or not limits["low"] <= number <= limits["high"]:
            kind = "a size" if limits["size"] else "a whole number"
            low, high = (format_size(limits[end]) if limits["size"] else f"{limits[end]:,}" for end in ("low", "high"))
            such = ", such as '64MB'" if limits["size"] else ""
            raise SettingsError(f"{name} has {option!r}: {said!r}. Set it to {kind} from {low} to {high}{such}.")
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
