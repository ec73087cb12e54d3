"""Decoding of pages with right, wrong and missing declarations, and of any bytes."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.page.html import decode

SIMPLIFIED = (
    "河湾镇的新渡口今天早上开航了，第一班船载着三十位乘客和他们的行李，从对岸慢慢驶来。镇上的人们都说，这是好消息。"
)
TRADITIONAL = (
    "河灣鎮的新渡口今天早上開航了，第一班船載著三十位乘客和他們的行李，從對岸慢慢駛來。鎮上的人們都說，這是好消息。"
)
JAPANESE = "川岸の新しい渡し船は今朝はじめて出航しました。町の人々は、これはいちばん良い知らせだと話しています。"
RUSSIAN = "Новый паром сегодня утром впервые отошёл от берега, и жители городка говорят, что это хорошая новость."
KOREAN = "강가의 새 나룻배가 오늘 아침 처음으로 떠났다. 마을 사람들은 이것이 가장 좋은 소식이라고 말하고 있다."
FRENCH = (
    "Le nouveau bac a quitté la rive dès l'aube; les élèves, déjà réveillés, ont crié à tue-tête: où êtes-vous passé?"
)
ENGLISH = "The new ferry left the bank this morning, and the whole town came down to wave."

#: Text and charset of pages that are read under any declaration.
RECOGNISED = {
    "simplified, utf-8": (SIMPLIFIED, "utf-8"),
    "traditional, utf-8": (TRADITIONAL, "utf-8"),
    "russian, utf-8": (RUSSIAN, "utf-8"),
    "simplified, gb2312": (SIMPLIFIED, "gb2312"),
    "simplified, gbk": (SIMPLIFIED + "镕", "gbk"),
    "simplified, gb18030": (SIMPLIFIED + "㐀", "gb18030"),
    "traditional, gbk": (TRADITIONAL, "gbk"),
    "traditional, big5": (TRADITIONAL, "big5"),
    "japanese, shift_jis": (JAPANESE, "shift_jis"),
    "japanese, euc-jp": (JAPANESE, "euc-jp"),
    "korean, euc-kr": (KOREAN, "euc-kr"),
    "english, ascii": (ENGLISH, "ascii"),
}
#: Text and charset of pages that need their declaration.
DECLARED_ONLY = {
    "russian, windows-1251": (RUSSIAN, "windows-1251"),
    "russian, koi8-r": (RUSSIAN, "koi8-r"),
    "french, latin-1": (FRENCH, "iso-8859-1"),
}
# fmt: off
DECLARED = [
    "", "utf-8", "gb2312", "gbk", "gb18030", "big5", "iso-8859-1", "windows-1252", "windows-1251", "shift_jis",
    "utf-16", "koi8-r", "cp866", "macintosh", "no-such-charset", "hex", "idna",
]
# fmt: on
#: Python codecs that are no charsets of pages.
NO_CHARSETS = ["hex", "rot13", "base64", "zlib", "bz2", "uu", "quopri", "idna", "punycode", "undefined"]
NO_CHARSETS += ["unicode_escape", "raw_unicode_escape", "cp037", "utf-7", "x-user-defined"]


def read(text: str, charset: str, declared: str, where: str) -> tuple[str, str]:
    forms = {
        "meta": f'<meta charset="{declared}">',
        "pragma": f'<meta http-equiv="Content-Type" content="text/html; charset={declared}">',
    }
    html = f"<html><head>{forms.get(where, '') if declared else ''}</head><body><p>{text}</p></body></html>"
    header = f"text/html; charset={declared}" if declared and where == "header" else None
    return decode(html.encode(charset), header), html


#: Every declaration in every place, except UTF-16 in the header: it decodes nearly all bytes.
DECLARATIONS = [pair for pair in product(DECLARED, ["header", "meta", "pragma"]) if pair != ("utf-16", "header")]


def misread(text: str, charset: str, declarations: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the declarations under which a page is decoded wrongly, with the result."""
    pages = {pair: read(text, charset, *pair) for pair in declarations}
    return {pair: found for pair, (found, html) in pages.items() if found != html}


def test_pages_are_read_by_their_bytes_and_else_by_their_declaration() -> None:
    for text, charset in RECOGNISED.values():
        assert misread(text, charset, DECLARATIONS) == {}
    for text, charset in DECLARED_ONLY.values():
        assert misread(text, charset, product([charset], ["header", "meta", "pragma"])) == {}
    declared = ["", "utf-8", "gb2312", "big5", "windows-1252", "shift_jis", "no-such-charset"]
    assert misread(FRENCH, "iso-8859-1", product(declared, ["header", "meta"])) == {}


@pytest.mark.parametrize("declared", ["", "utf-8", "big5"])
@pytest.mark.parametrize(("text", "charset"), DECLARED_ONLY.values(), ids=DECLARED_ONLY)
def test_pages_in_an_unknown_charset_keep_their_markup(text: str, charset: str, declared: str) -> None:
    found, html = read(text, charset, declared, "header")
    assert found.startswith("<html><head></head><body><p>")
    assert len(found) >= len(html) // 2


@pytest.mark.parametrize("header", [None, "text/html; charset=gbk", "text/html; charset=utf-8"])
@pytest.mark.parametrize(
    ("bom", "charset"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_decides(bom: bytes, charset: str, header: str | None) -> None:
    html = f"<meta charset=big5><p>{SIMPLIFIED}</p>"
    assert decode(bom + html.encode(charset), header) == html


def test_utf16_other_codecs_and_broken_bytes_are_read() -> None:
    for charset in ["utf-16-le", "utf-16-be"]:
        assert decode(SIMPLIFIED.encode(charset), f"text/html; charset={charset}") == SIMPLIFIED
    for text, charset in [(SIMPLIFIED, "gbk"), (SIMPLIFIED, "utf-8"), (FRENCH + r" \d \u6e21", "iso-8859-1")]:
        assert misread(text, charset, product(NO_CHARSETS, ["header", "meta", "pragma"])) == {}
    for text, charset in RECOGNISED.values():
        found = decode((text * 5).encode(charset) + b"\xff<p>" + text.encode(charset))
        assert found.startswith(text), charset
        assert found.endswith(text), charset
    body = b"<p>" + b"x" * 250_000 + SIMPLIFIED.encode("gbk")
    assert decode(body, "text/html; charset=gb2312").endswith(SIMPLIFIED)


@settings(deadline=None, max_examples=300)
@given(
    st.binary(max_size=300),
    st.sampled_from([*DECLARED, *NO_CHARSETS, "hz", "iso-2022-jp", "utf-32", "big5hkscs", "utf_8_sig", "ascii"]),
    st.sampled_from(["none", "header", "meta"]),
)
@example(b"\xff\xfe\x00", "", "none")
@example(b"\x00\xd8", "utf-16", "header")
def test_any_bytes_and_declarations_are_decoded(body: bytes, name: str, where: str) -> None:
    meta = b"<meta charset=" + name.encode() + b">" if where == "meta" else b""
    header = f"text/html; charset={name}" if where == "header" else None
    assert isinstance(decode(meta + body, header), str)
