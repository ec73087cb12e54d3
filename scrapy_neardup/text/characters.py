"""Which characters end a sentence, show nothing, or have another width; and all that the compiled stages must know.

The compiled module has no tables of Unicode: it asks here for 256 characters when it meets the first one of them, so it
knows what the functions of Python know, whatever the release.
"""

from __future__ import annotations

import re
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
#: Soft hyphens, joiners, marks of direction, fillers, selectors, tags. They show nothing and cut words in two; some
#: count as letters. First and last of each range: Default_Ignorable_Code_Point of Unicode 15.0, as in its file
#: DerivedCoreProperties.txt; Python does not know this property.
IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
#: Chinese characters, those of the supplementary planes too. As the ranges of a pattern.
HAN = "\u3400-\u9fff\U00020000-\U0003ffff"
HAN_CHARACTER = re.compile(f"[{HAN}]")
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
_PLAIN, _LETTER, _SPACE, _MARK, _CLOSING, _ENDING, _UNSPACED_LETTER, _LINE, _IGNORED = (1 << n for n in range(21, 30))
#: Where no character is put together with one before it but combining marks: there NFKC looks at one at a time.
_ALONE = (
    *((0, 0xAD), (0xAE, 0x300), (0x370, 0x590), (0x1E00, 0x200B), (0x2010, 0x202A), (0x202F, 0x2060), (0x2070, 0x2C00)),
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
    is_ignored = any(first <= point <= last for first, last in IGNORABLE)
    # A character and what NFKC makes of it are the same in every text: a space that may not be broken, a wide digit.
    plain = _plain(unicodedata.normalize("NFKC", _NARROW.get(char, char)))
    told = _IGNORED if is_ignored else plain ^ point if plain else 0
    told |= (
        _LETTER * (char.isalnum() and not is_ignored)
        | _SPACE * char.isspace()
        | _MARK * (char in MARKS)
        | _CLOSING * (char in CLOSING)
    )
    told |= _UNSPACED_LETTER * (bisect(UNSPACED_EDGES, point) % 2) | _LINE * (len(f"a{char}a".splitlines()) > 1)
    return told | _ENDING * (char.isspace() or char in CLOSING + QUOTES)


def _plain(char: str) -> int:
    """The character in one spelling, if it is one that can be told without those beside it; else 0."""
    folded = char.casefold()
    if len(char) != 1 or len(folded) != 1:
        return 0
    alone = any(first <= ord(char) < end for first, end in _ALONE) and not unicodedata.combining(char)
    return _PLAIN | ord(folded) if alone else 0
