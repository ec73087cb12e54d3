"""What is counted is told to all: each page's sentences stand in a stream, from which every crawler counts them too.

The counts themselves (``recurrence``) are a table in the memory of each crawler, and of the state the blocks ``b`` as
of one place in the stream. Who opens the state reads the blocks, and the stream from that place on; who closes it
writes the blocks anew, with the place up to which they count, if nobody did in between. The stream is bounded: what no
blocks have counted when it goes is not counted, and counts are never too high.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from scrapy_neardup.stores.layout import meta_key
from scrapy_neardup.stores.recurrence import Sentences

#: The stream, which is no row, and the row with the place up to which the blocks count.
STREAM = b"+"
COUNTED = meta_key("counted")
#: Before the first entry.
BEGINNING = b"0-0"
#: Entries that the stream holds, about; a page has one.
MOST = 20_000
#: Entries that are read at a time.
CHUNK = 1000
_HEAD = struct.Struct(">8sBH")
#: Bits of the byte that says what a note is.
_YES, _FORM = 1, 2


class Note(NamedTuple):
    """The sentences of one page: who has counted them already, of which site, and whether (``yes``) for all sites.

    Without sentences it says of a page of the site whether it was in a form: see ``Forms``.
    """

    who: bytes
    sentences: Sentences | None
    site: str
    yes: bool

    def pack(self) -> bytes:
        site = self.site.encode("utf-8", "surrogatepass")[:65_535]
        sentences = b"" if self.sentences is None else self.sentences.astype(">u4").tobytes()
        what = self.yes * _YES | (self.sentences is None) * _FORM
        return _HEAD.pack(self.who, what, len(site)) + site + sentences

    @classmethod
    def unpack(cls, packed: bytes) -> Note:
        """What ``pack`` wrote; raises ValueError for anything else."""
        try:
            who, what, size = _HEAD.unpack_from(packed)
            begin = _HEAD.size + size
            site = packed[_HEAD.size : begin].decode("utf-8", "surrogatepass")
            sentences = None if what & _FORM else np.frombuffer(packed[begin:], ">u4").astype(np.uint32)
            return cls(who, sentences, site, bool(what & _YES))
        except struct.error as error:
            raise ValueError(str(error)) from None


#: As the server answers: the place of an entry, and its fields.
Entries = Iterable[tuple[bytes, dict[bytes, bytes]]]


def entries_of(answer: object) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of the one stream that was asked for."""
    return [entry for _, entries in answer or () for entry in entries]  # type: ignore[attr-defined]


def others(entries: Entries, who: bytes) -> Iterator[Note]:
    """The notes of others."""
    for _, fields in entries:
        note = Note.unpack(fields[b"n"])
        if note.who != who:
            yield note
