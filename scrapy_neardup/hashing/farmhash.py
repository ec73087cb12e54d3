"""``fingerprint64`` of FarmHash: from pyfarmhash where it has wheels, else compiled, else in Python.

This is ``farmhashna::Hash64`` of FarmHash 1.1 (Pike and Alakuijala, 2014), which never changes. A row of a state takes
0.1 µs, and 1 to 20 µs in Python.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from scrapy_neardup.hashing import compiled

_ALL = 2**64 - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_read_word, _read_half = struct.Struct("<Q").unpack_from, struct.Struct("<I").unpack_from

#: A pair of numbers that a long text is mixed into.
_Pair = tuple[int, int]


def python_fingerprint(data: bytes) -> int:
    """Return the fingerprint of bytes."""
    size = len(data)
    if size <= 16:
        return _hash_16(data, size)
    return _hash_64(data, size) if size <= 64 else _hash_long(data, size)


def _hash_16(data: bytes, size: int) -> int:
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(data) + _K2, _word(data, size - 8)
        return _join(_rotate(b, 37) * factor + a, (_rotate(a, 25) + b) * factor, factor)
    if size >= 4:
        return _join(size + (_read_half(data)[0] << 3), _read_half(data, size - 4)[0], factor)
    if not size:
        return _K2
    first, rest = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
    return _shift((first * _K2 ^ rest * _K0) & _ALL) * _K2 & _ALL


def _hash_64(data: bytes, size: int) -> int:
    factor = _K2 + size * 2
    a, b = _word(data) * (_K1 if size <= 32 else _K2), _word(data, 8)
    c, d = _word(data, size - 8) * factor, _word(data, size - 16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d
    z = _join(y, a + _rotate(b + _K2, 18) + c, factor)
    if size <= 32:
        return z
    e, f = _word(data, 16) * factor, _word(data, 24)
    g, h = (y + _word(data, size - 32)) * factor, (z + _word(data, size - 24)) * factor
    return _join(_rotate(e + f, 43) + _rotate(g, 30) + h, e + _rotate(f + a, 18) + g, factor)


def _hash_long(data: bytes, size: int) -> int:
    x = 81 * _K2 + _word(data)
    y = 81 * _K1 + 113
    z = _shift(y * _K2 + 113 & _ALL) * _K2
    v = w = 0, 0
    rest = (size - 1) & 63
    for at in range(0, size - 1 - rest, 64):
        z, y, x, v, w = _mix(data, at, x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    w = w[0] + rest, w[1]
    v = v[0] + w[0], v[1]
    w = w[0] + v[0], w[1]
    z, y, x, v, w = _mix(data, size - 64, x, y, z, v, w, factor, 9)
    return _join(_join(v[0], w[0], factor) + _shift(y) * _K0 + z, _join(v[1], w[1], factor) + x, factor)


def _mix(
    data: bytes, at: int, x: int, y: int, z: int, v: _Pair, w: _Pair, factor: int, weight: int
) -> tuple[int, int, int, _Pair, _Pair]:
    """Mix 64 bytes in; ``weight`` multiplies the parts of w and v that go into x and y. Returns z, y, x, v and w."""
    x = _rotate(x + y + v[0] + _word(data, at + 8), 37) * factor & _ALL
    y = _rotate(y + v[1] + _word(data, at + 48), 42) * factor
    x ^= w[1] * weight & _ALL
    y = y + v[0] * weight + _word(data, at + 40) & _ALL
    z = _rotate(z + w[0], 33) * factor & _ALL
    return x, y, z, _half(data, at, v[1] * factor, x + w[0]), _half(data, at + 32, z + w[1], y + _word(data, at + 16))


def _half(data: bytes, at: int, a: int, b: int) -> _Pair:
    """Mix 32 bytes into two numbers."""
    a += _word(data, at)
    b = _rotate(b + a + _word(data, at + 24), 21)
    c = a + _word(data, at + 8) + _word(data, at + 16)
    return c + _word(data, at + 24) & _ALL, b + _rotate(c, 44) + a & _ALL


def _word(data: bytes, at: int = 0) -> int:
    word: int = _read_word(data, at)[0]
    return word


def _rotate(value: int, bits: int) -> int:
    value &= _ALL
    return (value >> bits | value << (64 - bits)) & _ALL


def _shift(value: int) -> int:
    return value ^ value >> 47


def _join(one: int, other: int, factor: int) -> int:
    first = _shift((one ^ other) * factor & _ALL)
    return _shift((other & _ALL ^ first) * factor & _ALL) * factor & _ALL


def _choose() -> Callable[[bytes], int]:
    """Return pyfarmhash's function, else the compiled one, else ours in Python."""
    try:
        from farmhash import fingerprint64
    except ImportError:  # it is not installed, or another package has overwritten its module
        return python_fingerprint if compiled.kernels is None else compiled.kernels.fingerprint64
    found: Callable[[bytes], int] = fingerprint64
    return found


#: Returns the 64-bit fingerprint of bytes.
fingerprint_bytes = _choose()
