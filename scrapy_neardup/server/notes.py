"""Entries of the stream of counts: the sentences that a crawler has counted, for the others to count."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scrapy_neardup.state.sentence_counts import Sentences

#: Notes in the stream, about; a page has two.
_MOST = 40_000
#: Notes in one entry, at most. A crawl publishes when it has so many, or once a second.
TOGETHER = 128


class Note(NamedTuple):
    """The sentences of one page of a site; ``yes``: count them for all sites.

    Without sentences it says whether a page of the site is made from a template: see ``note_form``.
    """

    sentences: Sentences | None
    site: str
    yes: bool


def pack_notes(crawler: bytes, notes: Sequence[Note]) -> bytes:
    """Return one entry of the stream. ``crawler`` (8 bytes) has already counted the notes.

    8s crawler · I length of the JSON · JSON: of each note its site, ``yes``, and the number of sentences or null · I
    per sentence.
    """
    counts = [None if note.sentences is None else len(note.sentences) for note in notes]
    head = json.dumps([(note.site, note.yes, count) for note, count in zip(notes, counts, strict=True)]).encode()
    sentences = (note.sentences.astype(">u4").tobytes() for note in notes if note.sentences is not None)
    return b"".join([crawler, struct.pack(">I", len(head)), head, *sentences])


def unpack_notes(entry: bytes) -> list[Note]:
    """Return what ``pack_notes`` packed; raises ValueError for anything else."""
    try:
        end = 12 + struct.unpack_from(">I", entry, 8)[0]
        heads = [(str(site), bool(yes), count) for site, yes, count in json.loads(entry[12:end])]
        sentences = np.frombuffer(entry, ">u4", offset=end).astype(np.uint32)
        ends = np.cumsum([0, *(count or 0 for _, _, count in heads)], dtype=int)
    except (struct.error, TypeError) as error:
        raise ValueError(str(error)) from None
    if ends[-1] != len(sentences):
        raise ValueError(f"{len(sentences)} sentences are too few or too many")
    return [
        Note(None if count is None else sentences[begin : begin + count], site, yes)
        for begin, (site, yes, count) in zip(ends, heads, strict=False)
    ]


def most_entries(notes: int) -> int:
    """Return the length of the stream, by an entry of so many notes."""
    return max(1, _MOST // max(1, notes))


#: Entries as the server answers them: position and fields.
Entries = list[tuple[bytes, dict[bytes, bytes]]]


def entries_of(answer: object) -> Entries:
    """Return the entries of the one stream in an answer to XREAD."""
    return [entry for _, entries in answer or () for entry in entries]  # type: ignore[attr-defined]
