"""How the rows of a state lie on a Redis server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Bits of each level, and the pages up to which it is the one that is filed on.
_LEVELS = ((12, 37_000), (16, 600_000), (20, 9_600_000), (24, 2**63))
#: By which of their bytes rows are told apart there.
_PARTS = {b"u": slice(4), b"k": slice(-4, None)}
#: Pages of so many nanoseconds lie together, as a power of two: 34 seconds.
_TOGETHER = 35
DIRECTORY = b"/"
COUNTER = b"#"
HIGHEST = b"^"
GIVEN_UP = b"!"
PENDING = b"w"
_BY_TIME, _BY_CRAWL = b"reo", b"jd"
_ID, _PAIR = 9, 17
#: Length of a row of postings.
_POSTING = 14


class Spot(NamedTuple):
    """Where a row lies: the names of keys in which it may be, and its field or member there.

    ``listed``: whether the directory names the key.
    """

    names: tuple[bytes, ...]
    field: bytes
    listed: bool = True


def level_of(pages: int) -> int:
    """The level on which a state of so many pages files."""
    return next(level for level, (_, most) in enumerate(_LEVELS) if pages < most)


def spot(row: bytes) -> Spot:
    """Where a row lies that is no posting; of a URL on each level."""
    letter, size = row[:1], len(row)
    if letter in _BY_TIME and size == _ID:
        return Spot((_time_name(letter, row[1:]),), row[1:])
    if letter in _BY_CRAWL and size == _PAIR:
        return Spot((row[:9],), row[9:])
    if is_url(row):
        return Spot(_url_names(row[1:]), row[1:], listed=False)
    return Spot((b"*" + letter,), row)


def is_url(row: bytes) -> bool:
    """Whether a row is one that says which page a URL has, and when that was seen."""
    return row[:1] == b"u" and len(row) == _ID


def is_posting(row: bytes) -> bool:
    """Whether a row is one that says by being there that a page is filed under a key."""
    return row[:1] == b"k" and len(row) == _POSTING


def names_on(letter: bytes, keys: Iterable[bytes], level: int) -> list[bytes]:
    """The names of keys in which rows with this letter lie on one level, by the hash of the URL, or by the key.

    Of a posting by the last four bytes of its key.
    """
    begin, shift, part = b"%b%c" % (letter, 65 + level), 32 - _LEVELS[level][0], _PARTS[letter]
    return [begin + (int.from_bytes(key[part], "big") >> shift).to_bytes(3, "big") for key in keys]


def rows_of(name: bytes, fields: Sequence[bytes]) -> list[bytes]:
    """The rows that fields of a hash, or members of a sorted set, stand for."""
    if name[:1] == b"*":
        return list(fields)
    head = name if name[:1] in _BY_CRAWL else name[:1]
    return [head + field for field in fields]


def names_between(prefix: bytes) -> tuple[bytes, bytes, bytes]:
    """For the rows that begin with ``prefix``: first and last name in the directory, and the name of the other rows.

    The last one is that of a hash for rows of any form.
    """
    letter = prefix[:1]
    if letter in _BY_TIME and letter:
        low, high = prefix[1:].ljust(8, b"\0")[:8], prefix[1:].ljust(8, b"\xff")[:8]
        return _time_name(letter, low), _time_name(letter, high), b"*" + letter
    return prefix[:9], prefix[:9].ljust(9, b"\xff"), b"*" + letter


def first_bits(name: bytes) -> int:
    """Of a name with a level those bits that all levels share: they tell in what order names come."""
    bits, _ = _LEVELS[name[1] - 65]
    return int.from_bytes(name[2:], "big") >> bits - _LEVELS[0][0]


def lease_name(crawl: int) -> bytes:
    """Under which it stands who is at work on a crawl; no row."""
    return b"L" + crawl.to_bytes(8, "big")


def pending_name(crawl: int) -> bytes:
    """Where the pages of a crawl stand that are on their way; no rows."""
    return b"p" + crawl.to_bytes(8, "big")


def number_name(number: int) -> bytes:
    """Under which it stands who gives ids with this number; no row."""
    return b"N" + number.to_bytes(2, "big")


def _time_name(letter: bytes, id: bytes) -> bytes:
    return letter + (int.from_bytes(id, "big") >> _TOGETHER).to_bytes(4, "big")


def _url_names(hash: bytes) -> tuple[bytes, ...]:
    return tuple(name for level in range(len(_LEVELS)) for name in names_on(b"u", (hash,), level))
