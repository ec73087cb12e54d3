"""The string hashes of the literature: RS, JS, PJW, ELF, BKDR, SDBM, DJB and AP, in 32 or 64 bits.

Partow's collection "General Purpose Hash Function Algorithms" has these names. Part 6 of the series 网页文本的排重算法
compares them, and work on SimHash uses SDBM in 64 bits. They serve to repeat this work; states use ``fingerprint64``.

Each is a walk over UTF-8 bytes that changes one word ``h``, modulo 2**32 as published:

====  ==========  ===========================================================================
name  first h     h for the next byte c
====  ==========  ===========================================================================
rs    0           h * a + c, where a is 63689 at first and grows by the factor 378551
js    1315423911  h ^ ((h << 5) + c + (h >> 2))
pjw   0           (h << 4) + c; the 4 highest bits are cut off and folded onto bits 4 to 7
elf   0           the same, in the words of System V
bkdr  0           h * 131 + c (Kernighan and Ritchie, with Partow's factor)
sdbm  0           h * 65599 + c
djb   5381        h * 33 + c (Bernstein's, with addition)
ap    0xAAAAAAAA  even places: h ^ (h << 7) ^ c * (h >> 3); odd ones: h ^ ~((h << 11) + (c ^ (h >> 5)))
====  ==========  ===========================================================================

AP is Partow's present form. Chinese comparisons often print an older one, which starts from 0, has ``^ c ^`` instead of
product and sum, and clears the highest bit.

With 64 bits the constants stay, so RS, BKDR, SDBM and DJB have the published value as lower half. PJW depends on the
width: it shifts by an eighth of it and folds the 8 highest bits onto bits 8 to 15. ELF keeps the shift of 4 and folds
the 4 highest bits onto bits 4 to 7.

Bytes count as 0 to 255; C code with signed ``char`` gives other values outside ASCII. Short words do not fill 64 bits:
two Chinese characters stay below bit 48 in PJW, 44 in BKDR, 43 in DJB and 28 in ELF. ``mix64`` cures that for SimHash.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from scrapy_neardup.errors import SettingsError

_WIDTHS = (32, 64)


def _rs(data: bytes, bits: int) -> int:
    mask, value, factor = (1 << bits) - 1, 0, 63689
    for byte in data:
        value = (value * factor + byte) & mask
        factor = factor * 378551 & mask
    return value


def _js(data: bytes, bits: int) -> int:
    mask, value = (1 << bits) - 1, 1315423911
    for byte in data:
        value = (value ^ ((value << 5) + byte + (value >> 2))) & mask
    return value


def _fold(group: int | None, data: bytes, bits: int) -> int:
    """PJW and ELF: fold the highest group of bits onto the second lowest; PJW's group is an eighth of the word."""
    group = group or bits // 8
    down, kept, value = bits - 2 * group, (1 << bits - group) - 1, 0
    highest = kept ^ (1 << bits) - 1
    for byte in data:
        value = (value << group) + byte
        value = (value ^ (value & highest) >> down) & kept
    return value


def _multiply(factor: int, first: int, data: bytes, bits: int) -> int:
    """BKDR, SDBM and DJB: the bytes are the digits of a number, modulo the word."""
    mask, value = (1 << bits) - 1, first
    for byte in data:
        value = (value * factor + byte) & mask
    return value


def _ap(data: bytes, bits: int) -> int:
    mask, value = (1 << bits) - 1, 0xAAAAAAAA
    for place, byte in enumerate(data):
        if place % 2:
            value = (value ^ ~((value << 11) + (byte ^ value >> 5))) & mask
        else:
            value = (value ^ value << 7 ^ byte * (value >> 3)) & mask
    return value


_HASHES: dict[str, Callable[[bytes, int], int]] = {
    "rs": _rs,
    "js": _js,
    "pjw": partial(_fold, None),
    "elf": partial(_fold, 4),
    "bkdr": partial(_multiply, 131, 0),
    "sdbm": partial(_multiply, 65599, 0),
    "djb": partial(_multiply, 33, 5381),
    "ap": _ap,
}

#: Names of the hashes.
CLASSIC: tuple[str, ...] = tuple(_HASHES)


def classic_hash(name: str, text: str, bits: int = 32) -> int:
    """Return the hash of a text's UTF-8 bytes, below 2**bits; a lone surrogate counts as a question mark.

    It takes about 0.1 µs a byte. Raises SettingsError for an unknown name or width.

    >>> classic_hash("sdbm", "abcdefghijklmnopqrstuvwxyz1234567890")
    3449571336
    >>> hex(classic_hash("sdbm", "网页", bits=64))
    '0xc359fceff5476482'
    """
    if name not in _HASHES:
        raise SettingsError(f"There is no classic hash {name!r}. Use one of: {', '.join(CLASSIC)}.")
    if bits not in _WIDTHS:
        raise SettingsError(f"A classic hash cannot have {bits!r} bits. Use one of: 32, 64.")
    return _HASHES[name](text.encode("utf-8", "replace"), bits)
