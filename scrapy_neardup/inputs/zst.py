"""Files packed by Zstandard, as a stream of bytes that ends with an error where the file breaks off.

The library's own reader takes a frame that breaks off for the end of the file; here each frame must be complete.
"""

from __future__ import annotations

import io
from typing import Any, BinaryIO

from scrapy_neardup.inputs.optional import library

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
