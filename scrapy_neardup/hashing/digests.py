"""MD5 as a 64-bit key, for the methods that are published with it."""

from __future__ import annotations

from hashlib import md5

from scrapy_neardup.hashing import fingerprint64

#: The names by which ``digest64`` knows its functions; the first is the faster.
DIGESTS = ("farmhash", "md5")


def md5_64(data: bytes) -> int:
    """The first 8 bytes of an MD5: a key, no protection against someone who wants two texts to have the same.

    >>> hex(md5_64(b""))
    '0xd41d8cd98f00b204'
    """
    return int.from_bytes(md5(data, usedforsecurity=False).digest()[:8], "big")


def digest64(name: str, text: str) -> int:
    """A text's 64 bits by farmhash or MD5, of its UTF-8 bytes; a lone surrogate is replaced, never an error."""
    return fingerprint64(text) if name == "farmhash" else md5_64(text.encode("utf-8", "replace"))
