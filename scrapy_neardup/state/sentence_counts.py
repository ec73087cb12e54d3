"""On how many pages each sentence stood, for the frequent sentences of an endless stream.

A table of fixed size after Misra and Gries (1982): a sentence that finds its bucket full replaces one without repeats,
or else decrements every count there. So frequent sentences stay, and the many that come once pass through. Memory,
written bytes (1.2 MB at most) and work per page are bounded.

Counts are never too high. They are exact while the bucket has room. They are too low for a sentence that returns too
late (a full table forgets one without repeats after 50,000 to 130,000 new sentences, one to three thousand pages), or
whose bucket holds eight that are as frequent. Equal fingerprints, which are rare, share a count, and two sites may
share a bit, so counts over several sites are estimates.
"""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

_WAYS = 8
_BUCKETS = 2**14
#: Buckets per block; a block is written at once.
IN_BLOCK = 64
#: Blocks of a table.
BLOCKS = _BUCKETS // IN_BLOCK
#: The format of a block before compression.
_PACKED = np.dtype(
    [
        ("sentences", ">u4", IN_BLOCK * _WAYS),
        ("sites", ">u4", IN_BLOCK * _WAYS),
        ("repeats", "u1", IN_BLOCK * _WAYS),
        ("newest", "u1", IN_BLOCK),
    ]
)
#: The order in which ways of a bucket are replaced, by the way that was filled last; that one comes last.
_TURNS = ((np.arange(_WAYS) - np.arange(_WAYS)[:, None] - 1) % _WAYS).astype(np.uint16)

Sentences = npt.NDArray[np.uint32]
_Indices = npt.NDArray[np.intp]


class Recurrence:
    """Counts of 131,072 sentences by 32-bit fingerprint, in 1.2 MB.

    A sentence has 32 bits for its sites, and its *repeats*, at most 255: pages on a site (or one with the same bit)
    where it had stood before. A sentence of one site has a repeat for each page after the first; a sentence that
    moves between sites has as many after about twice as many pages.
    """

    def __init__(self) -> None:
        # One array for each part of an entry is several times as fast as an array of records. An empty way (no sites)
        # has the fingerprint of another bucket, so no look-up finds it.
        ways = _BUCKETS * _WAYS
        # Sentences, sites, repeats, the way of each bucket that was filled last, changed blocks.
        sizes = 4 * ways, 4 * ways, ways, _BUCKETS, BLOCKS
        #: All of it, for the compiled module.
        self.memory = bytearray(sum(sizes))
        memory = np.frombuffer(self.memory, np.uint8)
        sentences, sites, self._repeats, self._newest, dirty = np.split(memory, np.cumsum(sizes)[:-1])
        self._sentences = sentences.view(np.uint32)
        self._sentences[:] = _buckets(slice(0, _BUCKETS)) ^ 1
        self._sites, self._dirty = sites.view(np.uint32), dirty.view(np.bool_)
        self._newest[:] = _WAYS - 1

    def note(self, sentences: Sentences, site: int) -> None:
        """Count the different sentences of one page; ``site``: any hash of its site.

        Known sentences come first, then the others look for a place.
        """
        sentences = sentences.astype(np.uint32)
        sentences.sort()  # neither their order nor a repetition makes a difference
        buckets, slots, known = self._find(sentences)
        bit = np.uint32(1 << (site & 31))
        held = slots[known]
        sites, repeats = self._sites[held], self._repeats[held]
        self._sites[held] = sites | bit
        self._repeats[held] = repeats + (((sites & bit) != 0) & (repeats < 255))
        self._admit(sentences[~known], buckets[~known], bit)
        self._dirty[buckets // IN_BLOCK] = True

    def sites(self, sentences: Sentences) -> npt.NDArray[np.uint8]:
        """Return the site bits of each sentence, at most 32; 0 if unknown."""
        _, slots, known = self._find(sentences)
        return self._bits(slots) * known

    def _bits(self, slots: _Indices) -> npt.NDArray[np.uint8]:
        bits = np.unpackbits(self._sites[slots].view(np.uint8).reshape(-1, 4), axis=1)
        found: npt.NDArray[np.uint8] = bits.sum(axis=1, dtype=np.uint8)
        return found

    def pages(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return a lower bound for the pages of each sentence: a first page per site, and the repeats."""
        _, slots, known = self._find(sentences)
        stood: npt.NDArray[np.uint16] = (self._repeats[slots].astype(np.uint16) + self._bits(slots)) * known
        return stood

    def blocks(self, *, changed: bool = False) -> dict[int, bytes]:
        """Return number and content of blocks with sentences; ``changed``: of those that changed since ``saved``."""
        blocks = np.flatnonzero(self._dirty if changed else self._filled().reshape(-1, IN_BLOCK).any(axis=1))
        return {block: zlib.compress(self._pack(block), 1) for block in blocks.tolist()}

    def saved(self) -> None:
        """The result of ``changed`` was written. Call it before the next page."""
        self._dirty[:] = False

    def load(self, block: int, packed: bytes) -> None:
        """Load a block. Raises ValueError and loads nothing if it is damaged."""
        try:
            plain = zlib.decompress(packed)
        except zlib.error as error:
            raise ValueError(f"block {block} of the counted sentences cannot be unpacked ({error})") from None
        if not 0 <= block < BLOCKS or len(plain) != _PACKED.itemsize:
            raise ValueError(f"there is no block {block} with {len(plain)} bytes of counted sentences")
        found = np.frombuffer(plain, _PACKED)[0]
        rows, ways = _place(block)
        held, own = found["sites"] != 0, _buckets(rows)
        if (held & (found["sentences"] % _BUCKETS != own)).any() or (found["newest"] >= _WAYS).any():
            raise ValueError(f"block {block} of the counted sentences holds what cannot stand there")
        self._sentences[ways] = np.where(held, found["sentences"], own ^ 1)
        self._sites[ways] = found["sites"]
        self._repeats[ways] = found["repeats"]
        self._newest[rows] = found["newest"]

    def merge(self, other: Recurrence, in_both: int = 0) -> None:
        """Add the counts of another table, after Agarwal et al. (2012), "Mergeable summaries".

        Equal sentences add repeats and unite sites. If a bucket then has more than eight, those with most repeats stay,
        less the repeats of the ninth. At most ``in_both`` pages were counted in both tables; each was at most one
        repeat in both, so as many are subtracted from a sum, down to the larger part. No count gets too high.
        """
        ours, theirs = self._filled(), other._filled()
        new = np.flatnonzero(np.repeat(theirs & ~ours, _WAYS))
        self._sentences[new] = other._sentences[new]
        self._sites[new] = other._sites[new]
        self._repeats[new] = other._repeats[new]
        self._newest[:] = np.where(ours, self._newest, other._newest)
        mixed = np.flatnonzero(theirs & ours)
        ways = (mixed[:, None] * _WAYS + np.arange(_WAYS)).ravel()
        united = _united(np.concatenate((self._in_turn(mixed), other._in_turn(mixed)), axis=2), in_both)
        sentences, sites, repeats = united.reshape(3, -1)
        self._sentences[ways] = np.where(sites, sentences, np.repeat(mixed, _WAYS) ^ 1)
        self._sites[ways] = sites
        self._repeats[ways] = repeats
        self._newest[mixed] = np.count_nonzero(united[1], axis=1) - 1
        self._dirty[np.flatnonzero(theirs) // IN_BLOCK] = True

    def _filled(self) -> npt.NDArray[np.bool_]:
        """Return the buckets with sentences."""
        filled: npt.NDArray[np.bool_] = np.bitwise_or.reduce(self._sites.reshape(_BUCKETS, _WAYS), axis=1) != 0
        return filled

    def _in_turn(self, buckets: _Indices) -> npt.NDArray[np.int64]:
        """Return sentences, sites and repeats of buckets, (3, buckets, 8), in order of replacement."""
        turns = (self._newest[buckets, None].astype(np.intp) + np.arange(1, _WAYS + 1)) % _WAYS
        ways = buckets[:, None] * _WAYS + turns
        return np.stack([part[ways].astype(np.int64) for part in (self._sentences, self._sites, self._repeats)])

    def _find(self, sentences: Sentences) -> tuple[_Indices, _Indices, npt.NDArray[np.bool_]]:
        """Return bucket and slot of each sentence, and whether it is known; else the slot means nothing."""
        buckets = sentences.astype(np.intp)  # of a good hash, any bits will do
        buckets &= _BUCKETS - 1
        rows = self._sentences.reshape(_BUCKETS, _WAYS).take(buckets, axis=0)
        slots = buckets * _WAYS
        slots += (rows == sentences[:, None]).argmax(axis=1)
        return buckets, slots, self._sentences[slots] == sentences

    def _admit(self, sentences: Sentences, buckets: _Indices, bit: np.uint32) -> None:
        """Give each new sentence the next way of its bucket without repeats, or decrement every count there.

        If several want one way the last gets it, and the others go on; a page decrements once at most. If only the
        weakest were decremented, the other ways would be held for ever by sentences that were frequent once.
        """
        rows = self._repeats.reshape(_BUCKETS, _WAYS)
        while len(sentences):
            counts = rows.take(buckets, axis=0)
            rank = counts.astype(np.uint16)
            rank *= _WAYS
            rank += _TURNS.take(self._newest[buckets], axis=0)
            ways = rank.argmin(axis=1)
            slots = buckets * _WAYS + ways
            weakest = self._repeats[slots]
            if weakest.any():
                free = weakest == 0
                rows[buckets[~free]] = counts[~free] - 1
                sentences, buckets, ways, slots = sentences[free], buckets[free], ways[free], slots[free]
            self._sentences[slots] = sentences
            self._sites[slots] = bit
            self._newest[buckets] = ways
            lost = self._sentences[slots] != sentences
            sentences, buckets = sentences[lost], buckets[lost]

    def _pack(self, block: int) -> bytes:
        rows, ways = _place(block)
        packed = np.zeros(1, _PACKED)
        packed["sites"] = self._sites[ways]
        packed["sentences"] = np.where(packed["sites"], self._sentences[ways], 0)
        packed["repeats"] = self._repeats[ways]
        packed["newest"] = self._newest[rows]
        return packed.tobytes()


def _place(block: int) -> tuple[slice, slice]:
    """Return the buckets of a block, and their ways."""
    first, end = block * IN_BLOCK, (block + 1) * IN_BLOCK
    return slice(first, end), slice(first * _WAYS, end * _WAYS)


def _buckets(rows: slice) -> Sentences:
    """Return the bucket of each way."""
    return np.repeat(np.arange(rows.start, rows.stop, dtype=np.uint32), _WAYS)


def _united(both: npt.NDArray[np.int64], in_both: int) -> npt.NDArray[np.int64]:
    """Return which ways of two tables stay, of (3, buckets, 16): see ``Recurrence.merge``.

    Among equal repeats the first stay; order is kept, and empty ways come last.
    """
    sentences, sites, repeats = both
    held = sites != 0
    equal = sentences[:, :_WAYS, None] == sentences[:, None, _WAYS:]
    equal &= held[:, :_WAYS, None] & held[:, None, _WAYS:]
    one, other = repeats[:, :_WAYS], (equal * repeats[:, None, _WAYS:]).sum(axis=2)
    repeats[:, :_WAYS] = np.minimum(255, one + other - np.minimum(in_both, np.minimum(one, other)))
    sites[:, :_WAYS] |= (equal * sites[:, None, _WAYS:]).sum(axis=2)
    held[:, _WAYS:] &= ~equal.any(axis=1)
    order = np.where(held, -repeats, 1).argsort(axis=1, kind="stable")
    most, ninth = order[:, :_WAYS], order[:, _WAYS : _WAYS + 1]
    repeats -= np.take_along_axis(repeats * held, ninth, axis=1)
    both *= held
    places = most + 2 * _WAYS * ~np.take_along_axis(held, most, axis=1)
    places.sort(axis=1)
    return np.take_along_axis(both, places[None] % (2 * _WAYS), axis=2)
