"""Decode HTML, and parse it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

import lxml.html
from lxml import etree
from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

from scrapy_neardup.page.limits import has_many_marks
from scrapy_neardup.text.characters import HAN, limit_marks

# Chinese pages declare gb2312 and use GBK, declare utf-8 wrongly, or declare nothing. A strict decoder recognises UTF-8
# for certain. Nearly every pair of bytes is a character in GB18030, Big5 and the charsets of Japan and Korea, so there
# the commonest characters decide: the wrong decoding lacks them.

#: The bytes that decide about the charset.
_SAMPLE = 200_000
_HAN_PAIR = re.compile(f"[{HAN}]{{2}}")
_SEVERAL_BYTES = ("utf", "euc", "shift", "cp932", "cp949", "cp950", "iso2022", "hz", "johab")
#: Common characters of prose, with the punctuation. Chinese: in both scripts. Japanese: all kana.
_CHINESE = frozenset(
    "的一是不在人有我他這个個们們中来來上大为為和國国地到以説說时時要就出會会可也你對对生能而子那得於于著着下自之年過过發发後后作里裡"
    "用道行所然家種种事成方多經经麼么去法學学如都同現现當当沒没動动面起看定天分還还進进好小部其些主樣样理心她本前開开但因只從从想實实，。、：的"
)
_JAPANESE = frozenset(map(chr, range(0x3041, 0x30FF)))
_KOREAN = frozenset("이다는의에을가고지하은한로를도기사리자어나시아서인그들있해대정일수제것으라원전부스과장보주만국적")
_COMMON = {
    "gb18030": _CHINESE, "big5hkscs": _CHINESE, "cp932": _JAPANESE, "euc_jp": _JAPANESE, "cp949": _KOREAN,
}  # fmt: skip
_WRONG = re.compile("[\ufffd\ue000-\uf8ff\x80-\x9f]")


def decode(body: bytes, content_type: str | None = None) -> str:
    """Decode HTML, also if its declared charset is wrong or missing. ``content_type``: the HTTP header. Never raises.

    >>> decode("<meta charset=utf-8>大桥通车的消息".encode("gbk"))
    '<meta charset=utf-8>大桥通车的消息'
    """
    bom, rest = read_bom(body)
    if bom is not None and rest is not None:
        return body[len(rest) :].decode(bom, "replace")
    header, meta = http_content_type_encoding(content_type), html_body_declared_encoding(body[:4096])
    names = []
    if header and (_keeps_tags(header) or header.startswith(("utf-16", "utf-32"))):
        names.append(resolve_encoding(header) or "utf-8")
    if meta and _keeps_tags(meta):
        names.append(resolve_encoding(meta) or "utf-8")
    for name in dict.fromkeys(("utf-8", *names)):
        if name.startswith(_SEVERAL_BYTES):  # codecs of single bytes accept all bytes
            with suppress(UnicodeDecodeError, LookupError):
                return body.decode(name)
    # The first of equals wins: the declared charset, then cp1252, which can decode any bytes.
    candidates = dict.fromkeys((*names, "cp1252", *_COMMON, "utf-8"))
    best = max(candidates, key=lambda name: _plausibility(body[:_SAMPLE], name))
    return body.decode(best, "replace")


def _keeps_tags(name: str) -> bool:
    """Whether a codec keeps tags. Others are no charsets of HTML, such as Python's hex and idna."""
    try:
        return "escape" not in name and b"<->".decode(name, "replace") == "<->"
    except (LookupError, UnicodeError):
        return False


def _plausibility(sample: bytes, name: str) -> float:
    """Score a decoding: common characters minus impossible ones."""
    text = sample.decode(name, "replace")
    foreign = {char: count for char, count in Counter(text).items() if char > "\x7f"}
    # Hardly any bytes of other charsets are characters in UTF-8.
    known: Iterable[str] = foreign if name == "utf-8" else _COMMON.get(name, ())
    common = sum(foreign[char] for char in foreign.keys() & known)
    # Chinese has runs of characters. Western text decoded as Chinese has single ones between letters.
    runs = len(_HAN_PAIR.findall(text))
    wrong = sum(count for char, count in foreign.items() if _WRONG.match(char))
    return common + 0.1 * runs - 5.0 * wrong


_END = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
#: Characters that lxml returns but does not accept.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: One class for all elements. The default of lxml.html calls a Python function for each element, which is the slowest
#: part of a walk through the tree, here and in trafilatura.
_CLASSES = etree.ElementDefaultClassLookup(element=lxml.html.HtmlElement)  # there are no comments


def parse_page(html: str) -> lxml.html.HtmlElement | None:
    """Parse a document or a fragment, without comments. None if that fails."""
    # lxml stops at a NUL and at the end of the document, but browsers go on: some pages are joined from several
    # documents.
    plain = _END.sub(" ", html.replace("\0", "")).encode("utf-8", "replace")
    root = parse_bytes(plain)
    if root is not None and has_many_marks(html, len(plain)):
        _limit_marks(root)
    return root


def parse_bytes(html: bytes) -> lxml.html.HtmlElement | None:
    """Parse HTML in UTF-8, without comments and instructions. None if that fails.

    It takes bytes, because lxml would apply the declared charset to a string.
    """
    parser = lxml.html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True)
    parser.set_element_class_lookup(_CLASSES)
    try:
        return lxml.html.document_fromstring(html, parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):  # only white space, for instance
        return None


def _limit_marks(root: lxml.html.HtmlElement) -> None:
    """Shorten long runs of combining marks, because trafilatura normalises its text.

    This changes the tree, because marks may be written as characters or as several kinds of references.
    """
    for element in root.iter():
        for name in ("text", "tail"):
            text = getattr(element, name)
            if text and (fewer := limit_marks(text)) != text:
                setattr(element, name, _UNWRITABLE.sub(" ", fewer))
