"""Evidence: what a state keeps of a page for people and for NEARDUP_KEEP_POLICY."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import astuple, replace
from enum import Enum
from typing import Any

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.model import Likeness, Match, Page

_LONGEST_TITLE = 200
_LONGEST_SENTENCE = 300
#: Fields that are always written; later ones only as far as needed.
_FIELDS = 8
#: Parts of a page that its fingerprint needs besides the text.
_ABOUT = ("title", "keywords", "description", "site", "main", "headline", "reader", "quotes")
#: A row with only a title begins so (in UTF-8, in GBK), unlike zlib. Then follow the number of characters and the
#: title.
_TITLED = struct.Struct(">cI")
_TITLE, _TITLE_IN_GBK = b"t", b"g"
#: A row with all fields in GBK begins so; in UTF-8 it begins like zlib.
_IN_GBK = b"z"
_MOST_LETTERS = 0xFFFFFFFF


class Keep(str, Enum):
    """How much is kept, as in NEARDUP_KEEP."""

    NOTHING = "nothing"
    #: Evidence of pages that resemble an earlier one; the title of other originals.
    EVIDENCE = "evidence"
    #: Also title and text of every page.
    TEXTS = "texts"


@fast_dataclass(frozen=True, slots=True)
class Evidence:
    """Why a page is a copy, or what it resembles. It is apart from the record, so judging never reads it.

    ``likeness``: kind, or empty. ``like``: the page that an original is an excerpt of, or whose title it shares; 0 for
    a copy. ``letters``: characters of the text. ``shared``: sentences in both pages. ``text``, ``about``: with
    ``Keep.TEXTS``, the text and other parts of the page as JSON.

    ``article``: letters of the article; ``canonical``: the page it names as original. Only policies that need them keep
    them. ``near_miss``, ``near_why``: the URL of the page that an original was nearly a copy of, and the decision.
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
    near_miss: str = ""
    near_why: str = ""

    def pack(self) -> bytes:
        """Return a compressed JSON array of the fields; lone surrogates are allowed.

        Most pages have only a title, which needs half the space uncompressed. Either may be in GBK; see ``_coded``.
        """
        others = self.likeness, self.like, self.similarity, self.containment, self.shared, self.text, self.about
        if self.letters <= _MOST_LETTERS and not any((*others, self.article, self.canonical, self.near_miss)):
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
        """Unpack evidence. Raises ValueError."""
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
    """Return whether GBK is shorter, and the encoded text.

    Chinese and Japanese take two bytes a character instead of three, a sixth less after compression. GB 18030 would
    cover all characters, but its editions differ.
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
    """Return the evidence of a page with this ``match``; None for nothing."""
    if keep is Keep.NOTHING or (keep is Keep.EVIDENCE and likeness is None and not page.title):
        return None
    text, about = (page.text, about_page(page)) if keep is Keep.TEXTS else ("", "")
    title = page.title[:_LONGEST_TITLE]
    if match is None or likeness is None:
        return Evidence(letters=len(page.text), title=title, text=text, about=about)
    return Evidence(
        likeness.value,
        0 if copy else match.id,
        round(match.similarity, 4),
        round(match.containment, 4),
        len(page.text),
        title,
        tuple(sentence[:_LONGEST_SENTENCE] for sentence in match.shared),
        text,
        about,
    )


def about_page(page: Page) -> str:
    """Return the parts of a page besides its text, so that another method can fingerprint it.

    Repeated lines of the article compress to nearly nothing.
    """
    values = {name: getattr(page, name) for name in _ABOUT if getattr(page, name)}
    if len(page.title) <= _LONGEST_TITLE:  # it is kept as a whole already
        values.pop("title", None)
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")) if values else ""


def kept_page(url: str, told: Evidence | None) -> Page | None:
    """Return the page as the state keeps it; None without its text."""
    if told is None or not told.text:
        return None
    page = Page(url, told.title, text=told.text)
    try:
        about = {name: value for name, value in json.loads(told.about or "{}").items() if name in _ABOUT}
    except (ValueError, AttributeError):
        return page
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in about.items()}
    return replace(page, **values)
