"""How the state is written down, the same in every ordered store. Integers are big-endian.

    m + name                    about the state: its recipe (JSON), its secret, its tally (see ``RowTally``), and the
                                frontier of its expiry
    r + id                      a page: see ``Record``
    e + id                      its evidence: see ``Evidence``
    u + hash of the URL         id of the page's newest record (8 bytes), time it was last seen (4 bytes, seconds)
    k + key                     ids of the pages under this key of 5 bytes. A page that is better than its original is
                                also listed under the id of its group: see ``newest_replacement``
    k + key + id                further pages under a key: this id, and others in the value: see ``Postings``
    c + generation              a crawl, by the time of its beginning (JSON): see ``maintenance/tables``
    h + hash of a site          how many of its pages were judged, and dropped (JSON): see ``maintenance/tables``
    d + generation + id         a page that a crawl dropped as a copy, in that order: see ``judge/lists``
    n + hash of the URL         a manual verdict (JSON): see ``judge/lists``
    g + generation              a crawl that has unsealed pages (JSON: who, and the directory of its job)
    o + last seen + id          a page that was seen again, in the order of expiry: see ``expiry``
    b + block                   counts of sentences, 64 buckets of them, compressed, and of forms: see ``Counts``
    j + generation + id         an unsealed page; value: id of the record that it replaces, or nothing

Ids are the nanoseconds since 1970 at which a page was first seen, each larger than the last and a multiple of 65,536
(on a server the lowest 12 bits tell the crawler): newest first is a reverse scan, and the oldest come first where pages
expire.
"""

from __future__ import annotations

import struct
from functools import partial

from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.hashing.keys import pack_key

#: The number of this layout. A state with another number is refused.
FORMAT = 7

#: Kinds of rows: the first byte of their keys.
RECORDS, GENERATIONS, UNSEALED, QUEUE = b"r", b"g", b"j", b"o"

_ID = struct.Struct(">Q")
_PREFIX = struct.Struct(">cQ")
_PAIR = struct.Struct(">cQQ")
_SEEN = struct.Struct(">QI")
#: Characters of a URL that a record has room for: no character has more than four bytes.
_LONGEST_URL = 65535 // 4


def kept_url(url: str) -> str:
    """Return a URL as a record keeps it: the end of a very long one is replaced by a hash of the whole."""
    if len(url) <= _LONGEST_URL:
        return url
    end = f"#{OPEN.of(url):016x}"
    return url[: _LONGEST_URL - len(end)] + end


def meta_key(name: str) -> bytes:
    """m + name."""
    return b"m" + name.encode()


record_key = partial(_PREFIX.pack, RECORDS)
evidence_key = partial(_PREFIX.pack, b"e")
crawl_key = partial(_PREFIX.pack, b"c")
generation_key = partial(_PREFIX.pack, GENERATIONS)
#: The beginning of a crawl's unsealed pages, and the keys of these: generation, id.
journal_prefix = partial(_PREFIX.pack, UNSEALED)
journal_key = partial(_PAIR.pack, UNSEALED)
#: The beginning of a crawl's drops, and their keys: generation, id.
drops_prefix = partial(_PREFIX.pack, b"d")
drop_key = partial(_PAIR.pack, b"d")
#: A page in the order of expiry: seconds since 1970, id.
queue_key = partial(_PAIR.pack, QUEUE)


def url_key(url: str, hashes: Keyed) -> bytes:
    """u + the keyed hash of a URL."""
    return _PREFIX.pack(b"u", hashes.of(kept_url(url)))


def posting_key(key: int, id: int) -> bytes:
    """k + key + id."""
    return b"k" + pack_key(key) + id.to_bytes(8, "big")


def site_key(site: str) -> bytes:
    """h + the hash of a site."""
    return _PREFIX.pack(b"h", OPEN.of(site))


def judgement_key(url: str, hashes: Keyed) -> bytes:
    """n + the hash of a URL."""
    return b"n" + url_key(url, hashes)[1:]


def generation_of(journal: bytes) -> int:
    """Return the first number of a key with two: the generation of an unsealed page or a drop."""
    return int.from_bytes(journal[1:9], "big")


def block_key(block: int) -> bytes:
    """b + the number of the block, 2 bytes."""
    return b"b" + block.to_bytes(2, "big")


def unpack_block(key: bytes) -> int:
    """Return the number of a block. Raises ValueError for another key."""
    if len(key) != len(block_key(0)):
        raise ValueError(f"{key!r} is no key of counted sentences")
    return int.from_bytes(key[1:], "big")


def last_id(key: bytes) -> int:
    """Return the id at the end of a key or a value; 0 for nothing."""
    return int.from_bytes(key[-8:], "big")


def pack_id(id: int) -> bytes:
    """Pack the id of a replaced record; nothing for 0."""
    return _ID.pack(id) if id else b""


def pack_seen(id: int, seconds: float) -> bytes:
    """Pack the row of a URL: newest record, last seen."""
    return _SEEN.pack(id, min(int(seconds), 0xFFFFFFFF))


def unpack_seen(packed: bytes) -> tuple[int, int]:
    """Unpack the row of a URL."""
    id, seconds = _SEEN.unpack(packed)
    return id, seconds
