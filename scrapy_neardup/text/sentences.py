"""Where sentences end.

One pass over the text with a character class, never a pattern that can backtrack: hostile pages
hold hundreds of thousands of characters without a full stop.
"""

from __future__ import annotations

import re

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Remembering
from scrapy_neardup.text.characters import CLOSING, MARKS, QUOTES, known
from scrapy_neardup.text.normalize import eased, letters_each, normalize

_CLOSING = re.escape(CLOSING)
# A Latin full stop ends a sentence only before white space or what closes a quotation, so that 3.5 and example.com stay
# whole; the other marks always do, with the quotes and brackets that close behind them. Abbreviations are cut: both
# copies have them cut. The pattern begins with one class of characters, which is searched twice as fast as a choice.
_END = re.compile(rf"[{MARKS}.](?:(?<!\.)|(?=[\s{QUOTES}{_CLOSING}]))[{MARKS}]*[{_CLOSING}]*")


def sentences(text: str) -> list[str]:
    """The sentences of a text, stripped, without their end marks and without empty pieces.

    >>> sentences("第一句。“第二句！”他说；\\nIt cost 3.5 million. Nobody paid.")
    ['第一句', '“第二句', '他说', 'It cost 3.5 million', 'Nobody paid.']
    """
    return [piece for piece in map(str.strip, _END.split(text)) if piece]


def cut(text: str) -> tuple[list[str], list[str]]:
    """The sentences of a normalised text, and the letters of each.

    >>> cut("船来了, 我们走!\\n* * *")
    (['船来了, 我们走', '* * *'], ['船来了我们走', ''])
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.cut(known(), text)
    found = sentences(text)
    return found, letters_each(found)


def read(text: str, hashes: Remembering) -> tuple[list[str], list[str]]:
    """``cut`` of a text that is not normalised yet, in one step; of its letters the hashes may be known then."""
    kernels = compiled.kernels
    if kernels is None:
        return cut(normalize(text))
    found = kernels.read_text(known(), text, hashes.key, hashes.known)
    if found is None and (easier := eased(text)) != text:
        found = kernels.read_text(known(), easier, hashes.key, hashes.known)
    return cut(normalize(text)) if found is None else found
