"""Character classes, and the table of them for the compiled module.

The compiled module has no Unicode tables. It asks for 256 characters when it meets the first one of them, so it follows
the Unicode release of Python.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect
from functools import cache
from typing import Any

from scrapy_neardup.hashing import compiled

#: Marks that always end a sentence, and closing marks that may follow them.
MARKS = "。！？；!?;\r\n\u2028\u2029"
CLOSING = "”’」』）》)]"
#: A full stop ends a sentence before these, closing marks or white space.
QUOTES = "\"'"
#: Soft hyphens, joiners, marks of direction, fillers, selectors, tags: they are invisible and cut words in two; some
#: count as letters. First and last of each range of Default_Ignorable_Code_Point, Unicode 15.0
#: (DerivedCoreProperties.txt). Python does not know this property.
IGNORABLE = (
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF)),
    *((0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
#: Chinese characters, including the supplementary planes, as ranges of a pattern.
HAN = "\u3400-\u9fff\U00020000-\U0003ffff"
HAN_CHARACTER = re.compile(f"[{HAN}]")
#: Scripts without spaces between words: code points where a range begins, ends, begins, and so on.
UNSPACED_EDGES = (*(0x0E00, 0x10A0, 0x1780, 0x1800, 0x3040, 0x3100, 0x31F0, 0x3200, 0x3400, 0xA000, 0x20000, 0x40000),)
#: NFKC of the marks of every Chinese page.
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
#: Frequent characters that NFKC expands to several.
SEVERAL = (("…", "..."), ("℃", "°C"), ("㎡", "m2"))

# The lowest 21 bits change a plain character to its normal spelling (XOR); 0 means no change. Same names in _kernels.h.
_PLAIN, _LETTER, _SPACE, _MARK, _CLOSING, _ENDING, _UNSPACED_LETTER, _LINE, _IGNORED = (1 << n for n in range(21, 30))
#: Ranges in which only combining marks join a character before them: NFKC can take these one by one.
_ALONE = (
    *((0, 0xAD), (0xAE, 0x300), (0x370, 0x590), (0x1E00, 0x200B), (0x2010, 0x202A), (0x202F, 0x2060), (0x2070, 0x2C00)),
    *((0x3000, 0xA000), (0xAC00, 0xD7A4), (0x1F000, 0x1FB00), (0x20000, 0x2F800)),
)


@cache
def character_table() -> Any:
    """Return the character table of the compiled module, which must be there."""
    assert compiled.kernels is not None
    return compiled.kernels.characters(block)


def block(number: int) -> bytes:
    """Return the entries of 256 characters: four bytes each, in the byte order of this machine."""
    return array("I", map(_entry, range(256 * number, 256 * number + 256))).tobytes()


def _entry(point: int) -> int:
    char = chr(point)
    is_ignored = any(first <= point <= last for first, last in IGNORABLE)
    # A character and its NFKC form count as the same: a no-break space, a wide digit.
    spelling = _plain_spelling(unicodedata.normalize("NFKC", _NARROW.get(char, char)))
    entry = _IGNORED if is_ignored else spelling ^ point if spelling else 0
    entry |= (
        _LETTER * (char.isalnum() and not is_ignored)
        | _SPACE * char.isspace()
        | _MARK * (char in MARKS)
        | _CLOSING * (char in CLOSING)
    )
    entry |= _UNSPACED_LETTER * (bisect(UNSPACED_EDGES, point) % 2) | _LINE * (len(f"a{char}a".splitlines()) > 1)
    return entry | _ENDING * (char.isspace() or char in CLOSING + QUOTES)


def _plain_spelling(char: str) -> int:
    """Return the spelling of a character with the plain flag, or 0 if its neighbours matter."""
    folded = char.casefold()
    if len(char) != 1 or len(folded) != 1:
        return 0
    alone = any(first <= ord(char) < end for first, end in _ALONE) and not unicodedata.combining(char)
    return _PLAIN | ord(folded) if alone else 0
