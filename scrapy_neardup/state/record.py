"""The record of a page, and the bytes of its row."""

from __future__ import annotations

import struct

from scrapy_neardup.fast_dataclass import fast_dataclass
from scrapy_neardup.hashing.keys import SIZE, pack_keys
from scrapy_neardup.state.layout import kept_url

_HEAD = struct.Struct(">BBHQHQQQ")
_ROW = struct.Struct(">Qc")
#: Bytes of the mark of an unjudged page.
_MARK = 8
#: Bits of the first byte.
_RECORD, _DELIVERED, _FORMER, _LEADS = 1, 2, 4, 8


@fast_dataclass(frozen=True, slots=True)
class Record:
    """A page in the state.

    An original is its own ``original``. A copy names its original; only a variant has keys and a sketch. A
    ``delivered`` copy, which the policy let pass, has a sketch to recognise it as unchanged. An unjudged page is its
    own original with similarity 0, no keys, and a fingerprint of its source as sketch; items of listings: see
    ``row_mark``. A page of a ``former`` recipe has no keys and no sketch until it comes again. A copy that replaced
    its original is filed under the id of its group; see ``pages.newest_replacement``.
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
    #: The mark of a dropped copy, see ``judge/rules``; 0 if unknown.
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
    def is_row(self) -> bool:
        """Whether it is an item of a listing."""
        return self.is_unjudged and len(self.sketch) == _ROW.size

    @property
    def has_led(self) -> bool:
        """Whether it is a copy that replaced its original, now or once."""
        return self.original != self.id and self.original in self.keys

    @property
    def group(self) -> int:
        """The id of its group."""
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

        B flags · B number of keys · H bytes of URL · Q original, 0 for itself · H similarity in 65535ths · Q mark of
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


def row_mark(mark: int) -> bytes:
    """Return the sketch of an item of a listing, one byte longer than for other unjudged pages."""
    return _ROW.pack(mark, b"r")


def is_same_mark(sketch: bytes, mark: bytes) -> bool:
    """Whether two unjudged pages have the same source."""
    return sketch[:_MARK] == mark[:_MARK]
