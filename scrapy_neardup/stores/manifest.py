"""What a manifest of LevelDB names: the tables of the database, and the first log that is not in them.

A log of edits, each a record of pieces in blocks of 32 kB (leveldb/doc/log_format.md, db/version_edit.cc). Checksums
are left to LevelDB, which reads it after us.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_BLOCK = 32768
#: Checksum, length and type of a piece: 1 a whole record, 2 its first, 3 a middle, 4 its last one.
_PIECE = struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4
#: What an edit holds, by its tag: n a number, s bytes.
_EDITS = {1: "s", 2: "n", 3: "n", 4: "n", 5: "ns", 6: "nn", 7: "nnnss", 9: "n"}
_LOG, _NEXT, _DELETED, _NEW = 2, 3, 6, 7


@dataclass(slots=True)
class Manifest:
    """``tables``: number and size of each; ``next``: larger than the number of any file; ``log``: its number."""

    tables: dict[int, int] = field(default_factory=dict)
    next: int = 0
    log: int = 0


def read_manifest(packed: bytes) -> Manifest:
    """What the edits come to, up to one that is not all there; raises ValueError for what is no manifest."""
    found = Manifest()
    for record in _records(packed):
        for tag, values in _edit(record):
            if tag == _LOG:
                found.log = values[0]
            elif tag == _NEXT:
                found.next = values[0]
            elif tag == _DELETED:
                found.tables.pop(values[1], None)
            elif tag == _NEW:
                found.tables[values[1]] = values[2]
    return found


def _records(packed: bytes) -> Iterator[bytes]:
    at, record = 0, b""
    while at + _PIECE.size <= len(packed):
        left = _BLOCK - at % _BLOCK
        if left < _PIECE.size:  # no piece begins in the last bytes of a block
            at += left
            continue
        _, length, kind = _PIECE.unpack_from(packed, at)
        at += _PIECE.size
        piece = packed[at : at + length]
        if len(piece) < length or not kind:
            return
        at += length
        record = piece if kind in (_WHOLE, _FIRST) else record + piece
        if kind in (_WHOLE, _LAST):
            yield record


def _edit(record: bytes) -> Iterator[tuple[int, list[int]]]:
    """Tags with their numbers; bytes are passed over."""
    at = 0
    while at < len(record):
        tag, at = _number(record, at)
        if tag not in _EDITS:
            raise ValueError(f"its manifest holds an edit of an unknown kind, {tag}")
        values = []
        for kind in _EDITS[tag]:
            value, at = _number(record, at)
            if kind == "n":
                values.append(value)
            else:
                at += value
        yield tag, values


def _number(packed: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while at < len(packed):
        byte = packed[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("its manifest ends within a number")
