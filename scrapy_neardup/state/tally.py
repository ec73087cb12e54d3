"""The tally inside a state and the witness file beside it."""

from __future__ import annotations

import os
import struct
import zlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import farmhash

from scrapy_neardup.atomic import open_private, sync_directory
from scrapy_neardup.hashing import compiled
from scrapy_neardup.state.layout import meta_key

# ----------------------------------------------------------------------------------------------------------------------
# What a state says of its own rows, so that one that is missing or has changed is noticed.
#
# The tally is a row of its own, written with every batch. What the database holds is checked against it by reading all
# rows once; that the database is not as a whole an older one, its witness tells (see ``Witness``).


#: Under which it stands; it does not cover itself.
KEY = meta_key("tally")
#: First bytes of keys that it does not cover, as records tell which there must be: see ``Recount``.
DERIVED = b"kux"
#: Of those that come with a page and end in its id: its record is the first of them.
_OF_PAGES = b"rej"
#: Of the key of a record.
RECORD = _OF_PAGES[0]
_PACKED = struct.Struct(">8sQQQ?")
#: Of the sum as many bits are kept.
MASK = 0xFFFFFFFFFFFFFFFF


class RowTally(NamedTuple):
    """``state`` is drawn when a state is begun; ``sequence`` counts its writes; ``total`` is the sum over its rows.

    ``closed``: whether the write was the last before a clean close. A tuple, as one is made at every write.
    """

    state: bytes
    sequence: int = 0
    pages: int = 0
    total: int = 0
    closed: bool = False

    @classmethod
    def new(cls) -> RowTally:
        """That of a state that is about to be begun."""
        return cls(os.urandom(8))

    def pack(self) -> bytes:
        """33 bytes."""
        return _PACKED.pack(*self)

    @classmethod
    def unpack(cls, packed: bytes) -> RowTally:
        """What ``pack`` wrote; raises ValueError for anything else."""
        try:
            return cls(*_PACKED.unpack(packed))
        except struct.error as error:
            raise ValueError(str(error)) from None


def of_row(key: bytes, value: bytes) -> int:
    """The share of one row in the sum. Of a row whose key ends elsewhere it is another, though the bytes are the same.

    Farmhash, as a disk forges nothing: a cryptographic hash takes five times as long, at every row of every write.
    """
    share: int = farmhash.fingerprint64(key + value) + len(key)
    return share


def of_rows(rows: dict[bytes, bytes], largest: int) -> tuple[int, int, list[bytes]]:
    """The shares of rows that are written, how many of these are records that are new, and which rows may be old ones.

    ``largest``: no row of a page with a larger id is there yet. Called for every page.
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.shares_of_rows(rows, farmhash.fingerprint64, DERIVED, KEY, _OF_PAGES, largest)
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
    """Four bytes by which a row is known to be the one that was written, where the database does not see to that."""
    return (of_row(key, value) & 0xFFFFFFFF).to_bytes(4, "big")


# ----------------------------------------------------------------------------------------------------------------------
# A small file beside a state that tells how far the state had come: what is behind it has lost something.
#
# A database cannot tell that its end is missing: a log that was cut or deleted, a copy of last week, an empty directory
# all look sound. The witness tells the number of the last write, and of the last one that had reached the disk by then;
# each of its lines ends in a checksum:
#
#     synced TALLY -        twice, written in turn: a power cut may tear the one that is being written
#     synced TALLY DIGEST   likewise, after a clean close; DIGEST: of the database's file, or "closed"
#     written TALLY BOOT    at every write, without waiting for the disk
#     secret HEX            the state's own secret, without which a mended copy of it would be of no use
#
# TALLY is the state's name, the number of its writes, its pages, the sum over its rows, and 1 if it is closed.
#
# After a kill nothing that was written may be missing, so ``written`` counts. After a power cut what was not synced may
# be, and what reached the disk first is anybody's guess, so ``written`` counts in that boot of the machine alone in
# which it was written. The state is always written before its witness: it may be ahead, never behind.


#: Bytes of a slot: the smallest sector of a disk, which is written whole or not at all.
_SLOT = 512
_SLOTS = 3
_WRITTEN = 2
_SECRET = 3
_OPEN = "-"
#: The digest of a state that has none.
CLOSED = "closed"


class Witness:
    """The open file; whoever holds the lock of the state has it alone."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Raises FileNotFoundError if there is none, ValueError if it cannot be what was written, OSError."""
        self.path = path
        self._file = path.open("r+b" if writable else "rb", buffering=0)
        try:
            slots = [_read(self._file.read(_SLOT)) for _ in range(_SLOTS)]
            synced = [(at, *slot) for at, slot in enumerate(slots[:_WRITTEN]) if slot and slot[0] == "synced"]
            if not synced:
                raise ValueError("none of its lines is whole")
        except BaseException:
            self._file.close()
            raise
        self._file.seek(_SECRET * _SLOT)
        self.secret = _read_secret(self._file.read(_SLOT))
        #: As far as the state had surely reached the disk.
        # The last write before a close stands there twice: as it was synced, and as it was closed.
        self._turn, _, self.synced, self.digest = max(synced, key=lambda slot: (slot[2].sequence, slot[3] != _OPEN))
        self._boot = boot().encode() or b"-"
        written = slots[_WRITTEN]
        self._written = written[1] if written and written[2] == boot() != "" else None

    @classmethod
    def create(cls, path: Path, tally: RowTally) -> Witness:
        """Begin the file: it is there, and on disk, before what it speaks of."""
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
        """As far as the state must have come."""
        if self._written is None or self._written.sequence < self.synced.sequence:
            return self.synced
        return self._written

    def was_closed(self, tally: RowTally) -> bool:
        """Whether the state was closed with this tally, and not opened since."""
        return self.digest != _OPEN and tally.closed and tally == self.synced

    def note(self, tally: RowTally, *, synced: bool) -> None:
        """The state was written, and is on disk if ``synced``. That this fails makes the witness know less, no more."""
        try:
            if synced:
                self._sync(tally, _OPEN)
            else:
                self._put(_WRITTEN, _line(b"written", tally, self._boot))
        except OSError:
            pass

    def keep(self, secret: bytes) -> None:
        """Hold the secret of the state as well. Raises OSError."""
        if self.secret != secret:
            self._put(_SECRET, _checked(b"secret %b" % secret.hex().encode()))
            os.fsync(self._file.fileno())
            self.secret = secret

    def close(self, tally: RowTally, digest: str = CLOSED) -> None:
        """The state was closed, with this digest of its file. Raises OSError."""
        self._sync(tally, digest)

    def release(self) -> None:
        """Close the file; a second time does nothing."""
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
    """Which run of the machine this is; empty where that cannot be told, and then only what was synced counts."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _line(kind: bytes, tally: RowTally, rest: bytes) -> bytes:
    """At every write, so bytes are formatted, which is faster than text."""
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.witness_line(kind, *tally, rest, _SLOT)
    packed = b"%b %b %d %d %016x %d %b" % (kind, tally.state.hex().encode(), *tally[1:], rest)
    return _checked(packed)


def _checked(packed: bytes) -> bytes:
    """A line of the length of a slot, with its checksum."""
    return (b"%b %08x" % (packed, zlib.crc32(packed))).ljust(_SLOT - 1) + b"\n"


def _read(line: bytes) -> tuple[str, RowTally, str] | None:
    """Kind, tally and rest of a line; None for one that is not whole."""
    packed, _, checksum = line.rstrip(b" \n").rpartition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(packed):
            return None
        kind, state, sequence, pages, total, closed, rest = packed.decode("ascii").split(" ")
        tally = RowTally(bytes.fromhex(state), int(sequence), int(pages), int(total, 16), closed == "1")
    except ValueError:
        return None
    return kind, tally, rest


def secret_at(path: Path) -> bytes | None:
    """The secret that a witness holds, however damaged the rest of it is; None if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(_SECRET * _SLOT)
            return _read_secret(file.read(_SLOT))
    except OSError:
        return None


def _read_secret(line: bytes) -> bytes | None:
    packed, _, checksum = line.rstrip(b" \n").rpartition(b" ")
    try:
        if not packed.startswith(b"secret ") or int(checksum, 16) != zlib.crc32(packed):
            return None
        return bytes.fromhex(packed.removeprefix(b"secret ").decode("ascii"))
    except ValueError:
        return None
