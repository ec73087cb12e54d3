"""Where the rows of a state lie on a Redis server.

Pages, journals and drops lie in hashes of neighbours, which the directory lists. URLs and postings are spread by a hash
over many small hashes and sorted sets: a level has 2**bits of them. A growing state moves on to the next level, and old
rows stay where they are. All other rows are in one hash for each first letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

#: Bits of each level, and the largest number of pages that a state files on it.
_LEVELS = ((12, 37_000), (16, 600_000), (20, 9_600_000), (24, 2**63))
#: The bytes of a URL's hash or of a key that decide where a row lies.
_PARTS = {b"u": slice(4), b"k": slice(-4, None)}
#: Pages of 2**35 nanoseconds (34 seconds) lie together.
_TOGETHER = 35
#: Names of keys: the sorted set of listed hashes,
DIRECTORY = b"/"
#: the number of pages,
COUNTER = b"#"
#: the highest level in use,
HIGHEST = b"^"
#: the crawls that somebody rolls back,
GIVEN_UP = b"!"
#: the sorted set of pages in flight, by URL and key,
PENDING = b"w"
#: and the stream of counted sentences.
STREAM = b"+"
_BY_TIME, _BY_CRAWL = b"re", b"jdo"
_ID, _PAIR = 9, 17
#: Length of a row of postings.
_POSTING = 14


class OnLevels(NamedTuple):
    """Names of keys that a state has on each level: for hashes of URLs, or for keys of pages."""

    letter: bytes
    keys: tuple[bytes, ...]

    def names(self, levels: int = len(_LEVELS)) -> tuple[bytes, ...]:
        """Return the names on the lowest ``levels``."""
        return tuple(name for level in range(levels) for name in names_on(self.letter, self.keys, level))


Names = tuple[bytes, ...] | OnLevels


class Spot(NamedTuple):
    """Where a row lies: the keys that may hold it, its field there, and the name by which the directory lists them."""

    names: Names
    field: bytes
    listed: bytes = b""


def level_of(pages: int) -> int:
    """Return the level on which a state of so many pages files."""
    return next(level for level, (_, most) in enumerate(_LEVELS) if pages < most)


def spot(row: bytes) -> Spot:
    """Return where a row lies that is no posting. A URL may lie on each level."""
    letter, size = row[:1], len(row)
    if is_url(row):
        return Spot(OnLevels(b"u", (row[1:],)), row[1:])
    if letter in _BY_TIME and size == _ID:
        name, field = _time_name(letter, row[1:]), row[1:]
    elif letter in _BY_CRAWL and size == _PAIR:
        name, field = row[:9], row[9:]
    else:
        name, field = b"*" + letter, row
    return Spot((name,), field, name)


def is_url(row: bytes) -> bool:
    """Whether a row names the page of a URL and the time at which that was last seen."""
    return row[:1] == b"u" and len(row) == _ID


def is_posting(row: bytes) -> bool:
    """Whether a row files a page under a key."""
    return row[:1] == b"k" and len(row) == _POSTING


def names_on(letter: bytes, keys: Iterable[bytes], level: int) -> list[bytes]:
    """Return the names of the sets on one level for ``keys``: hashes of URLs, or keys of pages.

    The last four bytes of a page's key decide: keys are the smallest of many hashes, so their first bytes are alike.
    """
    begin, shift, part = b"%b%c" % (letter, 65 + level), 32 - _LEVELS[level][0], _PARTS[letter]
    return [begin + (int.from_bytes(key[part], "big") >> shift).to_bytes(3, "big") for key in keys]


def rows_of(name: bytes, fields: Sequence[bytes]) -> list[bytes]:
    """Return the rows that lie in these fields of a hash."""
    if name[:1] == b"*":
        return list(fields)
    head = name if name[:1] in _BY_CRAWL else name[:1]
    return [head + field for field in fields]


def names_between(prefix: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the first and last name in the directory for rows that begin with ``prefix``, and the hash for others."""
    letter = prefix[:1]
    if letter in _BY_TIME and letter:
        low, high = prefix[1:].ljust(8, b"\0")[:8], prefix[1:].ljust(8, b"\xff")[:8]
        return _time_name(letter, low), _time_name(letter, high), b"*" + letter
    return prefix[:9], prefix[:9].ljust(9, b"\xff"), b"*" + letter


def first_bits(name: bytes) -> int:
    """Return the bits of a name that all levels have: names of all levels are sorted by them."""
    bits, _ = _LEVELS[name[1] - 65]
    return int.from_bytes(name[2:], "big") >> bits - _LEVELS[0][0]


def lease_name(crawl: int) -> bytes:
    """Return the name of the lease of a crawl."""
    return b"L" + crawl.to_bytes(8, "big")


def pending_name(crawl: int) -> bytes:
    """Return the name of the hash with the records of a crawl's pages in flight."""
    return b"p" + crawl.to_bytes(8, "big")


def number_name(number: int) -> bytes:
    """Return the name of the lease of a number: its holder alone gives ids that end in it."""
    return b"N" + number.to_bytes(2, "big")


def _time_name(letter: bytes, id: bytes) -> bytes:
    return letter + (int.from_bytes(id, "big") >> _TOGETHER).to_bytes(4, "big")
