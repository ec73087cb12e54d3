"""A copy of the files of a LevelDB state at one moment."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

from scrapy_neardup.kv.base import Moving

# The manifest of LevelDB is a log of edits, in pieces in blocks of 32 kB (leveldb/doc/log_format.md,
# db/version_edit.cc). LevelDB verifies its checksums later.


_BLOCK = 32768
#: Checksum, length and type of a piece: 1 a whole record, 2 its first, 3 a middle, 4 its last one.
_PIECE = struct.Struct("<IHB")
_WHOLE, _FIRST, _LAST = 1, 2, 4
#: The contents of an edit by tag: n a number, s bytes.
_EDITS = {1: "s", 2: "n", 3: "n", 4: "n", 5: "ns", 6: "nn", 7: "nnnss", 9: "n"}
_LOG, _NEXT = 2, 3


def read_manifest(packed: bytes) -> tuple[int, int]:
    """Return the number of the first log, and the number above all files, by the edits up to an incomplete one.

    Raises ValueError for another file.
    """
    found = {_LOG: 0, _NEXT: 0}
    for record in _records(packed):
        for tag, number in _edit(record):
            if tag in found:
                found[tag] = number
    return found[_LOG], found[_NEXT]


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


def _edit(record: bytes) -> Iterator[tuple[int, int]]:
    """Yield tags with the last of their numbers; skip bytes."""
    at = number = 0
    while at < len(record):
        tag, at = _number(record, at)
        if tag not in _EDITS:
            raise ValueError(f"its manifest holds an edit of an unknown kind, {tag}")
        for kind in _EDITS[tag]:
            number, at = _number(record, at)
            if kind == "s":
                at += number
        yield tag, number


def _number(packed: bytes, at: int) -> tuple[int, int]:
    """Read a varint; return it and its end."""
    value = shift = 0
    while at < len(packed):
        byte = packed[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
    raise ValueError("its manifest ends within a number")


# Tables never change, so hard links will do. Logs and the manifest only grow, so a copy is a state of an earlier
# moment. A log goes once the manifest names its table. So if the manifest is equal before and after copying, the copy
# is the database at one write in between; LevelDB drops an incomplete last write, as after a kill. Tables above the
# numbers in the manifest are not linked: LevelDB would use their numbers for the copy and write into the original.


_CURRENT = "CURRENT"
_TABLES = (".ldb", ".sst")
_MOVING = "its file CURRENT, or the manifest that it names, is missing or changing"


def checkpoint(files: Path, copy: Path) -> None:
    """Make the folder ``copy`` with the database.

    Raises Moving, ValueError for a damaged manifest, OSError.
    """
    copy.mkdir()
    try:
        current = (files / _CURRENT).read_bytes()
        name = Path(current.decode("ascii", "replace").strip()).name  # of a damaged one it may be anything
        packed = (files / name).read_bytes()
        (copy / _CURRENT).write_bytes(current)
        (copy / name).write_bytes(packed)
        first_log, next_file = read_manifest(packed)
        for file in sorted(files.iterdir()):
            number = int(file.stem) if file.stem.isdigit() else -1
            if file.suffix == ".log" and number >= first_log:
                shutil.copyfile(file, copy / file.name)
            elif file.suffix in _TABLES and number < next_file:
                _link(file, copy / file.name)
        if (files / _CURRENT).read_bytes() != current or (files / name).stat().st_size != len(packed):
            raise Moving(_MOVING)
    except (FileNotFoundError, IsADirectoryError):
        raise Moving(_MOVING) from None


def _link(file: Path, other: Path) -> None:
    try:
        os.link(file, other)
    except FileNotFoundError:
        pass  # it was merged into others; if not, LevelDB misses it
    except OSError:  # another disk, a file of somebody else's, a file system that knows no second names
        shutil.copyfile(file, other)
