"""Strings of pages, made safe to show."""

from __future__ import annotations

import re

#: The longest title, sentence, URL and site.
TITLE, SENTENCE, URL, SITE = 160, 300, 1000, 60

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# Control characters, marks that change the direction of text, halves of surrogate pairs, non-characters.
_DANGEROUS = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_SPACE = re.compile(r"\s+")


def clean_text(text: str) -> str:
    r"""Return a text of several lines with disturbing characters replaced.

    >>> clean_text("The boat\x1b\u202e sank.\r\n\tAll swam.")
    'The boat�� sank.\n All swam.'
    """
    return _DANGEROUS.sub("\N{REPLACEMENT CHARACTER}", _LINE_END.sub("\n", text)).replace("\t", " ")


def clean_line(text: str, limit: int) -> str:
    r"""Return a single line of at most ``limit`` characters and an ellipsis.

    >>> clean_line("  The boat\n sank", 8)
    'The boat…'
    """
    line = _SPACE.sub(" ", clean_text(text[: 4 * limit])).strip()
    return line if len(line) <= limit and len(text) <= 4 * limit else line[:limit].rstrip() + "…"


def link(url: str) -> str:
    """Return a cleaned URL that may be a link, else nothing: another scheme can run code, a cut URL leads elsewhere.

    >>> link("https://a.example/ferry"), link("javascript:alert(1)")
    ('https://a.example/ferry', '')
    """
    whole = not url.endswith("…") and "\N{REPLACEMENT CHARACTER}" not in url and not _SPACE.search(url)
    return url if whole and url.lower().startswith(("http://", "https://")) else ""


#: Characters at the end of a URL that always show; shorter URLs are not cut.
TAIL, _LONG = 12, 28


def parted(url: str) -> tuple[str, str]:
    """Split a URL: the browser may shorten the first part. A copied URL is whole.

    >>> parted("https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-knew-why.html")
    ('https://ferry.example/2025/06/17/the-first-boat-was-empty-and-nobody-k', 'new-why.html')
    >>> parted("https://ferry.example/")
    ('https://ferry.example/', '')
    """
    return (url[:-TAIL], url[-TAIL:]) if len(url) > _LONG else (url, "")
