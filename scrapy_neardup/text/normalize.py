"""One spelling for one text, so that width, case and typesetting make no difference."""

from __future__ import annotations

import re
import unicodedata

_NOT_A_LETTER = re.compile(r"[\W_]+")
_LONG_RUN = re.compile(r"[^\w\s]{31,}")


def normalize(text: str) -> str:
    """Compatibility composition (full-width to half-width, ligatures) and case folding.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    """
    return unicodedata.normalize("NFKC", _LONG_RUN.sub(_few_marks, text)).casefold()


def letters(normalized: str) -> str:
    """Letters and digits alone: what is left when spacing, punctuation and invisible marks are not evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    return _NOT_A_LETTER.sub("", normalized)


def _few_marks(run: re.Match[str]) -> str:
    """Of combining marks in a row the first 30: to put them in order takes time quadratic in their number."""
    kept, row = [], 0
    for char in run[0]:
        row = row + 1 if unicodedata.combining(char) else 0
        if row <= 30:
            kept.append(char)
    return "".join(kept)
