"""Whether a page may take long to read: told from its HTML in a fraction of the time that reading it takes.

What is measured are upper bounds of whatever a reader's time grows with faster than with the size of the page, for no
look at the HTML tells as much as a parser knows, and strangers write it. A page below all of them takes a second or so
at most: benchmarks/hostile.py has the kinds. Of the pages of the web about two in a hundred are above one.
"""

from __future__ import annotations

import re
from random import getrandbits

from scrapy_neardup.text.marks import count_marks

#: Characters: most times grow with them; of pages of the web 1 % have more.
_MAX_SIZE = 700_000
#: Opening brackets, and so tags: readers take time quadratic in them.
_MAX_TAGS = 7_000
#: Cells that trafilatura makes of tables, each row filled up to the widest one, in which a cell may span a thousand.
_MAX_CELLS = 500_000
_SPAN = 1_000
#: Different attributes of one tag: the parser takes time quadratic in them. A page that is shorter has no room for so
#: many; in a longer one a sample is counted first, one block in eight, as counting takes longer than all else here.
_MAX_ATTRIBUTES = 15_000
_ATTRIBUTES_FROM = 60_000
_BLOCK, _ONE_IN_BITS = 256, 3
_SAMPLED = 1_400
#: Combining marks that are sure not to be many, in characters and in references each: see ``text.marks``.
_MAX_MARKS = 1_000

_ENDS_OF_NAMES = bytes.maketrans(b"/>=", b"   ")
#: At once, as what begins like all tags is slow to look for.
_CELL_OR_ROW = re.compile(rb"<t[dhr]")
#: With its value, if that is written plainly.
_COLSPAN = re.compile(rb"""colspan(?:\s*=\s*["']?(\d{1,4})["'\s/>])?""")
#: The names of references in HTML that are combining marks begin with these.
_NAMED_MARKS = ("&DownBreve", "&tdot", "&TripleDot", "&DotDot")


def is_risky(html: str) -> bool:
    """Whether reading a page may take long, or much memory.

    >>> is_risky("<p>The ferry sails again"), is_risky("<p>" * 10_000)
    (False, True)
    """
    html = html.replace("\0", "")  # as it is before it is parsed
    if len(html) > _MAX_SIZE or html.count("<") > _MAX_TAGS:
        return True
    plain = html.encode("utf-8", "replace").lower()
    return (
        has_many_marks(html, len(plain))
        or _cells(plain) > _MAX_CELLS
        or (len(html) > _ATTRIBUTES_FROM and _has_many_names(plain))
    )


def has_many_marks(html: str, size: int) -> bool:
    """Whether a page of so many bytes in UTF-8 may hold many combining marks: every reference by number may be one."""
    found = count_marks(html) if size - len(html) > _MAX_MARKS else 0  # a mark takes two bytes and more
    if html.count("&") > _MAX_MARKS:
        found += html.count("&#") + sum(map(html.count, _NAMED_MARKS))
    return found > 2 * _MAX_MARKS


def _cells(html: bytes) -> int:
    """How many cells the tables of a page, in small letters, come to at most."""
    found = _CELL_OR_ROW.findall(html)
    rows = 1 + found.count(b"<tr")
    cells = 1 + len(found) - rows
    if not cells:
        return 0
    wide = cells + sum(min(int(span or _SPAN), _SPAN) for span in _COLSPAN.findall(html))
    # Padding goes as far as a thousand columns; what spans several rows does not end there.
    return wide + rows * (wide if wide > _SPAN and b"rowspan" in html else min(_SPAN, wide))


def _has_many_names(html: bytes) -> bool:
    """Whether a tag of a page may have very many attributes.

    The blocks of the sample are drawn anew for each page, so that nobody can write beside them.
    """
    starts = range(0, len(html), _BLOCK)
    sample = b" ".join([html[start : start + _BLOCK] for start in starts if not getrandbits(_ONE_IN_BITS)])
    return _names(sample) > _SAMPLED and _names(html) > _MAX_ATTRIBUTES


def _names(html: bytes) -> int:
    """How many different attributes one tag of a page may have, at most.

    Where tags begin and end is for the parser to say: quotation marks and scripts hide it. But a name ends at one of
    these characters, and stands behind one of them or a quotation mark.
    """
    return len(set(html.translate(_ENDS_OF_NAMES).split())) + html.count(b"\x0b")
