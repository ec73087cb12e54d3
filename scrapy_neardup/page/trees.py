"""HTML to the tree that is read."""

from __future__ import annotations

import re

import lxml.html
from lxml import etree

from scrapy_neardup.page.risk import has_many_marks
from scrapy_neardup.text.marks import few_marks

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
        if text and (fewer := few_marks(text)) != text:
            element.text = _UNWRITABLE.sub(" ", fewer)
        if tail and (fewer := few_marks(tail)) != tail:
            element.tail = _UNWRITABLE.sub(" ", fewer)
