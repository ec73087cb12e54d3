"""The body of a response without the encodings of HTTP (RFC 9110, section 8.4)."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable
from importlib import import_module

from scrapy_neardup.inputs import entry
from scrapy_neardup.inputs.zst import open_zst

#: Bytes that text in an encoding of one or two bytes does not have, and what is packed has nearly everywhere.
_NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_GZIP = b"\x1f\x8b"
#: Bytes that are unpacked at once.
_PART = 1 << 16
#: For zlib: with a header, which is found out, or without.
_AUTOMATIC, _BARE = 32 + zlib.MAX_WBITS, -zlib.MAX_WBITS


class _Broken(Exception):
    """A body cannot be unpacked; ``start`` is what could be."""

    def __init__(self, why: str, start: bytes = b"") -> None:
        super().__init__(why)
        self.start = start


def unpack_body(body: bytes, encoding: str) -> tuple[bytes, str]:
    """The body unpacked as its header Content-Encoding says, and why that cannot be done; empty if it can.

    Of a body that breaks off, the start is given. A body that is text is taken as it is, whatever the header says: some
    archives keep that of a page which they have unpacked. What is unpacked has at most ``entry.LARGEST`` bytes.
    """
    for name in reversed([one.strip().lower() for one in encoding.split(",")]):
        if name in ("", "identity"):
            continue
        try:
            body = _UNPACK[name](body) if name in _UNPACK else _unknown(name)
        except _Broken as broken:
            if not _NO_TEXT.search(body[:1000]):
                return body, ""
            return broken.start, f"packed as {name}: {broken}"
        if len(body) > entry.LARGEST:
            return b"", f"larger than {entry.LARGEST:,} bytes"
    return body, ""


def _unknown(name: str) -> bytes:
    raise _Broken("this encoding is not supported")


def _gzip(body: bytes) -> bytes:
    """One stream after the other, as a server may send them; what else stands behind the last is left out."""
    whole, rest = _inflated(body, _AUTOMATIC)
    while rest.startswith(_GZIP) and len(whole) <= entry.LARGEST:
        part, rest = _inflated(rest, _AUTOMATIC, whole)
        whole += part
    return whole


def _deflate(body: bytes) -> bytes:
    """With the header of zlib, as it should be, or without, as some servers send it."""
    try:
        return _inflated(body, _AUTOMATIC)[0]
    except _Broken as broken:
        if broken.start:
            raise
        return _inflated(body, _BARE)[0]


def _inflated(body: bytes, bits: int, before: bytes = b"") -> tuple[bytes, bytes]:
    """A stream unpacked, and what stands behind it; ``before`` it there was another."""
    unpacker = zlib.decompressobj(bits)
    found = bytearray()
    try:
        # In parts, so that of a stream that is broken its start is there.
        for at in range(0, len(body), _PART):
            found += unpacker.decompress(body[at : at + _PART], entry.LARGEST + 1 - len(found))
            if unpacker.eof:
                return bytes(found), unpacker.unused_data + body[at + _PART :]
            if len(found) > entry.LARGEST:
                return bytes(found), b""
    except zlib.error as error:
        raise _Broken(str(error), before + found) from None
    raise _Broken("the data ends too early", before + found)


def _brotli(body: bytes) -> bytes:
    try:
        brotli = import_module("brotli")
    except ImportError:
        raise _Broken("this needs brotli; run: pip install 'scrapy-neardup[files]'") from None
    unpacker = brotli.Decompressor()
    try:
        found: bytes = unpacker.process(body, output_buffer_limit=entry.LARGEST + 1)
    except TypeError:  # before brotli 1.2 there is no limit
        found = unpacker.process(body)
    except brotli.error as error:
        raise _Broken(str(error)) from None
    if len(found) <= entry.LARGEST and not unpacker.is_finished():
        raise _Broken("the data ends too early", found)
    return found


def _zstd(body: bytes) -> bytes:
    unpacker = open_zst(io.BytesIO(body))
    found = b""
    try:
        while len(found) <= entry.LARGEST and (part := unpacker.read1(entry.LARGEST + 1)):
            found += part
    except (OSError, EOFError) as error:
        raise _Broken(str(error), found) from None
    return found


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
