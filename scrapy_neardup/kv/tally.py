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
DERIVED = b"kux"
#: First bytes of keys that belong to a page and end in its id; records first.
_OF_PAGES = b"rej"
#: First byte of a record's key.
RECORD = _OF_PAGES[0]
_PACKED = struct.Struct(">8sQQQ?")
#: Bits of the sum.
MASK = 0xFFFFFFFFFFFFFFFF


class RowTally(NamedTuple):
    """``state``: drawn when the state begins. ``sequence``: number of writes. ``total``: sum over the rows.

    ``closed``: the write was the last one before a clean close. A tuple, because every write makes one.
    """

    state: bytes
    sequence: int = 0
    pages: int = 0
    total: int = 0
    closed: bool = False

    @classmethod
    def new(cls) -> RowTally:
        """Return the tally of a new state."""
        return cls(os.urandom(8))

    def pack(self) -> bytes:
        """Return 33 bytes."""
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
# sound. So a small file beside it records how far it had come. Each line ends in a checksum:
#     synced TALLY -        twice, in turns: a power cut may tear the one being written
#     synced TALLY DIGEST   after a clean close; DIGEST: of the database's files
#     written TALLY BOOT    at every write, without waiting for the disk
#     secret HEX            the state's own secret, which a repair needs
# TALLY: state, writes, pages, sum over the rows, and 1 if closed. After a kill no write may be missing, so ``written``
# counts. After a power cut unsynced writes may be missing in any order, so ``written`` counts only in the same boot of
# the machine. The state is written before its witness, so it may be ahead and never behind.


#: Bytes of a slot: the smallest sector of a disk, which is written atomically.
_SLOT = 512
_SLOTS = 4
_WRITTEN, _SECRET = 2, 3
_OPEN = "-"


class Witness:
    """The open witness file. The holder of the state's lock owns it."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Raises FileNotFoundError, ValueError for a damaged file, OSError."""
        self.path = path
        self._file = path.open("r+b" if writable else "rb", buffering=0)
        try:
            *lines, secret = (self._file.read(_SLOT) for _ in range(_SLOTS))
            slots = [_read(line) for line in lines]
            synced = [(at, *slot) for at, slot in enumerate(slots[:_WRITTEN]) if slot and slot[0] == "synced"]
            if not synced:
                raise ValueError("none of its lines is whole")
        except BaseException:
            self._file.close()
            raise
        self.secret = _read_secret(secret)
        #: The last tally that had surely reached the disk.
        # A kill within a close leaves one line open and one closed, of the same write.
        self._turn, _, self.synced, self.digest = max(synced, key=lambda slot: (slot[2].sequence, slot[3] != _OPEN))
        self._boot = boot().encode() or b"-"
        written = slots[_WRITTEN]
        self._written = written[1] if written and written[2] == boot() != "" else None

    @classmethod
    def create(cls, path: Path, tally: RowTally) -> Witness:
        """Create the file, and sync it before the state."""
        draft = path.with_name(path.name + ".draft")
        draft.unlink(missing_ok=True)
        with open(draft, "xb", opener=open_private) as file:
            file.write(_line(b"synced", tally, b"-") * _WRITTEN + b" " * (_SLOT - 1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
        return cls(path)

    @property
    def newest(self) -> RowTally:
        """The state must have come this far."""
        if self._written is None or self._written.sequence < self.synced.sequence:
            return self.synced
        return self._written

    def was_closed(self, tally: RowTally) -> bool:
        """Whether the state was closed with this tally and not opened since."""
        return self.digest != _OPEN and tally.closed and tally == self.synced

    def note(self, tally: RowTally, *, synced: bool) -> None:
        """Record a write. If this fails the witness knows less, nothing else."""
        try:
            if synced:
                self._sync(tally, _OPEN)
            else:
                self._put(_WRITTEN, _line(b"written", tally, self._boot))
        except OSError:
            pass

    def keep(self, secret: bytes) -> None:
        """Keep the secret too. Raises OSError."""
        if self.secret != secret:
            self._put(_SECRET, _checked(b"secret %b" % secret.hex().encode()))
            os.fsync(self._file.fileno())
            self.secret = secret

    def close(self, tally: RowTally, digest: str) -> None:
        """Record a close with the digest of the files, in both lines. Raises OSError."""
        self._sync(tally, digest)
        self._sync(tally, digest)

    def release(self) -> None:
        """Close the file. A second call does nothing."""
        self._file.close()

    def _sync(self, tally: RowTally, digest: str) -> None:
        self._turn = 1 - self._turn
        self._put(self._turn, _line(b"synced", tally, digest.encode()))
        os.fsync(self._file.fileno())

    def _put(self, slot: int, line: bytes) -> None:
        if hasattr(os, "pwrite"):
            os.pwrite(self._file.fileno(), line, slot * _SLOT)
        else:
            self._file.seek(slot * _SLOT)
            self._file.write(line)


@cache
def boot() -> str:
    """Identify the boot of this machine; empty if unknown, and then only synced writes count."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _line(kind: bytes, tally: RowTally, rest: bytes) -> bytes:
    """Format a line as bytes, which is faster than text; this runs at every write."""
    packed = b"%b %b %d %d %016x %d %b" % (kind, tally.state.hex().encode(), *tally[1:], rest)
    return _checked(packed)


def _checked(packed: bytes) -> bytes:
    """Return a line of a slot's length, with its checksum."""
    return (b"%b %08x" % (packed, zlib.crc32(packed))).ljust(_SLOT - 1) + b"\n"


def _content(line: bytes) -> bytes | None:
    """Return what a line holds before its checksum; None if it is broken."""
    packed, _, checksum = line.rstrip(b" \n").rpartition(b" ")
    return packed if checksum == b"%08x" % zlib.crc32(packed) else None


def _read(line: bytes) -> tuple[str, RowTally, str] | None:
    """Return kind, tally and rest of a line; None if it is broken."""
    try:
        kind, state, sequence, pages, total, closed, rest = (_content(line) or b"").decode("ascii").split(" ")
        tally = RowTally(bytes.fromhex(state), int(sequence), int(pages), int(total, 16), closed == "1")
    except ValueError:
        return None
    return kind, tally, rest


def secret_at(path: Path) -> bytes | None:
    """Read the secret from a witness, however damaged the rest is; None if impossible."""
    try:
        return _read_secret(path.read_bytes()[_SECRET * _SLOT :][:_SLOT])
    except OSError:
        return None


def _read_secret(line: bytes) -> bytes | None:
    kind, _, secret = (_content(line) or b"").partition(b" ")
    try:
        return bytes.fromhex(secret.decode("ascii")) if kind == b"secret" else None
    except ValueError:
        return None
