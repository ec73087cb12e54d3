"""Strings of pages, made safe to show."""

from __future__ import annotations

import re

# ----------------------------------------------------------------------------------------------------------------------
# Strings of pages as they may be shown: a page may hold anything, and a report is passed on.


#: Longest title, sentence, URL and site that are shown.
TITLE, SENTENCE, URL, SITE = 160, 300, 1000, 60

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters; marks that turn the direction of what follows them, up to the end of their line; halves of
# characters, which no file in UTF-8 may hold; what is no character.
_DANGEROUS = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_SPACE = re.compile(r"\s+")


def clean_text(text: str) -> str:
    """A text of several lines; what could disturb is made visible.

    >>> clean_text("The boat\\x1b\\u202e sank.\\r\\n\\tAll swam.")
    'The boat�� sank.\\n All swam.'
    """
    return _DANGEROUS.sub("\N{REPLACEMENT CHARACTER}", _LINE_END.sub("\n", text)).replace("\t", " ")


def clean_line(text: str, limit: int) -> str:
    """A single line of at most ``limit`` characters and an ellipsis.

    >>> clean_line("  The boat\\n sank", 8)
    'The boat…'
    """
    line = _SPACE.sub(" ", clean_text(text[: 4 * limit])).strip()
    return line if len(line) <= limit and len(text) <= 4 * limit else line[:limit].rstrip() + "…"


def link(url: str) -> str:
    """A cleaned URL if it may be a link, else nothing: another scheme can run code, a cut one leads elsewhere.

    >>> link("https://a.example/ferry"), link("javascript:alert(1)")
    ('https://a.example/ferry', '')
    """
    whole = not url.endswith("…") and "\N{REPLACEMENT CHARACTER}" not in url and not _SPACE.search(url)
    return url if whole and url.lower().startswith(("http://", "https://")) else ""


# ----------------------------------------------------------------------------------------------------------------------
# Long URLs as they are shown: the browser cuts out of the middle what it has no room for; copied, they are whole.


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
