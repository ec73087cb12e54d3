"""What a state says of its own rows, so that one that is missing or has changed is noticed.

The tally is a row of its own, written with every batch. What the database holds is checked against it by reading all
rows once; that the database is not as a whole an older one, its witness tells (see ``Witness``).
"""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

import farmhash

from scrapy_neardup.hashing import compiled
from scrapy_neardup.stores.layout import meta_key

#: Under which it stands; it does not cover itself.
KEY = meta_key("tally")
#: First bytes of keys that it does not cover, as records tell which there must be: see ``Recount``.
DERIVED = b"kux"
#: Of those that come with a page and end in its id: its record is the first of them.
_OF_PAGES = b"rej"
#: Of the key of a record.
RECORD = _OF_PAGES[0]
_PACKED = struct.Struct(">8sQQQ?")
#: Of the sum as many bits are kept.
MASK = 0xFFFFFFFFFFFFFFFF


class RowTally(NamedTuple):
    """``state`` is drawn when a state is begun; ``sequence`` counts its writes; ``total`` is the sum over its rows.

    ``closed``: whether the write was the last before a clean close. A tuple, as one is made at every write.
    """

    state: bytes
    sequence: int = 0
    pages: int = 0
    total: int = 0
    closed: bool = False

    @classmethod
    def new(cls) -> RowTally:
        """That of a state that is about to be begun."""
        return cls(os.urandom(8))

    def pack(self) -> bytes:
        """33 bytes."""
        return _PACKED.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> RowTally:
        """What ``pack`` wrote; raises ValueError for anything else."""
        try:
            return cls(*_PACKED.unpack(packed))
        except struct.error as error:
            raise ValueError(str(error)) from None


def of_row(key: bytes, value: bytes) -> int:
    """The share of one row in the sum. Of a row whose key ends elsewhere it is another, though the bytes are the same.

    Farmhash, as a disk forges nothing: a cryptographic hash takes five times as long, at every row of every write.
    """
    share: int = farmhash.fingerprint64(key + value) + len(key)
    return share


def of_rows(rows: dict[bytes, bytes], largest: int) -> tuple[int, int, list[bytes]]:
    """The shares of rows that are written, how many of these are records that are new, and which rows may be old ones.

    ``largest``: no row of a page with a larger id is there yet. Called for every page.
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.shares_of_rows(rows, farmhash.fingerprint64, DERIVED, KEY, _OF_PAGES, largest)
    total = new = 0
    unsure = []
    for key, value in rows.items():
        if key[0] in DERIVED or key == KEY:
            continue
        total += of_row(key, value)
        if key[0] in _OF_PAGES and int.from_bytes(key[-8:], "big") > largest:
            new += key[0] == RECORD
        else:
            unsure.append(key)
    return total & MASK, new, unsure


def check_bytes(key: bytes, value: bytes) -> bytes:
    """Four bytes by which a row is known to be the one that was written, where the database does not see to that."""
    return (of_row(key, value) & 0xFFFFFFFF).to_bytes(4, "big")
