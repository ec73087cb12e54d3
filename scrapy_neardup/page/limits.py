"""Bounds on a page: too large to read, too large to judge, or likely to take long."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from itertools import accumulate
from random import getrandbits

from scrapy_neardup.model import Page
from scrapy_neardup.text.characters import count_marks

#: The default of the most characters of text. The worst text of this length takes half a second.
MAX_TEXT = 400_000
#: The most characters of a title and of a description.
_MAX_TITLE = 2_000
_MAX_DESCRIPTION = 20_000
_MAX_KEYWORDS = 1_000
_MAX_HEADLINES = 200
#: Characters that normalisation makes this long. All others become six characters at most.
_EXPANSIONS = {"\ufdfa": 18, "\ufdfb": 8}
_MAX_EXPANSION = max(_EXPANSIONS.values())


def limit_page(page: Page, max_text: int) -> Page:
    """Shorten the metadata of a page, and remove its text if that is too long."""
    if is_too_long(page.text, max_text):
        page = replace(page, text="", main="", headline="", links="", quotes=(), unread="too_large")
    title, keywords = _cut(page.title, _MAX_TITLE), page.keywords and _cut_words(page.keywords)
    description, headline = _cut(page.description, _MAX_DESCRIPTION), page.headline
    if headline:
        headline = "\n".join(_cut(line, _MAX_TITLE) for line in headline.split("\n", _MAX_HEADLINES)[:_MAX_HEADLINES])
    if (title, keywords, description, headline) == (page.title, page.keywords, page.description, page.headline):
        return page  # the usual case
    return replace(page, title=title, keywords=keywords, description=description, headline=headline)


def is_too_long(text: str, max_text: int) -> bool:
    """Whether a text has more characters, before or after normalisation.

    >>> is_too_long("ferry", 5), is_too_long("ferries", 5), is_too_long("\\ufdfa", 5)
    (False, True, True)
    """
    if len(text) > max_text:
        return True
    if len(text) * _MAX_EXPANSION <= max_text:
        return False
    return len(text) + sum((size - 1) * text.count(char) for char, size in _EXPANSIONS.items()) > max_text


def _cut(text: str, limit: int) -> str:
    if not is_too_long(text, limit):
        return text
    text = text[:limit]
    return text if not is_too_long(text, limit) else text[: limit // _MAX_EXPANSION]


def _cut_words(words: tuple[str, ...]) -> tuple[str, ...]:
    words = tuple(_cut(word, _MAX_TITLE) for word in words[:_MAX_KEYWORDS])
    return words[: bisect_right(list(accumulate(map(len, words))), _MAX_DESCRIPTION)]


#: The most opening brackets of a page: the parser's time grows with their square.
MAX_TAGS = 100_000


def is_too_large(html: str, max_html: int) -> bool:
    """Whether a page has too many characters or tags to be parsed.

    >>> is_too_large("<p>x", 4), is_too_large("<p>xx", 4)
    (False, True)
    """
    return len(html) > max_html or html.count("<") > MAX_TAGS


# The bounds below tell in a fraction of the reading time whether a page may take long. They are upper bounds of
# everything that makes the time grow faster than the size, since only a parser knows the exact numbers. A page within
# all bounds takes about a second at most (benchmarks/hostile.py has the kinds). About 2 % of web pages exceed one.

#: Characters: most times grow with them. 1 % of web pages have more.
_MAX_SIZE = 700_000
#: Opening brackets, so tags: the time is quadratic in them.
_MAX_TAGS = 7_000
#: Table cells in trafilatura, which pads each row to the widest one. One cell may span a thousand columns.
_MAX_CELLS = 500_000
_SPAN = 1_000
#: Different attributes of one tag: the parser's time is quadratic in them. Shorter pages cannot have so many. Counting
#: is slow, so a sample (one block in eight) is counted first.
_MAX_ATTRIBUTES = 15_000
_ATTRIBUTES_FROM = 60_000
_BLOCK, _ONE_IN_BITS = 256, 3
_SAMPLED = 1_400
#: Combining marks written as characters, and as references: fewer are harmless. See ``text.normalize``.
_MAX_MARKS = 1_000

_ENDS_OF_NAMES = bytes.maketrans(b"/>=", b"   ")
#: One pattern, because a search for every "<" is slow.
_CELL_OR_ROW = re.compile(rb"<t[dhr]")
#: The group is the value, if it is a plain number.
_COLSPAN = re.compile(rb"""colspan(?:\s*=\s*["']?(\d{1,4})["'\s/>])?""")
#: The beginnings of named references to combining marks.
_NAMED_MARKS = ("&DownBreve", "&tdot", "&TripleDot", "&DotDot")


def is_risky(html: str) -> bool:
    """Whether a page may take much time or memory to read.

    >>> is_risky("<p>The ferry sails again"), is_risky("<p>" * 10_000)
    (False, True)
    """
    html = html.replace("\0", "")  # as the parser does
    if len(html) > _MAX_SIZE or html.count("<") > _MAX_TAGS:
        return True
    plain = html.encode("utf-8", "replace").lower()
    return (
        has_many_marks(html, len(plain))
        or _count_cells(plain) > _MAX_CELLS
        or (len(html) > _ATTRIBUTES_FROM and _has_many_attributes(plain))
    )


def has_many_marks(html: str, size: int) -> bool:
    """Whether a page of ``size`` bytes in UTF-8 may have many combining marks. Each numeric reference may be one."""
    found = count_marks(html) if size - len(html) > _MAX_MARKS else 0  # a mark has at least two bytes
    if html.count("&") > _MAX_MARKS:
        found += html.count("&#") + sum(map(html.count, _NAMED_MARKS))
    return found > 2 * _MAX_MARKS


def _count_cells(html: bytes) -> int:
    """Return an upper bound of the table cells of a page in lower case."""
    found = _CELL_OR_ROW.findall(html)
    rows = 1 + found.count(b"<tr")
    cells = 1 + len(found) - rows
    if not cells:
        return 0
    wide = cells + sum(min(int(span or _SPAN), _SPAN) for span in _COLSPAN.findall(html))
    # Rows are padded to a thousand columns at most, except by cells that span several rows.
    return wide + rows * (wide if wide > _SPAN and b"rowspan" in html else min(_SPAN, wide))


def _has_many_attributes(html: bytes) -> bool:
    """Whether a tag may have very many attributes. The sample is random, and no page can avoid it."""
    starts = range(0, len(html), _BLOCK)
    sample = b" ".join([html[start : start + _BLOCK] for start in starts if not getrandbits(_ONE_IN_BITS)])
    return _count_names(sample) > _SAMPLED and _count_names(html) > _MAX_ATTRIBUTES


def _count_names(html: bytes) -> int:
    """Return an upper bound of the different attributes of one tag.

    Only a parser knows the ends of tags, because of quotation marks and scripts. But an attribute's name always ends at
    one of these characters, and begins after one of them or a quotation mark.
    """
    return len(set(html.translate(_ENDS_OF_NAMES).split())) + html.count(b"\x0b")
