"""Whether a text holds enough to be judged."""

from __future__ import annotations

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.characters import known
from scrapy_neardup.text.normalize import letters

#: Letters from which a line counts as prose; menus and captions are shorter.
_PROSE_LINE = 10


def why_unjudged(text: str, needed: int) -> AnyReason:
    """The reason for which a text cannot be judged; empty if it can.

    >>> why_unjudged(" ", 15), why_unjudged("首页", 15), why_unjudged("渡口今天早上开航，第一班船是空的。", 15)
    ('no_text', 'too_short', '')
    """
    if has_prose(text, needed):
        return ""
    return "too_short" if text.strip() else "no_text"


def has_prose(text: str, needed: int) -> bool:
    """Whether ``needed`` letters and digits stand in lines that are long enough to be more than a menu.

    >>> has_prose("首页\\n新闻\\n渡口今天早上开航了，第一班船是空的。", 15)
    True
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.has_prose(known(), text, _PROSE_LINE, needed)
    found = 0
    for line in text.splitlines():
        length = len(letters(line))
        if length >= _PROSE_LINE:
            found += length
        if found >= needed:
            return True
    return False
