"""Character classes, runs of combining marks, and the table of characters for the compiled module.

The compiled module has no Unicode tables. It asks for 256 characters when it meets the first one of them, so it follows
the Unicode release of Python.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from array import array
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.shingles import code_points

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

# Scripts without spaces between words, as ranges of a pattern.
#: Chinese characters, including the supplementary planes.
HAN = "\u3400-\u9fff\U00020000-\U0003ffff"
#: Katakana: Japanese names and foreign words, which end where another script begins.
KATAKANA = "\u30a1-\u30ff\u31f0-\u31ff"
#: Thai, Lao, Tibetan, Burmese, Khmer and hiragana have no dictionary here: each character counts as a word.
SINGLES = "\u0e00-\u109f\u1780-\u17ff\u3040-\u30a0"
HAN_CHARACTER = re.compile(f"[{HAN}]")
_KATAKANA_CHARACTER = re.compile(f"[{KATAKANA}]")
UNSPACED_CHARACTER = re.compile(f"[{HAN}{KATAKANA}{SINGLES}]")
_FEW = 50


def has_unspaced(letters: str) -> bool:
    """Whether at least one letter in fifty is of a script without spaces between words.

    No more is needed, as most of a Chinese page may be code and tables.

    >>> has_unspaced("北京opened"), has_unspaced("opened2024")
    (True, False)
    """
    return 0 < len(letters) <= _FEW * len(UNSPACED_CHARACTER.findall(letters))


#: Frequent characters that normalise to several.
SEVERAL = (("…", "..."), ("℃", "°C"), ("㎡", "m2"), ("ß", "ss"))

# The lowest 21 bits change a plain character to its normal spelling (XOR); 0 means no change. _kernels_texts.h has
# the same names.
_PLAIN, _IGNORED, _KATAKANA, _LETTER, _SPACE, _MARK, _CLOSING, _ENDING, _UNSPACED, _HAN, _POINT = (
    1 << n for n in range(21, 32)
)
#: Ranges in which only combining marks join a character before them: NFKC can take these one by one.
_ALONE = (
    *((0, 0xAD), (0xAE, 0x300), (0x370, 0x590), (0x1E00, 0x200B), (0x2010, 0x202A), (0x202F, 0x2060), (0x2070, 0x2C00)),
    *((0x3000, 0xA000), (0xAC00, 0xD7A4), (0x1F000, 0x1FB00), (0xFFFD, 0xFFFE), (0x20000, 0x2F800)),
)


#: Equal blocks are kept once, so all of Chinese stays in the innermost cache of the processor.
_blocks: dict[bytes, bytes] = {}


@cache
def known_characters() -> Any:
    """Return the table of characters of the compiled module, which must be there."""
    assert compiled.kernels is not None
    return compiled.kernels.characters(_block)


def _block(number: int) -> bytes:
    """Return the entries of 256 characters: four bytes each, in the byte order of this machine."""
    found = array("I", map(_entry, range(256 * number, 256 * number + 256))).tobytes()
    return _blocks.setdefault(found, found)


def _entry(point: int) -> int:
    char = chr(point)
    is_ignored = any(first <= point <= last for first, last in IGNORABLE)
    # A character and its NFKC form count as the same: a no-break space, a wide digit.
    spelling = _plain_spelling(unicodedata.normalize("NFKC", char))
    entry = _IGNORED if is_ignored else spelling ^ point if spelling else 0
    entry |= (
        _LETTER * (char.isalnum() and not is_ignored)
        | _SPACE * char.isspace()
        | _MARK * (char in MARKS)
        | _CLOSING * (char in CLOSING)
    )
    entry |= _UNSPACED * (UNSPACED_CHARACTER.match(char) is not None) | _HAN * (HAN_CHARACTER.match(char) is not None)
    entry |= _KATAKANA * (_KATAKANA_CHARACTER.match(char) is not None)
    return entry | _POINT * (char == ".") | _ENDING * (char.isspace() or char in CLOSING + QUOTES)


def _plain_spelling(char: str) -> int:
    """Return the spelling of a character with the plain flag, or 0 if its neighbours matter."""
    folded = char.casefold()
    if len(char) != 1 or len(folded) != 1:
        return 0
    alone = any(first <= ord(char) < end for first, end in _ALONE) and not unicodedata.combining(char)
    return _PLAIN | ord(folded) if alone else 0


#: Combining marks in a row that stay. To order n marks takes n² steps, so hostile pages write many. Unicode's
#: Stream-Safe Text Format (UAX #15) inserts a joiner after 30. We drop the rest, as joiners may be removed later.
MOST_MARKS = 30
#: All combining marks lie between these code points.
_FIRST_MARK, _LAST_MARK = 0x300, 0x1E94A


def limit_marks(text: str) -> str:
    """Keep the first 30 of combining marks in a row.

    >>> len(limit_marks("a" + 20 * "\\u0300\\u0316" + "b"))
    32
    """
    return text if count_marks(text) <= MOST_MARKS else _long_row().sub(lambda row: row[0][:MOST_MARKS], text)


def count_marks(text: str) -> int:
    """Count the combining marks in a text.

    >>> count_marks("a\\u0300b\\u0316")
    2
    """
    if text.isascii():
        return 0
    points = code_points(text)
    return int(np.count_nonzero(_is_mark()[points[points >= _FIRST_MARK]]))  # most of HTML is below


@cache
def _is_mark() -> npt.NDArray[np.bool_]:
    """Return for each code point whether normalising sorts it, or turns it into a mark that is sorted.

    Half-width voicing marks of Japanese are of the second kind.
    """
    table = np.zeros(sys.maxunicode + 1, np.bool_)
    for point in range(_FIRST_MARK, _LAST_MARK + 1):
        table[point] = unicodedata.combining(unicodedata.normalize("NFKD", chr(point))[0])
    return table


@cache
def _long_row() -> re.Pattern[str]:
    marks = "".join(map(chr, np.flatnonzero(_is_mark()).tolist()))
    return re.compile(f"[{marks}]{{{MOST_MARKS},}}")
