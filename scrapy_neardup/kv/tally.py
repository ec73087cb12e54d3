"""The tally inside a state and the witness file beside it."""

from __future__ import annotations

import os
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scrapy_neardup.atomic import open_private, sync_directory
from scrapy_neardup.hashing.farmhash import fingerprint_bytes

# A checksum over all rows, which reveals missing and changed rows. It is a row itself, part of every batch. It cannot
# reveal that the whole database is an older copy; the witness does.


#: The key of the tally, which does not cover itself.
KEY = b"mtally"
#: First bytes of keys that records imply, so the tally skips them; see ``Recount``.
DERIVED = b"ku"
#: First bytes of keys that belong to a page and end in its id; records first.
_OF_PAGES = b"rej"
#: First byte of a record's key.
RECORD = _OF_PAGES[0]
_PACKED = struct.Struct(">8sQQQ?")
#: Bits of the sum.
MASK = 0xFFFFFFFFFFFFFFFF


class RowTally(NamedTuple):
    """``state``: drawn when the state begins. ``sequence``: number of writes. ``total``: sum over the rows.

    ``is_clean``: the write was the last one before a clean close. A tuple, because every write makes one.
    """

    state: bytes
    sequence: int = 0
    pages: int = 0
    total: int = 0
    is_clean: bool = False

    @classmethod
    def new(cls) -> RowTally:
        return cls(os.urandom(8))

    def pack(self) -> bytes:
        return _PACKED.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> RowTally:
        """Unpack a tally. Raises ValueError."""
        try:
            return cls(*_PACKED.unpack(packed))
        except struct.error as error:
            raise ValueError(str(error)) from None


def of_row(key: bytes, value: bytes) -> int:
    """Return the checksum of a row. The length of the key counts too.

    FarmHash, because a disk forges nothing; a cryptographic hash takes five times as long for every row.
    """
    return fingerprint_bytes(key + value) + len(key)


def of_rows(rows: dict[bytes, bytes], largest: int) -> tuple[int, int, list[bytes]]:
    """Return the sum over written rows, the number of new records, and the keys that may replace an old row.

    ``largest``: no page with a larger id exists yet. This runs for every page.
    """
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
    """Return a 4-byte checksum of a row, for databases without their own."""
    return (of_row(key, value) & 0xFFFFFFFF).to_bytes(4, "big")


# A database cannot tell that its end is missing: a cut or deleted log, last week's copy and an empty directory all look
# sound. So a small file beside it records how far it had come, in four slots with a checksum each:
#     0, 1   the last tally that surely reached the disk, in turns, because a power cut may tear the one being written;
#            then a minus sign, or after a clean close a digest of the database's files
#     2      the tally of the last write, without waiting for the disk, and the boot of the machine
#     3      the state's own secret, which a repair needs
# After a kill no write may be missing, so slot 2 counts. After a power cut unsynced writes may be missing in any order,
# so it counts only in the same boot. The state is written before its witness, so it may be ahead and never behind.


#: Bytes of a slot: the smallest sector of a disk, which is written atomically.
_SLOT = 512
_WRITTEN, _SECRET, _SLOTS = 2, 3, 4
_HEAD = struct.Struct(">IH")
_OPEN = b"-"


class Witness:
    """The open witness file. The holder of the state's lock owns it."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Raises FileNotFoundError, ValueError for a damaged file, OSError."""
        self.path = path
        self._file = path.open("r+b" if writable else "rb", buffering=0)
        try:
            *slots, self.secret = [_content(self._file.read(_SLOT)) for _ in range(_SLOTS)]
            tallies = [(_unpacked(slot), turn) for turn, slot in enumerate(slots) if slot]
            synced = [one for one in tallies if one[1] < _WRITTEN]
            if not synced:
                raise ValueError("none of its lines is whole")
        except BaseException:
            self._file.close()
            raise
        #: The last tally that had surely reached the disk, and the digest of a clean close.
        # A kill within a close leaves one slot open and one closed, of the same write.
        (self.synced, digest), self._turn = max(synced, key=lambda one: (one[0][0].sequence, one[0][1] != _OPEN))
        self.digest = digest.decode("ascii", "replace")
        #: The state must have come this far.
        self.newest = self.synced
        for (tally, booted), turn in tallies:
            if turn == _WRITTEN and booted == boot() != b"" and tally.sequence > self.newest.sequence:
                self.newest = tally

    @classmethod
    def create(cls, path: Path, tally: RowTally) -> Witness:
        """Create the file, and sync it before the state."""
        draft = path.with_name(path.name + ".draft")
        draft.unlink(missing_ok=True)
        with open(draft, "xb", opener=open_private) as file:
            file.write(_slot(tally.pack() + _OPEN) * _WRITTEN + bytes(_SLOT * (_SLOTS - _WRITTEN)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
        return cls(path)

    def was_closed(self, tally: RowTally) -> bool:
        """Whether the state was closed with this tally and not opened since."""
        return self.digest.encode() != _OPEN and tally.is_clean and tally == self.synced

    def note(self, tally: RowTally, *, synced: bool) -> None:
        """Record a write. If this fails the witness knows less, nothing else."""
        try:
            if synced:
                self._sync(tally, _OPEN)
            else:
                self._put(_WRITTEN, tally.pack() + boot())
        except OSError:
            pass

    def keep(self, secret: bytes) -> None:
        """Keep the secret too. Raises OSError."""
        if self.secret != secret:
            self._put(_SECRET, secret)
            os.fsync(self._file.fileno())
            self.secret = secret

    def close(self, tally: RowTally, digest: str) -> None:
        """Record a close with the digest of the files, in both slots. Raises OSError."""
        for _ in range(_WRITTEN):
            self._sync(tally, digest.encode())

    def release(self) -> None:
        """Close the file. A second call does nothing."""
        self._file.close()

    def _sync(self, tally: RowTally, digest: bytes) -> None:
        self._turn = 1 - self._turn
        self._put(self._turn, tally.pack() + digest)
        os.fsync(self._file.fileno())

    def _put(self, at: int, content: bytes) -> None:
        if hasattr(os, "pwrite"):
            os.pwrite(self._file.fileno(), _slot(content), at * _SLOT)
        else:
            self._file.seek(at * _SLOT)
            self._file.write(_slot(content))


@cache
def boot() -> bytes:
    """Identify the boot of this machine; empty if unknown, and then only synced writes count."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return b""


def _slot(content: bytes) -> bytes:
    return (_HEAD.pack(zlib.crc32(content), len(content)) + content).ljust(_SLOT, b"\0")


def _content(slot: bytes) -> bytes:
    """Return the content of a slot; empty if it is broken."""
    checksum, length = _HEAD.unpack_from(slot.ljust(_HEAD.size, b"\0"))
    content = slot[_HEAD.size :][:length]
    return content if zlib.crc32(content) == checksum else b""


def _unpacked(content: bytes) -> tuple[RowTally, bytes]:
    """Return tally and rest of a slot. Raises ValueError."""
    return RowTally.unpack(content[: _PACKED.size]), content[_PACKED.size :]


def secret_at(path: Path) -> bytes | None:
    """Read the secret from a witness, however damaged the rest is; None if impossible."""
    try:
        return _content(path.read_bytes()[_SECRET * _SLOT :][:_SLOT]) or None
    except OSError:
        return None
