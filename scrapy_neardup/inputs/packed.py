"""Compressed files: .gz, .bz2, .xz, .zst."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from scrapy_neardup.inputs.entry import library

# ----------------------------------------------------------------------------------------------------------------------
# Files packed by Zstandard, as a stream of bytes that ends with an error where the file breaks off.
#
# The library's own reader takes a frame that breaks off for the end of the file; here each frame must be complete.


#: Packed bytes that are unpacked at once. Of repetitions, four bytes make 128 KiB: more would be a lot of memory.
_CHUNK = 4096
#: Files packed with --long=31 are read too; they need so much memory, in bytes, as whoever packed them chose.
_WINDOW = 1 << 31


def open_zst(raw: BinaryIO) -> io.BufferedReader:
    """The unpacked bytes; raises NearDupError if the library is missing, OSError or EOFError where it is not whole."""
    return io.BufferedReader(_Unpacking(raw), 1 << 16)


def write_zst(raw: BinaryIO) -> BinaryIO:
    """A stream that packs what is written, with a checksum; it is whole when closed, and leaves ``raw`` open."""
    zstandard = _library()
    writer = zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(raw, closefd=False)
    return io.BufferedWriter(writer, 1 << 16)


class _Unpacking(io.RawIOBase):
    """Unpacks frame after frame, also those that hold nothing but somebody's notes."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__()
        zstandard = _library()
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
        self._error: type[Exception] = zstandard.ZstdError
        self._raw = raw
        self._frame: Any = None
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as there is something unpacked; 0 is the end."""
        while not self._ready:
            packed = self._packed or self._raw.read(_CHUNK)
            self._packed = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError("the file ends within a frame")
                return 0
            self._ready = memoryview(self._unpack(packed))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpack(self, packed: bytes) -> bytes:
        if self._frame is None:
            self._frame = self._unpacker.decompressobj()
        try:
            found: bytes = self._frame.decompress(packed)
        except self._error as error:
            raise OSError(str(error)) from None
        if self._frame.eof:
            self._packed = self._frame.unused_data
            self._frame = None
        return found


def _library() -> Any:
    return library("zstandard", "files", "A .zst file")


# ----------------------------------------------------------------------------------------------------------------------
# Files by their packing: .gz, .bz2, .xz and .zst are unpacked while they are read, and packed while written.


#: The suffixes of packed files.
PACKINGS = (".gz", ".bz2", ".xz", ".zst")
#: The first bytes of each, to know it without a name.
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}

_READ: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(mode="rb", fileobj=raw),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": open_zst,
}
_WRITE: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda raw: gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0),
    ".bz2": partial(bz2.BZ2File, mode="wb"),
    ".xz": partial(lzma.LZMAFile, mode="wb"),
    ".zst": write_zst,
}


def packing(name: str | PathLike[str]) -> str:
    """The suffix by which a file is packed; empty if it is not.

    >>> packing("feed.jsonl.GZ"), packing("feed.jsonl")
    ('.gz', '')
    """
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in PACKINGS else ""


def unpacked_name(name: str) -> str:
    """The name without the suffix of its packing.

    >>> unpacked_name("feed.jsonl.gz")
    'feed.jsonl'
    """
    return name[: len(name) - len(packing(name))]


def find_file(folder: Path, name: str) -> Path | None:
    """The file of that name in a folder, plain or packed; the plain one if there are several."""
    files = (folder / f"{name}{suffix}" for suffix in ("", *PACKINGS))
    return next((file for file in files if file.is_file()), None)


@contextmanager
def open_packed(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """The unpacked bytes of a file, by the suffix of its name.

    Reading raises OSError, EOFError, zlib.error or lzma.LZMAError if the file is not whole (see ``guard.reading``);
    NearDupError if the library for it is missing.
    """
    with Path(path).open("rb") as raw, unpacked(raw, packing(path)) as file:
        yield file


@contextmanager
def unpacked(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """The unpacked bytes of an open file, which stays open."""
    if suffix not in _READ:
        yield raw
        return
    with _READ[suffix](raw) as file:
        yield file


def packing_of(raw: BinaryIO) -> str:
    """The packing of a stream without a name, by its first bytes; empty where these cannot be looked at."""
    peek = getattr(raw, "peek", None)
    start = bytes(peek(6)) if peek else b""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


@contextmanager
def open_packed_for_writing(path: Path, like: str = "") -> Iterator[BinaryIO]:
    """A new file, packed by the suffix of its name, or of the name ``like`` where it is written under another first.

    The same bytes give the same file: no name and no time are written into it. It is whole once the block is left.
    """
    suffix = packing(like or path)
    with path.open("wb") as raw:
        if suffix not in _WRITE:
            yield raw
            return
        with _WRITE[suffix](raw) as file:
            yield file


@contextmanager
def seekable(file: BinaryIO) -> Iterator[BinaryIO]:
    """The same bytes, to be read in any order: a packed file or a pipe is copied to a temporary file first.

    A packed file says that it is seekable, and unpacks itself from its start for every step back.
    """
    raw = getattr(file, "raw", file)
    if isinstance(raw, (io.FileIO, io.BytesIO)) and file.seekable():
        yield file
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)
