"""The bytes of a page to text, and to a tree."""

from __future__ import annotations

import re
from random import getrandbits

import lxml.html
from lxml import etree
from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

from scrapy_neardup.text.normalize import count_marks, limit_marks

# ----------------------------------------------------------------------------------------------------------------------
# Bytes of a page to text, also where the page declares a wrong charset or none.
#
# Chinese pages declare gb2312 and use GBK, say utf-8 and are not, or say nothing. A strict decoder tells UTF-8
# from everything else for certain. GB18030 and Big5 it cannot tell apart, as nearly every pair of bytes is a
# character in both: there, real text is known by its commonest characters, which the wrong reading lacks.


#: As many bytes decide; a page's charset does not change on the way.
_SAMPLE = 200_000
_HAN_PAIR = re.compile("[\u4e00-\u9fff]{2}")
_CHINESE = ("gb18030", "big5hkscs")
_SEVERAL_BYTES = ("utf", "euc", "shift", "cp932", "cp949", "cp950", "iso2022", "hz", "johab")
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "big5hkscs", "big5hkscs": "big5hkscs"}
# Some of the commonest characters of Chinese prose, in both scripts, and marks that no prose is without.
_COMMON = frozenset(
    "的一是不在人有我他这個个們们中來来上大為为和國国地到以說说時时要就出會会可也你對对生能而子那得於于著着下自之年過过發发後后作里裡"
    "用道行所然家種种事成方多經经麼么去法學学如都同現现當当沒没動动面起看定天分還还進进好小部其些主樣样理心她本前開开但因只從从想實实，。、：的"
)


def decode(body: bytes, content_type: str | None = None) -> str:
    """The text of an HTML body; ``content_type`` is the HTTP header, if there was one. Never raises.

    >>> decode("<meta charset=utf-8>大桥通车的消息".encode("gbk"))
    '<meta charset=utf-8>大桥通车的消息'
    """
    bom, rest = read_bom(body)
    if bom is not None and rest is not None:
        return body[len(rest) :].decode(bom, "replace")
    header, meta = http_content_type_encoding(content_type), html_body_declared_encoding(body[:4096])
    names = []
    if header and (_reads_markup(header) or header.startswith(("utf-16", "utf-32"))):
        names.append(_resolved(header))
    if meta and _reads_markup(meta):
        names.append(_resolved(meta))
    for name in dict.fromkeys(("utf-8", *names)):
        if name not in _CHINESE and _is_strictly(body, name):
            return body.decode(name)
    # The first of equals wins: what was declared, then Western, which any bytes can be.
    candidates = dict.fromkeys((*names, "cp1252", *_CHINESE, "utf-8"))
    best = max(candidates, key=lambda name: _plausibility(body[:_SAMPLE], name))
    return body.decode(best, "replace")


def _resolved(name: str) -> str:
    """The codec that browsers use for a declared name; an unknown one counts as not declared."""
    resolved = resolve_encoding(name) or "utf-8"
    return _WIDER.get(resolved.replace("-", "").replace("_", ""), resolved)


def _reads_markup(name: str) -> bool:
    """Whether tags stay tags: else they would not have been found, or it is no charset, as Python's hex and idna."""
    try:
        return "escape" not in name and b"<->".decode(name, "replace") == "<->"
    except (LookupError, UnicodeError):
        return False


def _is_strictly(body: bytes, name: str) -> bool:
    # Single-byte codecs accept everything, so they prove nothing.
    if not name.startswith(_SEVERAL_BYTES):
        return False
    try:
        body.decode(name)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def _plausibility(sample: bytes, name: str) -> float:
    """How much a reading looks like text: common characters, less everything that cannot be meant."""
    text = sample.decode(name, "replace")
    foreign = [char for char in text if char > "\x7f"]
    common = sum(char in _COMMON for char in foreign)
    # Western text read as Chinese has lone characters between letters; Chinese stands in runs.
    runs = len(_HAN_PAIR.findall(text))
    wrong = sum(char == "\ufffd" or "\ue000" <= char <= "\uf8ff" or "\x80" <= char < "\xa0" for char in foreign)
    return common + 0.1 * runs - 5.0 * wrong


# ----------------------------------------------------------------------------------------------------------------------
# Whether a page may take long to read: told from its HTML in a fraction of the time that reading it takes.
#
# What is measured are upper bounds of whatever a reader's time grows with faster than with the size of the page, for no
# look at the HTML tells as much as a parser knows, and strangers write it. A page below all of them takes a second or
# so at most: benchmarks/hostile.py has the kinds. Of the pages of the web about two in a hundred are above one.


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


# ----------------------------------------------------------------------------------------------------------------------
# HTML to the tree that is read.


_END = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
#: What lxml finds in the text of a page and does not take.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: One class for all elements. lxml.html has others for those of forms, and asks a function of Python which it is
#: whenever it comes to an element, which takes longer than all else of coming there: here and in trafilatura.
_CLASSES = etree.ElementDefaultClassLookup(
    element=lxml.html.HtmlElement,
    comment=lxml.html.HtmlComment,
    pi=lxml.html.HtmlProcessingInstruction,
    entity=lxml.html.HtmlEntity,
)


def root_of(html: str) -> lxml.html.HtmlElement | None:
    """The tree of a document, or of a fragment as one, without comments; None if it cannot be parsed."""
    # lxml stops at a NUL, and at the end of the document, behind which browsers go on: pages are put together from
    # parts that each end one.
    plain = encoded(_END.sub(" ", html.replace("\0", "")))
    root = parsed(plain, comments=False)
    if root is not None and has_many_marks(html, len(plain)):
        _limit_marks(root)
    return root


def encoded(html: str) -> bytes:
    """HTML as ``parsed`` takes it: the declared charset was that of its bytes, and lxml would apply it to a string."""
    return html.encode("utf-8", "replace")


def parsed(html: bytes, *, comments: bool) -> lxml.html.HtmlElement | None:
    """The tree of encoded HTML, with comments and instructions or without; None if it cannot be parsed."""
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=not comments, remove_pis=not comments)
    parser.set_element_class_lookup(_CLASSES)
    try:
        return lxml.html.document_fromstring(html, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):  # nothing but white space, for instance
        return None


def _limit_marks(root: lxml.html.HtmlElement) -> None:
    """Leave no long row of combining marks in a tree: trafilatura normalises its text.

    On the tree, as marks may be written in characters or in references of several kinds.
    """
    for element in root.iter():
        text, tail = element.text, element.tail
        if text and (fewer := limit_marks(text)) != text:
            element.text = _UNWRITABLE.sub(" ", fewer)
        if tail and (fewer := limit_marks(tail)) != tail:
            element.tail = _UNWRITABLE.sub(" ", fewer)
