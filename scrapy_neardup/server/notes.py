"""Entries of the stream of counts: the sentences that a crawler has counted, for the others to count."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scrapy_neardup.state.sentence_counts import Sentences

#: Notes in the stream, about; a page has two.
_MOST = 40_000
#: Notes in one entry, at most. A crawl publishes when it has so many, or once a second.
TOGETHER = 128
_HEAD = struct.Struct(">8sH")
_ONE = struct.Struct(">BHI")
#: Bits of the first byte of a note.
_YES, _FORM, _SAME_SITE = 1, 2, 4


class Note(NamedTuple):
    """The sentences of one page of a site; ``yes``: count them for all sites.

    Without sentences it says whether a page of the site is made from a template: see ``note_form``.
    """

    sentences: Sentences | None
    site: str
    yes: bool


def pack_notes(crawler: bytes, notes: Sequence[Note]) -> bytes:
    """Return one entry of the stream. ``crawler`` (8 bytes) has already counted the notes.

    8s crawler · H number of notes · of each: B its bits, H bytes of its site, I number of sentences · the sites,
    without one that repeats the site of the note before · I per sentence.
    """
    heads, sites, sentences, before = list[bytes](), list[bytes](), list[bytes](), None
    for note in notes:
        is_same = note.site == before
        site = b"" if is_same else note.site.encode("utf-8", "surrogatepass")[:65_535]
        packed = b"" if note.sentences is None else note.sentences.astype(">u4").tobytes()
        bits = note.yes * _YES | (note.sentences is None) * _FORM | is_same * _SAME_SITE
        heads.append(_ONE.pack(bits, len(site), len(packed) // 4))
        sites.append(site)
        sentences.append(packed)
        before = note.site
    return b"".join([_HEAD.pack(crawler, len(notes)), *heads, *sites, *sentences])


def unpack_notes(entry: bytes) -> list[Note]:
    """Return what ``pack_notes`` packed; raises ValueError for anything else."""
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
    for bits, size, count in heads:
        if not bits & _SAME_SITE:
            site = entry[at : at + size].decode("utf-8", "surrogatepass")
        notes.append(Note(None if bits & _FORM else sentences[begin : begin + count], site, bool(bits & _YES)))
        at, begin = at + size, begin + count
    return notes


def most_entries(notes: int) -> int:
    """Return the length of the stream, by an entry of so many notes."""
    return max(1, _MOST // max(1, notes))


#: Entries as the server answers them: position and fields.
Entries = list[tuple[bytes, dict[bytes, bytes]]]


def entries_of(answer: object) -> Entries:
    """Return the entries of the one stream in an answer to XREAD."""
    return [entry for _, entries in answer or () for entry in entries]  # type: ignore[attr-defined]
