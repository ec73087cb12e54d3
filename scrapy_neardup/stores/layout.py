"""How the state is written down, the same in every ordered store. Integers are big-endian.

    m + name                    what the state is: its recipe (JSON), its secret, its tally: see ``RowTally``; and
                                how far its expiry has come: see ``Expiry``
    r + id                      a page: see ``Record``
    e + id                      what can be told of it: see ``Evidence``
    o + id                      of a page of a former recipe: which one (2 bytes), and its sketch: see ``former``
    u + hash of the URL         id of the page's newest record (8 bytes), time it was last seen (4 bytes, seconds)
    k + key                     ids of the pages that are filed under this key, of 5 bytes, or 8 in a state of format 2
                                or 3. A page that is better than the one that stood for its group is filed under the
                                group's id, too, as far as that fits: see ``leading``
    k + key + id                a page more, and others that are filed there (8 bytes each), if any: see ``postings``
    x + 5 bytes of a digest     id of a page that was made from a body with this digest: see ``Record.body``
    f + hash of its name        what is in a feed that may be overwritten (JSON): see ``states/deliveries``
    c + generation              a crawl, by the time of its beginning (JSON): see ``states/crawls``
    h + id of a page            with it the safety brake came on (JSON): see ``states/brakes``
    d + generation + id         a page that a crawl dropped as a copy, in the order of that: see ``judging/drops``
    n + hash of the URL         what somebody has said of a page by hand (JSON): see ``judging/judgements``
    g + generation              a crawl that has unsealed pages (JSON: who, and the directory of its job)
    b + block                   counts of sentences, 64 buckets of them, compressed, and of forms: see ``Counts``
    j + generation + id         an unsealed page; value: id of the record that it replaces, or nothing

Ids are the nanoseconds since 1970 at which a page was first seen, each larger than the last and a multiple of 65,536
(on a server the lowest 12 bits tell the crawler): newest first is a reverse scan, and the oldest come first where pages
expire.
"""

from __future__ import annotations

import struct
from dataclasses import replace

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.hashing.width import NARROW, WIDE, KeyWidth
from scrapy_neardup.quick import quick

#: Those that are read and written, with the width of their keys, and the one of a new state.
FORMATS = {2: WIDE, 3: WIDE, 4: NARROW}
FORMAT = 4
#: From which format on titles may be in GBK: see ``Evidence``.
GBK_FROM = 4

_ID = struct.Struct(">Q")
_PREFIX = struct.Struct(">cQ")
_PAIR = struct.Struct(">cQQ")
_SEEN = struct.Struct(">QI")
_HEAD = struct.Struct(">BBH")
_ORIGINAL = struct.Struct(">QH")
_TEXT = struct.Struct(">Q")
#: Bytes of a digest under which a body is found; its record has all of them.
_BODY = 5
_LONGEST_URL = 65535
#: Bits of the first byte.
_OWN, _DELIVERED, _FORMER, _DROPPED, _BODIED, _LEADS, _NARROW = 1, 2, 4, 8, 16, 32, 64


@quick(frozen=True, slots=True)
class Record:
    """A page in the state.

    An original is its own ``original``. A copy names the original that it is a copy of; only one that differs enough to
    be a witness of its own (see ``Detector``) has keys and a sketch, and one that was ``delivered`` all the same, for
    the policy lets it pass, has a sketch: by that it is known to be unchanged. A page that could not be judged is its
    own original too, with similarity 0, no keys, and the fingerprint of what it was made from for a sketch. One of a
    ``former`` recipe has neither keys nor sketch: it is known by its URL until it comes again.

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
    #: Of a copy that was dropped: what it was then, see ``judging/returning``. 0 where that is not known.
    dropped: int = 0
    #: By what the very bytes are known that the page was made from, see ``page/bodies``. 0 where that is not known.
    body: int = 0

    @property
    def is_original(self) -> bool:
        """Whether other pages can be copies of it."""
        return self.original == self.id and self.similarity > 0

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
    def is_found_by_body(self) -> bool:
        """Whether pages of other URLs that are made from the same bytes are judged by it."""
        return bool(self.body and self.keys) and not self.former

    @property
    def first_seen(self) -> float:
        """Seconds since 1970."""
        return self.id / 1e9

    def narrowed(self, width: KeyWidth) -> Record:
        """The same with keys of this width; the id of its group, if it is filed under that, stays whole."""
        if width == WIDE or not self.keys:
            return self
        return replace(self, keys=(*width.keys(self._hashed), *((self.original,) if self.leads else ())))

    @property
    def longest_key(self) -> int:
        """The bits of its longest key, but for the id of its group."""
        return max((key.bit_length() for key in self._hashed), default=0)

    @property
    def _hashed(self) -> tuple[int, ...]:
        """Its keys but for the id of its group."""
        return tuple(key for key in self.keys if key != self.original) if self.leads else self.keys

    def pack(self, width: KeyWidth = WIDE) -> bytes:
        """B 1 if others can be copies of it, 2 if it is a copy that was delivered, 4 if of a former recipe, 8 if it is
        known what it was when it was dropped, 16 if its body is known · B number of keys · H bytes of URL · Q per key ·
        URL · if others cannot, Q original · H similarity in 65535ths · if known, Q what it was · if known, Q body ·
        sketch.

        Where keys are narrow, the first byte has 64, and 32 if the page is filed under the id of its group, which is
        not among the keys; these have 5 bytes each. Of keys that are longer than the width the rest is left out.
        """
        flags = self.delivered * _DELIVERED | self.former * _FORMER
        keys, behind, kernels = self.keys, b"", compiled.kernels
        if width.bits < WIDE.bits:
            flags |= _NARROW
        if self.original == self.id and self.similarity == 1.0:
            flags |= _OWN
        else:
            behind = _ORIGINAL.pack(self.original, round(self.similarity * 65535))
            if flags & _NARROW and self.leads:
                flags, keys = flags | _LEADS, self._hashed
        if self.dropped:
            flags, behind = flags | _DROPPED, behind + _TEXT.pack(self.dropped)
        if self.body:
            flags, behind = flags | _BODIED, behind + _TEXT.pack(self.body)
        url = kept_url(self.url)
        if kernels is not None:
            return kernels.packed_record(flags, keys, width.size, url, behind, self.sketch)
        packed_url = url.encode("utf-8", "surrogatepass")
        head = _HEAD.pack(flags, len(keys), len(packed_url))
        return b"".join((head, *width.pack_each(keys), packed_url, behind, self.sketch))

    @classmethod
    def unpack(cls, id: int, packed: bytes) -> Record:
        """The record that ``pack`` wrote; raises ValueError for what is none."""
        try:
            flags, keys, url = _HEAD.unpack_from(packed)
            width = width_of(packed)
            at = _HEAD.size + width.size * keys
            end = at + url
            filed = _unpacked_keys(packed, keys, width)
            original, similarity, sketch, dropped, body = id, 65535, end, 0, 0
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
            )
        except struct.error as error:
            raise ValueError(str(error)) from None


def width_of(packed: bytes) -> KeyWidth:
    """Of the keys in a record as ``pack`` wrote it."""
    return NARROW if packed[0] & _NARROW else WIDE


def _unpacked_keys(packed: bytes, many: int, width: KeyWidth) -> tuple[int, ...]:
    """Raises struct.error where there are not so many."""
    if width == WIDE:
        return struct.unpack_from(f">{many}Q", packed, _HEAD.size)
    halves = struct.unpack_from(">" + "BI" * many, packed, _HEAD.size)
    return tuple([high << 32 | low for high, low in zip(halves[::2], halves[1::2], strict=True)])


def kept_url(url: str) -> str:
    """As much of a URL as a record has room for, which is nearly always all: 65,535 bytes."""
    if len(url) <= _LONGEST_URL // 4:  # no character has more than four
        return url
    packed = url.encode("utf-8", "surrogatepass")
    if len(packed) <= _LONGEST_URL:
        return url
    end = next(at for at in range(_LONGEST_URL, 0, -1) if packed[at] & 0xC0 != 0x80)  # where a character begins
    return packed[:end].decode("utf-8", "surrogatepass")


def meta_key(name: str) -> bytes:
    """m + name."""
    return b"m" + name.encode()


def record_key(id: int) -> bytes:
    """r + id."""
    return _PREFIX.pack(b"r", id)


def evidence_key(id: int) -> bytes:
    """e + id."""
    return _PREFIX.pack(b"e", id)


def former_key(id: int) -> bytes:
    """o + id."""
    return _PREFIX.pack(b"o", id)


def url_key(url: str, hashes: Keyed) -> bytes:
    """u + the hash of a URL, as far as that is kept, under the secret of the state."""
    return _PREFIX.pack(b"u", hashes.of(kept_url(url)))


def posting_prefix(key: int, width: KeyWidth = NARROW) -> bytes:
    """k + key, as far as it fits: where the postings of a key begin."""
    return b"k" + width.pack(key)


def posting_key(key: int, id: int, width: KeyWidth = NARROW) -> bytes:
    """k + key + id."""
    return posting_prefix(key, width) + id.to_bytes(8, "big")


def body_key(body: int) -> bytes:
    """x + the first bytes of a digest: of two bodies that share these, the later one is found."""
    return b"x" + body.to_bytes(8, "big")[:_BODY]


def feed_key(feed: str) -> bytes:
    """f + the hash of a feed's name, which is nothing that a page says."""
    return _PREFIX.pack(b"f", OPEN.of(feed))


def crawl_key(generation: int) -> bytes:
    """c + generation."""
    return _PREFIX.pack(b"c", generation)


def brake_key(id: int) -> bytes:
    """h + id."""
    return _PREFIX.pack(b"h", id)


def drops_prefix(generation: int) -> bytes:
    """d + generation: where the drops of a crawl begin."""
    return _PREFIX.pack(b"d", generation)


def drop_key(generation: int, id: int) -> bytes:
    """d + generation + id."""
    return _PAIR.pack(b"d", generation, id)


def judgement_key(url: str, hashes: Keyed) -> bytes:
    """n + the hash of a URL, as in ``url_key``."""
    return b"n" + url_key(url, hashes)[1:]


def generation_key(generation: int) -> bytes:
    """g + generation."""
    return _PREFIX.pack(b"g", generation)


def journal_prefix(generation: int) -> bytes:
    """j + generation: where the unsealed pages of a crawl begin."""
    return _PREFIX.pack(b"j", generation)


def journal_key(generation: int, id: int) -> bytes:
    """j + generation + id."""
    return _PAIR.pack(b"j", generation, id)


def generation_of(journal: bytes) -> int:
    """The generation in a key that ``journal_key`` or ``drop_key`` made."""
    return int.from_bytes(journal[1:9], "big")


def block_key(block: int) -> bytes:
    """b + the block's number, 2 bytes."""
    return b"b" + block.to_bytes(2, "big")


def unpack_block(key: bytes) -> int:
    """The number in a key that ``block_key`` made; raises ValueError for another key."""
    if len(key) != len(block_key(0)):
        raise ValueError(f"{key!r} is no key of counted sentences")
    return int.from_bytes(key[1:], "big")


def after(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with ``prefix``; None where there is none."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def last_id(key: bytes) -> int:
    """The id at the end of a record, posting, generation or journal key."""
    return int.from_bytes(key[-8:], "big")


def pack_id(id: int) -> bytes:
    """The id of a replaced record as a journal's value; nothing for 0."""
    return _ID.pack(id) if id else b""


def unpack_id(packed: bytes) -> int:
    """What ``pack_id`` wrote."""
    return int.from_bytes(packed, "big")


def pack_seen(id: int, seconds: float) -> bytes:
    """A URL's value: its newest record, and when it was last seen."""
    return _SEEN.pack(id, min(int(seconds), 0xFFFFFFFF))


def unpack_seen(packed: bytes) -> tuple[int, int]:
    """What ``pack_seen`` wrote."""
    id, seconds = _SEEN.unpack(packed)
    return id, seconds
