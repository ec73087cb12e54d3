"""Where sentences end.

One pass over the text with a character class, never a pattern that can backtrack: hostile pages
hold hundreds of thousands of characters without a full stop.
"""

from __future__ import annotations

import re

from scrapy_neardup.text.characters import CLOSING, MARKS, QUOTES

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
