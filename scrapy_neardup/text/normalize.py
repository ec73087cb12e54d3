"""One spelling for one text, so that width, case and typesetting make no difference. One stage for all methods."""

from __future__ import annotations

import re
import unicodedata

from scrapy_neardup.text.marks import few_marks
from scrapy_neardup.text.script import simplify

_NOT_A_WORD = re.compile(r"\W+")
_NOT_A_WORD_IN_LINE = re.compile(r"[^\w\n]+")
# Soft hyphens, zero-width spaces and joiners, marks of direction: they show nothing, and cut words in two.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+")
# What NFKC does to the marks of every Chinese page, done first: a text without them passes NFKC's quick check, and the
# slow one is for few.
_WIDE_MARKS = (
    ("，", ","),
    ("：", ":"),
    ("；", ";"),
    ("！", "!"),
    ("？", "?"),
    ("（", "("),
    ("）", ")"),
    ("\u3000", " "),
)


def normalize(text: str, *, simplified: bool = False) -> str:
    """Compatibility composition (full-width to half-width, ligatures), case folding, nothing invisible.

    ``simplified`` maps traditional Chinese characters to simplified ones too.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    """
    if not text.replace("\n", "").isprintable():  # told faster than by searching for what is invisible
        text = _INVISIBLE.sub("", text)
    for wide, narrow in _WIDE_MARKS:
        text = text.replace(wide, narrow)
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", few_marks(text))
    text = text.casefold()
    return simplify(text) if simplified else text


def letters(normalized: str) -> str:
    """Letters and digits alone: what is left when spacing, punctuation and invisible marks are not evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    return _NOT_A_WORD.sub("", normalized).replace("_", "")


def letters_each(pieces: list[str]) -> list[str]:
    """``letters`` of each of these, none of which may hold a line break: in one pass, as calls cost more than text.

    >>> letters_each(["你好，世界", "2 apples", "!"])
    ['你好世界', '2apples', '']
    """
    return _NOT_A_WORD_IN_LINE.sub("", "\n".join(pieces)).replace("_", "").split("\n") if pieces else []
