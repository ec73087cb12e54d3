"""Which characters end a sentence, show nothing, or have another width; and all that the compiled stages must know.

The compiled module has no tables of Unicode: it asks here for 256 characters when it meets the first one of them, so it
knows what the functions of Python know, whatever the release.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect
from functools import cache
from typing import Any

from scrapy_neardup.hashing import compiled

#: What ends a sentence always; what closes behind that.
MARKS = "。！？；!?;\r\n\u2028\u2029"
CLOSING = "”’」』）》)]"
#: Behind a full stop they end a sentence, as what closes does, and white space.
QUOTES = "\"'"
#: Soft hyphens, zero-width spaces and joiners, marks of direction: they show nothing, and cut words in two. As the
#: ranges of a pattern.
INVISIBLE = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
#: Scripts that put no spaces between words: where their ranges begin and, every second, end, as code points.
UNSPACED_EDGES = (*(0x0E00, 0x10A0, 0x1780, 0x1800, 0x3040, 0x3100, 0x31F0, 0x3200, 0x3400, 0xA000, 0x20000, 0x40000),)
#: What NFKC does to the marks of every Chinese page.
WIDE_MARKS = (
    ("，", ","),
    ("：", ":"),
    ("；", ";"),
    ("！", "!"),
    ("？", "?"),
    ("（", "("),
    ("）", ")"),
    ("\u3000", " "),
)
_NARROW = dict(WIDE_MARKS)
#: What NFKC makes several characters of and many pages hold.
SEVERAL = (("…", "..."), ("℃", "°C"), ("㎡", "m2"))

# The lowest 21 bits are those that change in the one spelling, if the character is plain, so that all that stay as they
# are say the same; see the same names in _kernels.h.
_PLAIN, _LETTER, _SPACE, _MARK, _CLOSING, _ENDING, _UNSPACED_LETTER, _LINE = (1 << bit for bit in range(21, 29))
#: Where no character is put together with one before it but combining marks: there NFKC looks at one at a time.
_ALONE = (
    *((0, 0xAD), (0xAE, 0x300), (0x370, 0x590), (0x1E00, 0x200B), (0x2010, 0x202A), (0x202F, 0x2060), (0x206A, 0x2C00)),
    *((0x3000, 0xA000), (0xAC00, 0xD7A4), (0x1F000, 0x1FB00), (0x20000, 0x2F800)),
)


@cache
def known() -> Any:
    """The characters as the compiled module takes them, which must be there."""
    assert compiled.kernels is not None
    return compiled.kernels.characters(block)


def block(number: int) -> bytes:
    """256 characters from that block on, four bytes each as this machine has them."""
    return array("I", map(_told, range(256 * number, 256 * number + 256))).tobytes()


def _told(point: int) -> int:
    char = chr(point)
    # A character and what NFKC makes of it are the same in every text: a space that may not be broken, a wide digit.
    plain = _plain(unicodedata.normalize("NFKC", _NARROW.get(char, char)))
    told = plain ^ point if plain else 0
    told |= _LETTER * char.isalnum() | _SPACE * char.isspace() | _MARK * (char in MARKS) | _CLOSING * (char in CLOSING)
    told |= _UNSPACED_LETTER * (bisect(UNSPACED_EDGES, point) % 2) | _LINE * (len(f"a{char}a".splitlines()) > 1)
    return told | _ENDING * (char.isspace() or char in CLOSING + QUOTES)


def _plain(char: str) -> int:
    """The character in one spelling, if it is one that can be told without those beside it; else 0."""
    folded = char.casefold()
    if len(char) != 1 or len(folded) != 1:
        return 0
    alone = any(first <= ord(char) < end for first, end in _ALONE) and not unicodedata.combining(char)
    return _PLAIN | ord(folded) if alone else 0
