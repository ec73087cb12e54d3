"""Bytes of a page to text, also where the page declares a wrong charset or none.

Chinese pages declare gb2312 and use GBK, say utf-8 and are not, or say nothing. A strict decoder tells UTF-8
from everything else for certain. GB18030 and Big5 it cannot tell apart, as nearly every pair of bytes is a
character in both: there, real text is known by its commonest characters, which the wrong reading lacks.
"""

from __future__ import annotations

import re

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom, resolve_encoding

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
