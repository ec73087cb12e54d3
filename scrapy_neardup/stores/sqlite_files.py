"""What can be told of SQLite's file without SQLite, which writes to what it opens; and what its errors mean."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from pathlib import Path

from scrapy_neardup.errors import StoreError, StoreMismatch

#: "ndup" in the header of the file, so that a database of somebody else's is never written to.
APPLICATION = 0x6E647570
#: How the rows are laid out; 1 had no checksums.
VERSION = 2
_MAGIC = b"SQLite format 3\0"
#: At the 60th byte: version of the user's, encoding of increments, application.
_HEADER = struct.Struct(">I4xI")
_CHUNK = 2**20
#: What SQLite says where the file is not to blame; "locked" is another program that looks into it.
_OUTSIDE = (
    "full",
    "disk I/O error",
    "unable to open",
    "readonly",
    "locked",
    "out of memory",
    "not authorized",
    "permission",
)


def refuse_foreign(path: Path, witness: Path, named_by: str) -> None:
    """Raise StoreMismatch for what is no state and StoreError for no file; nothing is written, not even beside it.

    With a witness beside it, it is ours, whatever is in its header, and to be told of as damaged.
    """
    try:
        if path.exists() and not path.is_file():
            raise StoreError(f"{path} is no file, so it cannot be a state. Set {named_by} to the path of a file.")
        if witness.exists() or not path.exists() or not path.stat().st_size:
            return
        application, version = _header(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be read: {error}. Check its permissions, or set {named_by} to another path."
        ) from error
    if application != APPLICATION:
        raise StoreMismatch(
            f"{path} exists, but is no scrapy-neardup state. It is unchanged. Set {named_by} to another path."
        )
    if version != VERSION:
        raise StoreMismatch(
            f"Another version of scrapy-neardup wrote {path} (layout {version}, this version uses {VERSION}). "
            f"The file is unchanged. Use that version, or set {named_by} to a new path to begin another state."
        )


def is_ours(path: Path) -> bool:
    """Whether the header is what this version writes. Raises OSError."""
    return _header(path) == (APPLICATION, VERSION)


def is_database(path: Path) -> bool:
    """Whether a file begins as one of SQLite's does."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def _header(path: Path) -> tuple[int, int]:
    """Application and version; 0 and 0 of what is no database of SQLite."""
    with path.open("rb") as file:
        header = file.read(100)
    if len(header) < 100 or not header.startswith(_MAGIC):
        return 0, 0
    version, application = _HEADER.unpack_from(header, 60)
    return application, version


def digest(path: Path) -> str:
    """Length and checksum of a file; of no use against somebody, but against a disk. Raises OSError."""
    checksum = length = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            checksum = zlib.crc32(chunk, checksum)
            length += len(chunk)
    return f"{length}:{checksum:08x}"


def is_outside(error: sqlite3.Error) -> bool:
    """Whether an error says that the disk or the system does not let us, and nothing of the rows."""
    return isinstance(error, sqlite3.OperationalError) and any(reason in str(error) for reason in _OUTSIDE)
