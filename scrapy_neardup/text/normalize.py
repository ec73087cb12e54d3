"""Normalisation: one spelling for one text, whatever its width, case, script and typesetting."""

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
from scrapy_neardup.text.characters import IGNORABLE, SEVERAL, WIDE_MARKS, known
from scrapy_neardup.text.shingles import code_points

if TYPE_CHECKING:
    import opencc


# ----------------------------------------------------------------------------------------------------------------------
# Traditional Chinese characters as simplified ones, by OpenCC, where it is asked for.
#
# The direction is ``tw2s``: it does all that ``t2s`` does and knows the variants usual in Taiwan too (帶著, 沿著).


def converter_name() -> str:
    """Name, version and direction of the converter, for the recipe of a state; raises SettingsError without one."""
    _converter()
    return f"opencc {version('opencc')} tw2s"


def simplify(text: str) -> str:
    """The text in simplified characters; what is simplified already, or not Chinese, stays.

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
    return opencc.OpenCC("tw2s")


# ----------------------------------------------------------------------------------------------------------------------
# Combining marks in a row, of which no text has many: to put them in order takes time quadratic in their number.
#
# Unicode's Stream-Safe Text Format (UAX #15) allows thirty, and puts a joiner between them; here the others are left
# out, so that nobody's later stripping of joiners brings a longer row about.


#: Marks in a row that stay.
LIMIT = 30
#: Between these code points are all marks.
_FIRST, _LAST = 0x300, 0x1E94A


def few_marks(text: str) -> str:
    """Of combining marks in a row the first 30.

    >>> len(few_marks("a" + 20 * "\\u0300\\u0316" + "b"))
    32
    """
    return text if count_marks(text) <= LIMIT else _long_row().sub(_shortened, text)


def count_marks(text: str) -> int:
    """How many combining marks a text holds.

    >>> count_marks("a\\u0300b\\u0316")
    2
    """
    if text.isascii():
        return 0
    points = code_points(text)
    return int(np.count_nonzero(_is_mark()[points[points >= _FIRST]]))  # most of HTML is below


@cache
def _is_mark() -> npt.NDArray[np.bool_]:
    """Of each code point whether it is put in order.

    Also what is no mark itself and becomes one by normalising, as the half-width voicing marks of Japanese.
    """
    found = np.zeros(sys.maxunicode + 1, np.bool_)
    for point in range(_FIRST, _LAST + 1):
        found[point] = unicodedata.combining(unicodedata.normalize("NFKD", chr(point))[0])
    return found


@cache
def _long_row() -> re.Pattern[str]:
    marks = "".join(map(chr, np.flatnonzero(_is_mark()).tolist()))
    return re.compile(f"[{marks}]{{{LIMIT + 1},}}")


def _shortened(row: re.Match[str]) -> str:
    return row[0][:LIMIT]


# ----------------------------------------------------------------------------------------------------------------------
# One spelling for one text, so that width, case and typesetting make no difference. One stage for all methods.


#: Version of the spelling, for the recipe of a state. Raise it with each change of what ``normalize`` returns.
SPELLING = 2
#: Arabic, Persian, Indian ones and so on: one site writes them, the next one does not.
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_IGNORABLE = "".join(f"{chr(first)}-{chr(last)}" for first, last in IGNORABLE)
_INVISIBLE = re.compile(f"[{_IGNORABLE}]+")
_NO_LETTER = re.compile(rf"[\W_{_IGNORABLE}]+")
_NO_LETTER_IN_LINE = re.compile(rf"(?:[^\w\n]|[_{_IGNORABLE}])+")


def normalize(text: str, *, simplified: bool = False) -> str:
    """Compatibility composition (full-width to half-width, ligatures), case folding, our digits, nothing invisible.

    ``simplified`` maps traditional Chinese characters to simplified ones too.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    >>> normalize("۲۴")
    '24'
    """
    kernels = compiled.kernels
    plain = kernels.folded(known(), text) if kernels is not None else None
    if kernels is not None and plain is None and (easier := eased(text)) != text:
        plain = kernels.folded(known(), easier)
    text = _folded(text) if plain is None else plain
    return simplify(text) if simplified else text


def eased(text: str) -> str:
    """A text that has the same spelling, without what is not a character for a character: of most texts then all is."""
    for one, several in SEVERAL:
        text = text.replace(one, several)
    return text


def _folded(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    # Done first: a text without them passes NFKC's quick check, and the slow one is for few.
    for wide, narrow in WIDE_MARKS:
        text = text.replace(wide, narrow)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", few_marks(text))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text).casefold()


def letters(normalized: str) -> str:
    """Letters and digits alone: what is left when spacing, punctuation and invisible marks are not evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.letters(known(), normalized)
    return _NO_LETTER.sub("", normalized)


def letters_each(pieces: list[str]) -> list[str]:
    """``letters`` of each of these, none of which may hold a line break: in one pass where there is no kernel for it.

    >>> letters_each(["你好，世界", "2 apples", "!"])
    ['你好世界', '2apples', '']
    """
    kernels = compiled.kernels
    if kernels is not None:
        find, table = kernels.letters, known()
        return [find(table, piece) for piece in pieces]
    return _NO_LETTER_IN_LINE.sub("", "\n".join(pieces)).split("\n") if pieces else []
