"""Entries of the stream of counts: the sentences that a crawler has counted, for the others to count."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
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

    8s crawler · JSON: of each note its sentences (null, or in base64, I per sentence), its site, and ``yes``.
    """
    rows = [
        (None if note.sentences is None else b64encode(note.sentences.astype(">u4").tobytes()).decode(), *note[1:])
        for note in notes
    ]
    return crawler + json.dumps(rows).encode()


def unpack_notes(entry: bytes) -> list[Note]:
    """Return what ``pack_notes`` packed; raises ValueError for anything else."""
    try:
        return [
            Note(None if packed is None else np.frombuffer(b64decode(packed), ">u4").astype(np.uint32), site, yes)
            for packed, site, yes in json.loads(entry[8:])
        ]
    except TypeError as error:
        raise ValueError(str(error)) from None


def most_entries(notes: int) -> int:
    """Return the length of the stream, by an entry of so many notes."""
    return max(1, _MOST // max(1, notes))


#: Entries as the server answers them: position and fields.
Entries = list[tuple[bytes, dict[bytes, bytes]]]
