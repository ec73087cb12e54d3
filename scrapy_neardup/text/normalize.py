"""Normalisation: one spelling for a text, whatever its width, case, script and typesetting."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.characters import IGNORABLE, SEVERAL, WIDE_MARKS, character_table
from scrapy_neardup.text.shingles import code_points

if TYPE_CHECKING:
    import opencc


def converter_name() -> str:
    """Return name, version and direction of OpenCC for the recipe of a state, or raise SettingsError."""
    _converter()
    return f"opencc {version('opencc')} tw2s"


def simplify(text: str) -> str:
    """Convert traditional Chinese characters to simplified ones; leave all other text alone.

    >>> simplify("鎮上的老戲院")
    '镇上的老戏院'
    """
    try:
        return str(_converter().convert(text))
    except UnicodeEncodeError:
        return str(_converter().convert(text.encode("utf-8", "replace").decode("utf-8")))


@cache
def _converter() -> opencc.OpenCC:
    try:
        import opencc
    except ImportError:
        raise SettingsError('Traditional characters need OpenCC. Run: pip install "scrapy-neardup[opencc]"') from None
    return opencc.OpenCC("tw2s")  # t2s, and the variants usual in Taiwan (帶著, 沿著)


#: Combining marks in a row that stay. To order n marks takes n² steps, so hostile pages write many. Unicode's
#: Stream-Safe Text Format (UAX #15) inserts a joiner after 30; we drop the rest, as joiners may be removed later.
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
    return re.compile(f"[{marks}]{{{MOST_MARKS + 1},}}")


#: Version of the spelling in a state's recipe. Raise it whenever ``normalize`` returns something else.
SPELLING = 2
#: Arabic, Persian, Indian and other digits: one site writes them, the next one does not.
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_IGNORABLE = "".join(f"{chr(first)}-{chr(last)}" for first, last in IGNORABLE)
_INVISIBLE = re.compile(f"[{_IGNORABLE}]+")
_NO_LETTER = re.compile(rf"[\W_{_IGNORABLE}]+")
_NO_LETTER_IN_LINE = re.compile(rf"(?:[^\w\n]|[_{_IGNORABLE}])+")


def normalize(text: str, *, simplified: bool = False) -> str:
    """Apply compatibility composition (NFKC), fold case, write digits as 0 to 9, drop invisible characters.

    ``simplified`` maps traditional Chinese characters to simplified ones too.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    >>> normalize("۲۴")
    '24'
    """
    kernels = compiled.kernels
    plain = kernels.folded(character_table(), text) if kernels is not None else None
    if kernels is not None and plain is None and (expanded := expand_characters(text)) != text:
        plain = kernels.folded(character_table(), expanded)
    text = _fold(text) if plain is None else plain
    return simplify(text) if simplified else text


def expand_characters(text: str) -> str:
    """Replace characters that NFKC expands; the kernel handles one character for one only."""
    for one, several in SEVERAL:
        text = text.replace(one, several)
    return text


def _fold(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    # After these replacements most texts pass NFKC's quick check.
    for wide, narrow in WIDE_MARKS:
        text = text.replace(wide, narrow)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", limit_marks(text))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text).casefold()


def letters(normalized: str) -> str:
    """Return the letters and digits alone: spacing, punctuation and invisible marks are no evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.letters(character_table(), normalized)
    return _NO_LETTER.sub("", normalized)


def letters_each(pieces: list[str]) -> list[str]:
    """Return ``letters`` of each piece. No piece may hold a line break: without a kernel all go in one pass.

    >>> letters_each(["你好，世界", "2 apples", "!"])
    ['你好世界', '2apples', '']
    """
    kernels = compiled.kernels
    if kernels is not None:
        find, table = kernels.letters, character_table()
        return [find(table, piece) for piece in pieces]
    return _NO_LETTER_IN_LINE.sub("", "\n".join(pieces)).split("\n") if pieces else []
