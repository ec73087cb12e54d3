"""How a store is to use memory: NEARDUP_STORE_OPTIONS."""

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
    """Of every option the value that was found best, or what somebody has said. Each store takes those that it has.

    They change how fast a state is, and never what is in it: they may be others with each opening.
    """

    #: What was read is kept in so many bytes, unpacked (LevelDB, SQLite).
    cache: int = _size(8 * _MB, 0, 2**40)
    #: What was written is held in so many bytes, and in the log, until it is sorted into the files (LevelDB).
    write_buffer: int = _size(16 * _MB, 64 * 2**10, 2**30)
    #: Bits for each row by which it is known that there is none; 0: none (LevelDB). Files keep those that they have.
    bloom: int = _number(10, 0, 64)
    #: Files that are kept open, and mapped into memory (LevelDB).
    open_files: int = _number(1000, 74, 50_000)
    #: Bytes of neighbouring rows that are packed together, and unpacked to read one of them (LevelDB). Files keep those
    #: that they have.
    block: int = _size(16 * 2**10, 2**10, 2**20)


#: What was found best.
DEFAULT = Options()


def read_options(name: str, value: Mapping[str, Any]) -> Options:
    """The options in the setting ``name``; raises SettingsError that says what may be there."""
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
        number = _bytes(said) if limits["size"] else said
        if type(number) is not int or not limits["low"] <= number <= limits["high"]:
            kind = "a size" if limits["size"] else "a whole number"
            low, high = (format_size(limits[end]) if limits["size"] else f"{limits[end]:,}" for end in ("low", "high"))
            such = ", such as '64MB'" if limits["size"] else ""
            raise SettingsError(f"{name} has {option!r}: {said!r}. Set it to {kind} from {low} to {high}{such}.")
        found[option] = number
    return Options(**found)


def _bytes(said: object) -> int | None:
    """A size in bytes, of a number or of what ``_SIZE`` reads; None for anything else."""
    if type(said) is int:
        return said
    read = _SIZE.fullmatch(said.strip()) if isinstance(said, str) else None
    return round(float(read[1]) * _UNITS[read[2].upper()]) if read else None


def format_size(size: int) -> str:
    """A size as it may be written, where it is a round one.

    >>> format_size(64 * 2**10), format_size(2**30), format_size(0)
    ('64kB', '1GB', '0')
    """
    for unit, bytes in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size and size % bytes == 0:
            return f"{size // bytes}{unit}"
    return str(size)
