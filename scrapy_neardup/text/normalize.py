"""Normalisation: one spelling for a text, for all widths, cases, scripts and typesetting.

These functions are the definition of the compiled module, which does the same in less time if it is there.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.characters import IGNORABLE, SEVERAL, known_characters, limit_marks

if TYPE_CHECKING:
    import opencc

#: Version of the spelling in a state's recipe. Raise it whenever ``normalize`` returns something else.
SPELLING = 2

#: Arabic, Persian, Indian and other digits: one site writes them, the next one does not.
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_IGNORABLE = "".join(f"{chr(first)}-{chr(last)}" for first, last in IGNORABLE)
_INVISIBLE = re.compile(f"[{_IGNORABLE}]+")
_NO_LETTER = re.compile(rf"[\W_{_IGNORABLE}]+")


def normalize(text: str, *, simplified: bool = False) -> str:
    """Apply compatibility composition (NFKC), fold case, write digits as 0 to 9, drop invisible characters.

    ``simplified`` maps traditional Chinese characters to simplified ones too.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    >>> normalize("۲۴")
    '24'
    """
    kernels = compiled.kernels
    folded = kernels.folded(known_characters(), text, False, False) if kernels else None
    if folded is None:
        folded = _fold(text)
    return simplify(folded) if simplified else folded


def _fold(text: str) -> str:
    if kernels := compiled.kernels:
        found = kernels.folded(known_characters(), expand(text), False, False)
        if found is not None:
            return found
    text = _INVISIBLE.sub("", text)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", limit_marks(text))
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text).casefold()


def expand(text: str) -> str:
    """Replace characters that normalise to several; the compiled module takes one for one only."""
    for one, several in SEVERAL:
        text = text.replace(one, several)
    return text


def letters(normalized: str) -> str:
    """Return only the letters and digits: spacing, punctuation and invisible marks are no evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    if (kernels := compiled.kernels) is not None:
        return kernels.folded(known_characters(), normalized, True, True) or ""
    return _NO_LETTER.sub("", normalized)


def converter_name() -> str:
    """Return name, version and direction of OpenCC for the recipe of a state, or raise SettingsError."""
    _converter()
    return f"opencc {version('opencc')} tw2s"


def simplify(text: str) -> str:
    """Convert traditional Chinese characters to simplified ones; other text stays.

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
