"""Whether a text is long enough to judge."""

from __future__ import annotations

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.text import backend

#: Fewest letters of a line of prose; menus and captions are shorter.
_PROSE_LINE = 10


def why_unjudged(text: str, needed: int) -> AnyReason:
    """Return why a text cannot be judged, or an empty string if it can.

    >>> why_unjudged(" ", 15), why_unjudged("首页", 15), why_unjudged("渡口今天早上开航，第一班船是空的。", 15)
    ('no_text', 'too_short', '')
    """
    if has_prose(text, needed):
        return ""
    return "too_short" if text.strip() else "no_text"


def has_prose(text: str, needed: int) -> bool:
    """Whether the lines that are longer than menu entries have ``needed`` letters and digits.

    >>> has_prose("首页\\n新闻\\n渡口今天早上开航了，第一班船是空的。", 15)
    True
    """
    return backend.active.has_prose(text, _PROSE_LINE, needed)
