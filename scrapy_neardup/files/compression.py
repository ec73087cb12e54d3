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

from scrapy_neardup.files.entry import library

# The library's own reader of Zstandard takes a broken frame for the end of the file; this one requires complete frames.


#: Compressed bytes per step. Four bytes may become 128 KiB, so larger steps need much memory.
_CHUNK = 4096
#: Allows files compressed with --long=31, which need that much memory.
_WINDOW = 1 << 31


def open_zst(raw: BinaryIO) -> io.BufferedReader:
    """Open a stream of uncompressed bytes. Raises NearDupError without the library; reading may raise EOFError."""
    return io.BufferedReader(_Unpacking(raw), 1 << 16)


def write_zst(raw: BinaryIO) -> BinaryIO:
    """Return a stream that compresses with a checksum. It is complete when closed, and leaves ``raw`` open."""
    zstandard = _library()
    writer = zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(raw, closefd=False)
    return io.BufferedWriter(writer, 1 << 16)


class _Unpacking(io.RawIOBase):
    """Decompresses frame after frame, and skips frames of metadata."""

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
        """Fill the buffer; 0 is the end."""
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


#: Suffixes of compressed files.
PACKINGS = (".gz", ".bz2", ".xz", ".zst")
#: Their first bytes.
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
    """Return the compression suffix of a name; empty for none.

    >>> packing("feed.jsonl.GZ"), packing("feed.jsonl")
    ('.gz', '')
    """
    suffix = PurePath(name).suffix.lower()
    return suffix if suffix in PACKINGS else ""


def unpacked_name(name: str) -> str:
    """Return a name without its compression suffix.

    >>> unpacked_name("feed.jsonl.gz")
    'feed.jsonl'
    """
    return name[: len(name) - len(packing(name))]


def find_file(folder: Path, name: str) -> Path | None:
    """Find a file in a folder, plain or compressed; the plain one first."""
    files = (folder / f"{name}{suffix}" for suffix in ("", *PACKINGS))
    return next((file for file in files if file.is_file()), None)


@contextmanager
def open_packed(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file by the suffix of its name, for reading uncompressed bytes.

    Reading a broken file raises OSError, EOFError, zlib.error or lzma.LZMAError. Raises NearDupError without the
    library.
    """
    with Path(path).open("rb") as raw, unpacked(raw, packing(path)) as file:
        yield file


@contextmanager
def unpacked(raw: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    """Return the uncompressed bytes of an open file, which stays open."""
    if suffix not in _READ:
        yield raw
        return
    with _READ[suffix](raw) as file:
        yield file


def packing_of(raw: BinaryIO) -> str:
    """Detect the compression of a stream by its first bytes; empty if they cannot be peeked."""
    peek = getattr(raw, "peek", None)
    start = bytes(peek(6)) if peek else b""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


@contextmanager
def open_packed_for_writing(path: Path, like: str = "") -> Iterator[BinaryIO]:
    """Open a new file, compressed by the suffix of its name, or of ``like`` for a draft under another name.

    The same bytes give the same file, as no name and time are written. The file is complete after the block.
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
    """Return a file that can seek: a compressed file or a pipe is copied to a temporary file.

    A compressed file can seek in theory, but decompresses from its start for every step back.
    """
    raw = getattr(file, "raw", file)
    if isinstance(raw, (io.FileIO, io.BytesIO)) and file.seekable():
        yield file
        return
    with TemporaryFile() as copy:
        shutil.copyfileobj(file, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)
