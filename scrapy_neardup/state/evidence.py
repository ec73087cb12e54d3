"""What a state can tell of a page beside what it needs to judge others: for people, and for NEARDUP_KEEP_POLICY."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import astuple, replace
from enum import Enum
from typing import Any

from scrapy_neardup.model import Likeness, Match, Page
from scrapy_neardup.quick import quick

_LONGEST_TITLE = 200
_LONGEST_SENTENCE = 300
#: Fields that are always there; those behind them are written as far as one says something.
_FIELDS = 8
#: What else of a page goes into its fingerprint.
_ABOUT = ("title", "keywords", "description", "site", "main", "headline", "reader", "quotes")
#: So a row begins that holds a mere title (in UTF-8, in GBK), with no byte with which zlib does. Then come the
#: characters of the text, and the title.
_TITLED = struct.Struct(">cI")
_TITLE, _TITLE_IN_GBK = b"t", b"g"
#: So one that holds all fields in GBK; in UTF-8 it begins as zlib does.
_IN_GBK = b"z"
_MOST_LETTERS = 0xFFFFFFFF


class Keep(str, Enum):
    """How much of it is kept; the value is that of NEARDUP_KEEP."""

    NOTHING = "nothing"
    #: Of pages that are like an earlier one; of other originals the title, by which people know them.
    EVIDENCE = "evidence"
    #: That, and title and text of every page.
    TEXTS = "texts"


@quick(frozen=True, slots=True)
class Evidence:
    """Why a page is a copy, or what it is like; kept apart from its record, so that judging never reads it.

    ``likeness``: the name of the kind, empty for a page that is like none. ``like``: id of the page of which an
    original is an excerpt, or shares the title; 0 for a copy, whose record names its original. ``letters``: characters
    of the page's text. ``shared``: sentences of this page that the other one holds too. ``text``: only with
    ``Keep.TEXTS``; and ``about``, which is what else a page is judged by, as JSON.

    ``article``: letters of the article, and ``canonical``: the other page that this one names as its original. They are
    kept where the policy weighs pages by them, and take no room elsewhere.
    """

    likeness: str = ""
    like: int = 0
    similarity: float = 0.0
    containment: float = 0.0
    letters: int = 0
    title: str = ""
    shared: tuple[str, ...] = ()
    text: str = ""
    about: str = ""
    article: int = 0
    canonical: str = ""

    def pack(self) -> bytes:
        """The fields in their order as a JSON array, compressed by zlib; no lone surrogate stops it.

        Most pages are originals of which the title is all that is told: that stands as it is, in half the room.
        Either may be in GBK: see ``_coded``.
        """
        others = self.likeness, self.like, self.similarity, self.containment, self.shared, self.text, self.about
        if self.letters <= _MOST_LETTERS and not any((*others, self.article, self.canonical)):
            is_gbk, title = _coded(self.title)
            return _TITLED.pack(_TITLE_IN_GBK if is_gbk else _TITLE, self.letters) + title
        fields = list(astuple(self))
        while len(fields) > _FIELDS and not fields[-1]:
            fields.pop()
        plain = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        is_gbk, coded = _coded(plain)
        return _IN_GBK * is_gbk + zlib.compress(coded)

    @classmethod
    def unpack(cls, packed: bytes) -> Evidence:
        """What ``pack`` wrote; raises ValueError for anything else."""
        try:
            if packed[:1] in (_TITLE, _TITLE_IN_GBK):
                begin, letters = _TITLED.unpack_from(packed)
                return cls(letters=letters, title=_decoded(packed[_TITLED.size :], begin == _TITLE_IN_GBK))
            is_gbk = packed[:1] == _IN_GBK
            fields = json.loads(_decoded(zlib.decompress(packed[is_gbk:]), is_gbk))
            likeness, like, similarity, containment, letters, title, shared, text, *more = fields
            return cls(likeness, like, similarity, containment, letters, title, tuple(shared), text, *more)
        except (zlib.error, struct.error, TypeError) as error:
            raise ValueError(f"{len(packed)} bytes are no evidence: {error}") from None


def _coded(text: str) -> tuple[bool, bytes]:
    """Whether a text is written in GBK, and the text: so it is where that has all of its characters and is shorter.

    Chinese and Japanese take two bytes a character there instead of three, and a sixth less once they are compressed.
    Not in GB 18030, which has all characters: there are editions of it that spell some of them otherwise.
    """
    plain = text.encode("utf-8", "surrogatepass")
    if len(plain) > len(text):
        try:
            short = text.encode("gbk")
        except UnicodeEncodeError:
            return False, plain
        if len(short) < len(plain):
            return True, short
    return False, plain


def _decoded(coded: bytes, is_gbk: bool) -> str:
    return coded.decode("gbk") if is_gbk else coded.decode("utf-8", "surrogatepass")


def evidence(page: Page, likeness: Likeness | None, match: Match | None, *, copy: bool, keep: Keep) -> Evidence | None:
    """What is to be kept of a page that is a copy of ``match``, or else like it in a way; None for nothing."""
    if keep is Keep.NOTHING or (keep is Keep.EVIDENCE and likeness is None and not page.title):
        return None
    text, about = (page.text, about_page(page)) if keep is Keep.TEXTS else ("", "")
    title = page.title[:_LONGEST_TITLE]
    if match is None or likeness is None:
        return Evidence(letters=len(page.text) or page.letters, title=title, text=text, about=about)
    return Evidence(
        likeness.value,
        0 if copy else match.id,
        round(match.similarity, 4),
        round(match.containment, 4),
        len(page.text) or page.letters,
        title,
        tuple(sentence[:_LONGEST_SENTENCE] for sentence in match.shared),
        text,
        about,
    )


def about_page(page: Page) -> str:
    """What a page is judged by beside its text, so that it can be fingerprinted anew by another method.

    Lines of the article are written once more, as packing makes next to nothing of what stands there already.
    """
    values = {name: getattr(page, name) for name in _ABOUT if getattr(page, name)}
    if len(page.title) <= _LONGEST_TITLE:  # it is kept as a whole already
        values.pop("title", None)
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) if values else ""


def kept_page(url: str, told: Evidence | None) -> Page | None:
    """The page that was judged, as far as a state keeps it; None if it keeps no text of it."""
    if told is None or not told.text:
        return None
    page = Page(url, told.title, text=told.text)
    try:
        about = {name: value for name, value in json.loads(told.about or "{}").items() if name in _ABOUT}
    except (ValueError, AttributeError):
        return page
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in about.items()}
    return replace(page, **values)
