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

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError

#: State of a walk: an int for one text, or an array of uint64 for the same place in many words. Not typed, because
#: numpy's annotations turn the shift of a uint64 into a signed number.
_State = Any
#: State, bytes (an int or an array each), width -> the state after each byte. An int is cut to the width by the mask,
#: an array also by its own 64 bits.
_Walk = Callable[[_State, Iterable[_State], int], Iterator[_State]]

_WIDTHS = (32, 64)
#: Longer words, in bytes, are hashed one by one: the longest word sets the width of the matrix.
_SHORT = 64
#: Words hashed at once: a few MB.
_BATCH = 4096


def _rs(state: _State, data: Iterable[_State], bits: int) -> Iterator[_State]:
    mask, factor = (1 << bits) - 1, 63689
    for byte in data:
        state = (state * factor + byte) & mask
        factor = factor * 378551 & mask
        yield state


def _js(state: _State, data: Iterable[_State], bits: int) -> Iterator[_State]:
    mask = (1 << bits) - 1
    for byte in data:
        state = (state ^ ((state << 5) + byte + (state >> 2))) & mask
        yield state


def _fold(group: int | None, state: _State, data: Iterable[_State], bits: int) -> Iterator[_State]:
    """PJW and ELF: fold the highest group of bits onto the second lowest; PJW's group is an eighth of the word."""
    group = group or bits // 8
    down, kept = bits - 2 * group, (1 << bits - group) - 1
    highest = kept ^ (1 << bits) - 1
    for byte in data:
        state = (state << group) + byte
        state = (state ^ (state & highest) >> down) & kept
        yield state


def _multiply(factor: int, state: _State, data: Iterable[_State], bits: int) -> Iterator[_State]:
    """BKDR, SDBM and DJB: the bytes are the digits of a number, modulo the word."""
    mask = (1 << bits) - 1
    for byte in data:
        state = (state * factor + byte) & mask
        yield state


def _ap(state: _State, data: Iterable[_State], bits: int) -> Iterator[_State]:
    mask = (1 << bits) - 1
    odd = False
    for byte in data:
        if odd:
            state = (state ^ ~((state << 11) + (byte ^ state >> 5))) & mask
        else:
            state = (state ^ state << 7 ^ byte * (state >> 3)) & mask
        odd = not odd
        yield state


#: Name -> first state and walk.
_HASHES: dict[str, tuple[int, _Walk]] = {
    "rs": (0, _rs),
    "js": (1315423911, _js),
    "pjw": (0, partial(_fold, None)),
    "elf": (0, partial(_fold, 4)),
    "bkdr": (0, partial(_multiply, 131)),
    "sdbm": (0, partial(_multiply, 65599)),
    "djb": (5381, partial(_multiply, 33)),
    "ap": (0xAAAAAAAA, _ap),
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
    start, walk = _find_hash(name, bits)
    return _last_state(start, walk, _utf8(text), bits)


def classic_hashes(name: str, words: Sequence[str], bits: int = 32) -> npt.NDArray[np.uint64]:
    """Return ``classic_hash`` of each word; shape (len(words),).

    The 400 words of a page take 0.1 to 0.2 ms. Raises SettingsError for an unknown name or width.

    >>> classic_hashes("djb", ["", "网页", "ferry"]).tolist()
    [5381, 812006617, 258873837]
    """
    start, walk = _find_hash(name, bits)
    encoded = [_utf8(word) for word in words]
    values = np.empty(len(encoded), np.uint64)
    for first in range(0, len(encoded), _BATCH):
        batch = encoded[first : first + _BATCH]
        values[first : first + _BATCH] = _hash_batch(start, walk, batch, bits)
    return values


def _hash_batch(start: int, walk: _Walk, batch: list[bytes], bits: int) -> npt.NDArray[np.uint64]:
    lengths = np.fromiter(map(len, batch), np.intp, len(batch))
    long = np.flatnonzero(lengths > _SHORT)
    if not long.size:
        return _hash_short(start, walk, batch, lengths, bits)
    lengths[long] = 0
    values = _hash_short(start, walk, [word if len(word) <= _SHORT else b"" for word in batch], lengths, bits)
    values[long] = [_last_state(start, walk, batch[place], bits) for place in long]
    return values


def _hash_short(
    start: int, walk: _Walk, batch: list[bytes], lengths: npt.NDArray[np.intp], bits: int
) -> npt.NDArray[np.uint64]:
    """Hash short words through one matrix with a row for each place.

    The walk runs on over the padding; a word's hash is the state at its end.
    """
    width = int(lengths.max())
    padded = np.array(batch, dtype=f"S{width or 1}").view(np.uint8).reshape(len(batch), -1)
    states = np.empty((width + 1, len(batch)), np.uint64)
    states[0] = start
    for place, state in enumerate(walk(states[0], padded.T[:width].astype(np.uint64), bits), 1):
        states[place] = state
    at_their_ends: npt.NDArray[np.uint64] = states[lengths, np.arange(len(batch))]
    return at_their_ends


def _last_state(start: int, walk: _Walk, data: bytes, bits: int) -> int:
    state = start
    for state in walk(start, data, bits):  # noqa: B007 - the last one is the result
        pass
    return state


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _find_hash(name: str, bits: int) -> tuple[int, _Walk]:
    if name not in _HASHES:
        raise SettingsError(f"There is no classic hash {name!r}. Use one of: {', '.join(CLASSIC)}.")
    if bits not in _WIDTHS:
        raise SettingsError(f"A classic hash cannot have {bits!r} bits. Use one of: 32, 64.")
    return _HASHES[name]
