"""What a state keeps of a page, and the bytes of its rows: the record decides, the evidence explains."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import replace
from enum import Enum
from operator import attrgetter
from typing import Any

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.hashing.keys import SIZE, pack_keys
from scrapy_neardup.model import Kind, Match, Page
from scrapy_neardup.state.layout import kept_url

_HEAD = struct.Struct(">BBHQHQQQ")
_LISTED = struct.Struct(">Qc")
#: Bytes of the source of an unjudged page, which is a hash.
_SOURCE = 8
#: Bits of the first byte.
_RECORD, _DELIVERED, _FORMER, _LEADS = 1, 2, 4, 8


@fast_dataclass(frozen=True, slots=True)
class Record:
    """A page in the state.

    An original is its own ``original``. A copy names its original; only a variant has keys and a sketch. A
    ``delivered`` copy, which the policy let pass, has a sketch to recognise it as unchanged. An unjudged page is its
    own original with similarity 0, no keys, and a hash of its source as sketch; see ``listing_source``. A page of a
    ``former`` recipe has no keys and no sketch until it comes again. A copy that replaced its original is filed under
    the id of its group; see ``pages.newest_replacement``.
    """

    id: int
    url: str
    original: int
    similarity: float = 1.0
    keys: tuple[int, ...] = ()
    sketch: bytes = b""
    #: Whether the item of a copy came through. Other pages are here because theirs did.
    delivered: bool = False
    #: Whether another recipe judged it; it is compared with no page.
    former: bool = False
    #: The hash of what decided that a copy is dropped, see ``judge/rules``; 0 if unknown.
    dropped: int = 0
    #: The digest of the page's bytes, see ``page/source``; 0 if unknown.
    body: int = 0
    #: For a later version: the id of the version that was delivered first; 0 for the first.
    since: int = 0

    @property
    def age(self) -> int:
        """The id of the version that was delivered first."""
        return self.since or self.id

    @property
    def is_delivered(self) -> bool:
        """Whether its text was delivered."""
        return self.is_original or self.delivered

    @property
    def is_original(self) -> bool:
        """Whether other pages can be copies of it."""
        return self.original == self.id and self.similarity > 0

    @property
    def is_unjudged(self) -> bool:
        """Whether it was compared with no page."""
        return self.original == self.id and self.similarity == 0

    @property
    def is_listed(self) -> bool:
        """Whether it is an item of a listing."""
        return self.is_unjudged and len(self.sketch) == _LISTED.size

    @property
    def has_led(self) -> bool:
        """Whether it is a copy that replaced its original, now or once."""
        return self.original != self.id and self.original in self.keys

    @property
    def group(self) -> int:
        return self.original if self.has_led else self.id

    @property
    def is_light(self) -> bool:
        """Whether it is a copy without keys."""
        return self.original != self.id and not self.keys

    @property
    def is_variant(self) -> bool:
        """Whether it is a copy that later pages are compared with."""
        return self.original != self.id and bool(self.keys) and not self.has_led

    @property
    def first_seen(self) -> float:
        """Seconds since 1970."""
        return self.id / 1e9

    def pack(self) -> bytes:
        """Return the bytes.

        B flags · B number of keys · H bytes of URL · Q original, 0 for itself · H similarity in 65535ths · Q hash of
        the drop · Q digest · Q first version · 5 bytes per key · URL · sketch. Most of the numbers are 0, which takes
        no room in LevelDB.
        """
        keys, url, original = self.keys, kept_url(self.url).encode("utf-8", "surrogatepass"), self.original
        flags = _RECORD | self.delivered * _DELIVERED | self.former * _FORMER
        if original == self.id:
            original = 0
        elif self.has_led:
            flags, keys = flags | _LEADS, tuple(key for key in keys if key != original)
        numbers = round(self.similarity * 65535), self.dropped, self.body, self.since
        head = _HEAD.pack(flags, len(keys), len(url), original, *numbers)
        return b"".join((head, *pack_keys(keys), url, self.sketch))

    @classmethod
    def unpack(cls, id: int, packed: bytes) -> Record:
        """Unpack a record. Raises ValueError."""
        try:
            flags, many, length, original, similarity, *numbers = _HEAD.unpack_from(packed)
            halves = struct.unpack_from(">" + "BI" * many, packed, _HEAD.size)
        except struct.error as error:
            raise ValueError(str(error)) from None
        begin = _HEAD.size + SIZE * many
        if not flags & _RECORD or len(packed) < begin + length:
            raise ValueError("it does not begin as a record, or ends too early")
        keys = [high << 32 | low for high, low in zip(halves[::2], halves[1::2], strict=True)]
        if flags & _LEADS:
            keys.append(original)
        text, sketch = packed[begin : begin + length].decode("utf-8", "surrogatepass"), packed[begin + length :]
        delivered, former = bool(flags & _DELIVERED), bool(flags & _FORMER)
        return cls(id, text, original or id, similarity / 65535, tuple(keys), sketch, delivered, former, *numbers)


def listing_source(html: int) -> bytes:
    """Return the sketch of an item of a listing, one byte longer than for other unjudged pages."""
    return _LISTED.pack(html, b"r")


def is_same_source(sketch: bytes, source: bytes) -> bool:
    """Whether two unjudged pages have the same source."""
    return sketch[:_SOURCE] == source[:_SOURCE]


# Evidence: for people, and for NEARDUP_KEEP_POLICY.

_LONGEST_TITLE = 200
_LONGEST_SENTENCE = 300
#: Parts of a page that its fingerprint needs besides the text.
_ABOUT = ("title", "keywords", "description", "site", "main", "headline", "links", "reader", "quotes")
#: The fields of a row in their order; those at the end that say nothing are left out. Most pages have only two.
_FIELDS = (
    *("letters", "title", "kind", "like", "similarity", "containment", "shared", "text", "about"),
    *("article", "canonical", "near_miss", "near_why"),
)
_fields_of = attrgetter(*_FIELDS)
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
#: Bytes that are not worth compressing.
_SHORT = 100
#: The first byte of a row names the encoding; it is upper case if the rest is compressed.
_UTF_8, _GBK = b"u", b"g"


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

    ``kind``: kind, or empty. ``like``: for an original, the page that contains it or has its title; 0 for a copy.
    ``letters``: characters of the text. ``shared``: sentences in both pages. ``text``, ``about``: with ``Keep.TEXTS``,
    the text and other parts of the page as JSON.

    ``article``: letters of the article; ``canonical``: the page it names as original. Only policies that need them keep
    them. ``near_miss``, ``near_why``: the URL of the page that an original was nearly a copy of, and the decision.
    """

    kind: str = ""
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
        """Return a JSON array of the fields. Long ones are compressed; lone surrogates are allowed.

        Chinese and Japanese take two bytes a character in GBK instead of three, a sixth less after compression. GB
        18030 would cover all characters, but its editions differ.
        """
        fields, many = _fields_of(self), len(_FIELDS)
        while many and not fields[many - 1]:
            many -= 1
        plain = f"[{fields[0]},{_to_json(fields[1])}]" if many == 2 else _to_json(fields[:many])  # many times as fast
        coding, coded = _UTF_8, plain.encode("utf-8", "surrogatepass")
        if len(coded) > len(plain):
            try:
                short = plain.encode("gbk")
            except UnicodeEncodeError:
                short = coded
            if len(short) < len(coded):
                coding, coded = _GBK, short
        return coding + coded if len(coded) < _SHORT else coding.upper() + zlib.compress(coded)

    @classmethod
    def unpack(cls, packed: bytes) -> Evidence:
        """Unpack evidence. Raises ValueError."""
        try:
            coding, coded = packed[:1], packed[1:]
            if coding.isupper():
                coding, coded = coding.lower(), zlib.decompress(coded)
            plain = coded.decode("gbk") if coding == _GBK else coded.decode("utf-8", "surrogatepass")
            fields = json.loads(plain)
            if coding not in (_UTF_8, _GBK) or not isinstance(fields, list) or len(fields) > len(_FIELDS):
                raise ValueError("it has other fields")
            values = dict(zip(_FIELDS, fields, strict=False))
            return cls(**{**values, "shared": tuple(values.get("shared", ()))})
        except (zlib.error, TypeError, ValueError) as error:
            raise ValueError(f"{len(packed)} bytes are no evidence: {error}") from None


def evidence(page: Page, kind: Kind | None, match: Match | None, *, copy: bool, keep: Keep) -> Evidence | None:
    """Return the evidence of a page with this ``match``; None for nothing."""
    if keep is Keep.NOTHING or (keep is Keep.EVIDENCE and kind is None and not page.title):
        return None
    text, about = (page.text, about_page(page)) if keep is Keep.TEXTS else ("", "")
    title = page.title[:_LONGEST_TITLE]
    if match is None or kind is None:
        return Evidence(letters=len(page.text), title=title, text=text, about=about)
    return Evidence(
        kind.value,
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
    """Return the other parts of a page, which another method needs to fingerprint it.

    Repeated lines of the article compress to nearly nothing.
    """
    values = {name: getattr(page, name) for name in _ABOUT if getattr(page, name)}
    if len(page.title) <= _LONGEST_TITLE:  # it is kept as a whole already
        values.pop("title", None)
    return _to_json(values) if values else ""


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
