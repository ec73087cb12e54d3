"""One spelling for one text, so that width, case and typesetting make no difference. One stage for all methods."""

from __future__ import annotations

import re
import unicodedata

from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.characters import IGNORABLE, SEVERAL, WIDE_MARKS, known
from scrapy_neardup.text.marks import few_marks
from scrapy_neardup.text.script import simplify

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
