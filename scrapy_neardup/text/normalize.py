"""One spelling for one text, so that width, case and typesetting make no difference."""

from __future__ import annotations

import re
import unicodedata

_NOT_A_LETTER = re.compile(r"[\W_]+")


def normalize(text: str) -> str:
    """Compatibility composition (full-width to half-width, ligatures) and case folding.

    >>> normalize("ＡＢＣ１２３ Straße")
    'abc123 strasse'
    """
    return unicodedata.normalize("NFKC", text).casefold()


def letters(normalized: str) -> str:
    """Letters and digits alone: what is left when spacing, punctuation and invisible marks are not evidence.

    >>> letters(normalize("你好，\\u200b世界！ 2 apples"))
    '你好世界2apples'
    """
    return _NOT_A_LETTER.sub("", normalized)
