"""Long URLs as they are shown: the browser cuts out of the middle what it has no room for; copied, they are whole."""

from __future__ import annotations

#: Characters of the end of a URL that always stay; shorter URLs are not parted.
TAIL, _LONG = 12, 28


def parted(url: str) -> tuple[str, str]:
    """A URL in two parts, of which the first may be cut short.

    >>> parted("https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-knew-why.html")
    ('https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-k', 'new-why.html')
    >>> parted("https://ferry.example/")
    ('https://ferry.example/', '')
    """
    return (url[:-TAIL], url[-TAIL:]) if len(url) > _LONG else (url, "")
