"""Where the rows of a state lie on a Redis server.

Each row lies in a hash. Its name is the first part of the row's key, and the field is the rest. So neighbours lie
together: the pages of four seconds, or the unsealed pages of a crawl. The directory lists these hashes. URLs and
postings are spread over many small hashes and sorted sets, which Redis packs: a level has 2**bits of them. A growing
state moves on to the next level, and old rows stay where they are.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from scrapy_neardup.state.layout import meta_key

#: Bits of each level, and the largest number of pages that a state files on it.
_LEVELS = ((12, 37_000), (16, 600_000), (20, 9_600_000), (24, 2**63))
#: The four bytes of a URL's hash, and of a key, that decide where a row lies. Keys are the smallest of many hashes, so
#: their first bytes are alike.
_DECIDING = {b"u": Struct(">I4x"), b"k": Struct(">xI")}
#: Kinds of rows that lie in hashes of neighbours, and the length of the names of these hashes.
NEIGHBOURS = {b"r": 5, b"e": 5, b"o": 8, b"d": 9, b"j": 9}
#: Lengths of the keys of rows: of a URL, of a posting, and of ``filing_of``.
_URL, _POSTING, _FILING = 9, 14, 9

#: The row with the position in the stream that the blocks of counts include.
COUNTED = meta_key("counted")

# Names of keys that hold no rows. A hash with rows has a name of one character, or its name begins with such a letter.
#: The sorted set of hashes with rows, except of URLs,
DIRECTORY = b"~/"
#: the number of pages,
COUNTER = b"~#"
#: the highest level in use,
HIGHEST = b"~^"
#: the crawls that somebody rolls back,
GIVEN_UP = b"~!"
#: the pages in flight: their places under the hash of each URL and key,
PENDING = b"~w"
#: and the stream of counted sentences.
STREAM = b"~+"


class OnLevels(NamedTuple):
    """Names of keys that a state has on each level: for hashes of URLs, or for keys of pages, joined."""

    letter: bytes
    keys: bytes

    def names(self, levels: int) -> tuple[bytes, ...]:
        """Return the names on the lowest ``levels``."""
        found = names_on(self.letter, self.keys, 0)
        for level in range(1, levels):
            found += names_on(self.letter, self.keys, level)
        return found


Names = tuple[bytes, ...] | OnLevels


def level_of(pages: int) -> int:
    """Return the level on which a state of so many pages files."""
    return next(level for level, (_, most) in enumerate(_LEVELS) if pages < most)


def place_of(row: bytes) -> tuple[Names, bytes]:
    """Return the keys that may hold a row that is no posting, and its field there. A URL may lie on each level."""
    letter = row[:1]
    if letter == b"u" and len(row) == _URL:  # else it is no row of ours
        return OnLevels(letter, row[1:]), row[1:]
    size = NEIGHBOURS.get(letter, 1)
    return (row[:size],), row[size:]


def is_posting(row: bytes) -> bool:
    """Whether a row files a page under a key."""
    return row[:1] == b"k" and len(row) == _POSTING


def filing_of(id: bytes) -> bytes:
    """Return the key of a row that replaces all new postings of a page in a batch: its value is the joined keys."""
    return b"k" + id


def is_filing(row: bytes) -> bool:
    """Whether a row replaces all new postings of a page."""
    return row[:1] == b"k" and len(row) == _FILING


@lru_cache(4096)  # a page's keys are looked up and then filed
def names_on(letter: bytes, keys: bytes, level: int) -> tuple[bytes, ...]:
    """Return the names of the sets on one level for joined ``keys``: the letter, the level, and bits of the key."""
    begin, unused = b"%b%c" % (letter, 65 + level), 32 - _LEVELS[level][0]
    found = _DECIDING[letter].iter_unpack(keys)
    return tuple([begin + (bits >> unused << unused).to_bytes(4, "big")[:3] for (bits,) in found])


def first_bits(name: bytes) -> int:
    """Return the bits of a name that all levels have."""
    return int.from_bytes(name[2:4], "big") >> 4


def lease_name(crawl: bytes) -> bytes:
    """Return the name of the lease of a crawl, by its packed id."""
    return b"L" + crawl


def pending_name(crawl: bytes) -> bytes:
    """Return the name of the hash with the records of a crawl's pages in flight."""
    return b"p" + crawl


def once_name(token: bytes) -> bytes:
    """Return the name of a lease that says that a program ran."""
    return b"~n" + token


def number_name(number: int) -> bytes:
    """Return the name of the lease of a number: only its holder gives ids that end in it."""
    return b"N" + number.to_bytes(2, "big")
