"""What is counted is told to all: the sentences of pages stand in a stream, from which every crawler counts them too.

The counts themselves (``recurrence``) are a table in the memory of each crawler, and of the state the blocks ``b`` as
of one place in the stream. Who opens the state reads the blocks, and the stream from that place on; who closes it
writes the blocks anew, with the place up to which they count, if nobody did in between. The stream is bounded: what no
blocks have counted when it goes is not counted, and counts are never too high.

A crawl tells of many pages at once, as each entry costs whoever reads it more than the page in it: once a second, or
when so many pages are to be told of. One that is killed takes what it had not told with it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scrapy_neardup.stores.layout import meta_key
from scrapy_neardup.stores.recurrence import Sentences

#: The stream, which is no row, and the row with the place up to which the blocks count.
STREAM = b"+"
COUNTED = meta_key("counted")
#: Before the first entry.
BEGINNING = b"0-0"
#: Notes that the stream holds, about; a page has two.
_MOST = 40_000
#: Notes that are told of in one entry, at most; and when it is time to tell of them.
TOGETHER = 128
#: Entries that are read at a time: by who has nothing else to do, and by a loop that must not be held up.
CHUNK, FEW = 500, 16
_HEAD = struct.Struct(">8sH")
_ONE = struct.Struct(">BHI")
#: Bits of the byte that says what a note is.
_YES, _FORM, _SAME_SITE = 1, 2, 4


class Note(NamedTuple):
    """The sentences of one page: of which site, and whether (``yes``) they are to be counted for all sites.

    Without sentences it says of a page of the site whether it was in a form: see ``Forms``.
    """

    sentences: Sentences | None
    site: str
    yes: bool


def packed(who: bytes, notes: Sequence[Note]) -> bytes:
    """As they stand in one entry. ``who`` (8 bytes) has counted them already.

    8s who · H number of notes · of each B what it is · H bytes of its site · I number of sentences · the sites,
    but for one that is that of the note before · I per sentence.
    """
    heads, sites, sentences, before = list[bytes](), list[bytes](), list[bytes](), None
    for note in notes:
        is_same = note.site == before
        site = b"" if is_same else note.site.encode("utf-8", "surrogatepass")[:65_535]
        found = b"" if note.sentences is None else note.sentences.astype(">u4").tobytes()
        what = note.yes * _YES | (note.sentences is None) * _FORM | is_same * _SAME_SITE
        heads.append(_ONE.pack(what, len(site), len(found) // 4))
        sites.append(site)
        sentences.append(found)
        before = note.site
    return b"".join([_HEAD.pack(who, len(notes)), *heads, *sites, *sentences])


def unpacked(entry: bytes) -> list[Note]:
    """What ``packed`` made; raises ValueError for anything else."""
    try:
        _, many = _HEAD.unpack_from(entry)
        heads = [_ONE.unpack_from(entry, _HEAD.size + n * _ONE.size) for n in range(many)]
    except struct.error as error:
        raise ValueError(str(error)) from None
    at = _HEAD.size + many * _ONE.size
    first = at + sum(size for _, size, _ in heads)
    if len(entry) != first + 4 * sum(count for _, _, count in heads):
        raise ValueError(f"{len(entry)} bytes are too few or too many for {many} notes")
    sentences, begin = np.frombuffer(entry, ">u4", offset=first).astype(np.uint32), 0
    notes, site = list[Note](), ""
    for what, size, count in heads:
        if not what & _SAME_SITE:
            site = entry[at : at + size].decode("utf-8", "surrogatepass")
        notes.append(Note(None if what & _FORM else sentences[begin : begin + count], site, bool(what & _YES)))
        at, begin = at + size, begin + count
    return notes


def most_entries(notes: int) -> int:
    """How many entries the stream is to hold, by one that has so many notes."""
    return max(1, _MOST // max(1, notes))


#: As the server answers: the place of an entry, and its fields.
Entries = Iterable[tuple[bytes, dict[bytes, bytes]]]


def entries_of(answer: object) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of the one stream that was asked for."""
    return [entry for _, entries in answer or () for entry in entries]  # type: ignore[attr-defined]


def others(entries: Entries, who: bytes) -> Iterator[Note]:
    """The notes of others."""
    for _, fields in entries:
        if fields[b"n"][: len(who)] != who:
            yield from unpacked(fields[b"n"])
