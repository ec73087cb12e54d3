"""The record of a page, and the bytes of its row."""

from __future__ import annotations

import struct

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keys import SIZE, pack_keys
from scrapy_neardup.quick import quick
from scrapy_neardup.state.layout import kept_url

_HEAD = struct.Struct(">BBH")
_ORIGINAL = struct.Struct(">QH")
_TEXT = struct.Struct(">Q")
_ROW = struct.Struct(">Qc")
#: Bits of the first byte; each record has ``_RECORD``.
_OWN, _DELIVERED, _FORMER, _DROPPED, _BODIED, _LEADS, _RECORD, _SINCE = 1, 2, 4, 8, 16, 32, 64, 128


@quick(frozen=True, slots=True)
class Record:
    """A page in the state.

    An original is its own ``original``. A copy names the original that it is a copy of; only one that differs enough to
    be a witness of its own (see ``Detector``) has keys and a sketch, and one that was ``delivered`` all the same, for
    the policy lets it pass, has a sketch: by that it is known to be unchanged. A page that could not be judged is its
    own original too, with similarity 0, no keys, and the fingerprint of what it was made from for a sketch; of a row of
    a listing see ``row_mark``. One of a ``former`` recipe has neither keys nor sketch: it is known by its URL until it
    comes again.

    A copy that was better than the page which stood for its group until then is filed under the group's id as well:
    see ``leading``.
    """

    id: int
    url: str
    original: int
    similarity: float = 1.0
    keys: tuple[int, ...] = ()
    sketch: bytes = b""
    #: Of a copy: whether its item passed and came through. Other pages are here because theirs did.
    delivered: bool = False
    #: Whether it was judged by another recipe, and is no more compared with any page.
    former: bool = False
    #: Of a copy that was dropped: what it was then, see ``judge/copies``. 0 where that is not known.
    dropped: int = 0
    #: By what the very bytes are known that the page was made from, see ``page/response``. 0 where that is not known.
    body: int = 0
    #: Of a later version of a page: the id of the version that was delivered first. 0 for the first one.
    since: int = 0

    @property
    def age(self) -> int:
        """The id of the version of this page that was delivered first."""
        return self.since or self.id

    @property
    def is_delivered(self) -> bool:
        """Whether its text was delivered: as an original, or as a copy that passed."""
        return self.is_original or self.delivered

    @property
    def is_original(self) -> bool:
        """Whether other pages can be copies of it."""
        return self.original == self.id and self.similarity > 0

    @property
    def is_unjudged(self) -> bool:
        """Whether it was compared with no page: it could not be judged, or is a row of a listing."""
        return self.original == self.id and self.similarity == 0

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a listing."""
        return self.is_unjudged and len(self.sketch) == _ROW.size

    @property
    def leads(self) -> bool:
        """Whether it is a copy that has come to stand for its group, or did until a better one came."""
        return self.original != self.id and self.original in self.keys

    @property
    def group(self) -> int:
        """The id that names the group for which it stands."""
        return self.original if self.leads else self.id

    @property
    def is_light(self) -> bool:
        """Whether it is a copy by which no other page is judged."""
        return self.original != self.id and not self.keys

    @property
    def is_witness(self) -> bool:
        """Whether it is a copy that later pages are compared with, though it does not stand for its group."""
        return self.original != self.id and bool(self.keys) and not self.leads

    @property
    def is_found_by_body(self) -> bool:
        """Whether pages of other URLs that are made from the same bytes are judged by it."""
        return bool(self.body and self.keys) and not self.former

    @property
    def first_seen(self) -> float:
        """Seconds since 1970."""
        return self.id / 1e9

    @property
    def longest_key(self) -> int:
        """The bits of its longest key, but for the id of its group."""
        return max((key.bit_length() for key in self._hashed), default=0)

    @property
    def _hashed(self) -> tuple[int, ...]:
        """Its keys but for the id of its group."""
        return tuple(key for key in self.keys if key != self.original) if self.leads else self.keys

    def pack(self) -> bytes:
        """B 64, and 1 if others can be copies of it, 2 if it is a copy that was delivered, 4 if of a former recipe, 8
        if it is known what it was when it was dropped, 16 if its body is known, 32 if the page is filed under the id of
        its group, which is not among the keys, 128 for a later version of a page · B number of keys · H bytes of URL ·
        5 bytes per key · URL · if others cannot be copies of it, Q original · H similarity in 65535ths · if known, Q
        what it was · if known, Q body · of a later version, Q id of the first one · sketch.
        """
        flags = _RECORD | self.delivered * _DELIVERED | self.former * _FORMER
        keys, behind, kernels = self.keys, b"", compiled.kernels
        if self.original == self.id and self.similarity == 1.0:
            flags |= _OWN
        else:
            behind = _ORIGINAL.pack(self.original, round(self.similarity * 65535))
            if self.leads:
                flags, keys = flags | _LEADS, self._hashed
        if self.dropped:
            flags, behind = flags | _DROPPED, behind + _TEXT.pack(self.dropped)
        if self.body:
            flags, behind = flags | _BODIED, behind + _TEXT.pack(self.body)
        if self.since:
            flags, behind = flags | _SINCE, behind + _TEXT.pack(self.since)
        url = kept_url(self.url)
        if kernels is not None:
            return kernels.packed_record(flags, keys, SIZE, url, behind, self.sketch)
        packed_url = url.encode("utf-8", "surrogatepass")
        head = _HEAD.pack(flags, len(keys), len(packed_url))
        return b"".join((head, *pack_keys(keys), packed_url, behind, self.sketch))

    @classmethod
    def unpack(cls, id: int, packed: bytes) -> Record:
        """The record that ``pack`` wrote; raises ValueError for what is none."""
        try:
            flags, keys, url = _HEAD.unpack_from(packed)
            if not flags & _RECORD:
                raise ValueError("it does not begin as a record")
            at = _HEAD.size + SIZE * keys
            end = at + url
            filed = _unpacked_keys(packed, keys)
            original, similarity, sketch, dropped, body, since = id, 65535, end, 0, 0, 0
            if not flags & _OWN:
                original, similarity = _ORIGINAL.unpack_from(packed, end)
                sketch += _ORIGINAL.size
                if flags & _LEADS:
                    filed += (original,)
            if flags & _DROPPED:
                (dropped,) = _TEXT.unpack_from(packed, sketch)
                sketch += _TEXT.size
            if flags & _BODIED:
                (body,) = _TEXT.unpack_from(packed, sketch)
                sketch += _TEXT.size
            if flags & _SINCE:
                (since,) = _TEXT.unpack_from(packed, sketch)
                sketch += _TEXT.size
            return cls(
                id,
                packed[at:end].decode("utf-8", "surrogatepass"),
                original,
                similarity / 65535,
                filed,
                packed[sketch:],
                bool(flags & _DELIVERED),
                bool(flags & _FORMER),
                dropped,
                body,
                since,
            )
        except struct.error as error:
            raise ValueError(str(error)) from None


def row_mark(mark: int) -> bytes:
    """The sketch of a row of a listing: one byte more than that of another page that was not judged."""
    return _ROW.pack(mark, b"r")


def is_same_mark(sketch: bytes, mark: bytes) -> bool:
    """Whether two pages that were not judged were made from the very same."""
    return sketch[: _TEXT.size] == mark[: _TEXT.size]


def _unpacked_keys(packed: bytes, many: int) -> tuple[int, ...]:
    """Raises struct.error where there are not so many."""
    halves = struct.unpack_from(">" + "BI" * many, packed, _HEAD.size)
    return tuple([high << 32 | low for high, low in zip(halves[::2], halves[1::2], strict=True)])
