"""Normalisation: one spelling for a text, whatever its width, case, script and typesetting."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.text import backend
from scrapy_neardup.text.sentences import SegmentedText

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


#: Version of the spelling in a state's recipe. Raise it whenever ``normalize`` returns something else.
SPELLING = 2


def normalize(text: str, *, simplified: bool = False) -> str:
    """Apply compatibility composition (NFKC), fold case, write digits as 0 to 9, drop invisible characters.

    ``simplified`` maps traditional Chinese characters to simplified ones too.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    >>> normalize("۲۴")
    '24'
    """
    text = backend.active.fold(text)
    return simplify(text) if simplified else text


def letters(normalized: str) -> str:
    """Return the letters and digits alone: spacing, punctuation and invisible marks are no evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    return backend.active.letters(normalized)


def segment(text: str, hashes: Keyed, *, simplified: bool = False) -> SegmentedText:
    """Normalise a text and split it into sentences.

    >>> found = segment("船来了，我们走！\\n* * *", Keyed())
    >>> found.sentences, found.lines
    (['船来了,我们走'], ['船来了我们走'])
    """
    if simplified:
        return backend.active.segment(normalize(text, simplified=True), hashes, is_normalized=True)
    return backend.active.segment(text, hashes, is_normalized=False)
