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
from collections.abc import Iterator

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
Sentences = npt.NDArray[np.uint32]
_Slots = npt.NDArray[np.intp]


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

        Known sentences come first. Then each new one, the largest first, gets the next way of its bucket without
        repeats. If there is none, all counts of the bucket go down, at most by one a page: if only the weakest did, the
        other ways would be held for ever by sentences that were frequent once.
        """
        # For single numbers these are faster than arrays.
        held, sites, repeats = self._sentences.data, self._sites.data, self._repeats.data
        bit, new, full = 1 << (site & 31), list[int](), set[int]()
        for sentence in sorted(set(sentences.tolist()), reverse=True):
            bucket = sentence % _BUCKETS
            self._dirty[bucket // IN_BLOCK] = True
            row = held[bucket * _WAYS : (bucket + 1) * _WAYS].tolist()
            if sentence not in row:
                new.append(sentence)
                continue
            way = bucket * _WAYS + row.index(sentence)
            repeats[way] = min(255, repeats[way] + bool(sites[way] & bit))
            sites[way] |= bit
        for sentence in new:
            bucket = sentence % _BUCKETS
            if bucket in full:
                continue
            for way in self._turns(bucket):
                if not repeats[way]:
                    held[way], sites[way], self._newest[bucket] = sentence, bit, way % _WAYS
                    break
            else:
                self._repeats[bucket * _WAYS : (bucket + 1) * _WAYS] -= 1
                full.add(bucket)

    def sites(self, sentences: Sentences) -> npt.NDArray[np.uint8]:
        """Return the site bits of each sentence, at most 32; 0 if unknown."""
        slots, known = self._find(sentences)
        return self._bits(slots) * known

    def pages(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return a lower bound for the pages of each sentence: a first page per site, and the repeats."""
        slots, known = self._find(sentences)
        stood: npt.NDArray[np.uint16] = (self._repeats[slots].astype(np.uint16) + self._bits(slots)) * known
        return stood

    def _find(self, sentences: Sentences) -> tuple[_Slots, npt.NDArray[np.bool_]]:
        """Return the slot of each sentence, and whether it is known; else the slot means nothing."""
        buckets = sentences.astype(np.intp) % _BUCKETS  # of a good hash, any bits will do
        rows = self._sentences.reshape(_BUCKETS, _WAYS).take(buckets, axis=0)
        slots = buckets * _WAYS + (rows == sentences[:, None]).argmax(axis=1)
        return slots, self._sentences[slots] == sentences

    def _bits(self, slots: _Slots) -> npt.NDArray[np.uint8]:
        bits = np.unpackbits(self._sites[slots].view(np.uint8).reshape(-1, 4), axis=1)
        found: npt.NDArray[np.uint8] = bits.sum(axis=1, dtype=np.uint8)
        return found

    def blocks(self, *, changed: bool = False) -> dict[int, bytes]:
        """Return number and content of blocks with sentences; ``changed``: of those that changed since ``saved``."""
        blocks = np.flatnonzero(self._dirty if changed else self._sites.reshape(BLOCKS, -1).any(axis=1))
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
        for bucket in np.flatnonzero(other._sites.reshape(_BUCKETS, _WAYS).any(axis=1)).tolist():
            found = self.entries(bucket)
            for sentence, (sites, repeats) in other.entries(bucket).items():
                had_sites, had = found.get(sentence, (0, 0))
                found[sentence] = had_sites | sites, min(255, had + repeats - min(in_both, had, repeats))
            most = sorted(found, key=lambda one: -found[one][1])
            ninth = found[most[_WAYS]][1] if len(most) > _WAYS else 0
            stay = set(most[:_WAYS])
            rows = [(one, sites, repeats - ninth) for one, (sites, repeats) in found.items() if one in stay]
            self._newest[bucket] = len(rows) - 1
            rows += [(bucket ^ 1, 0, 0)] * (_WAYS - len(rows))
            ways = slice(bucket * _WAYS, (bucket + 1) * _WAYS)
            self._sentences[ways], self._sites[ways], self._repeats[ways] = zip(*rows, strict=True)
            self._dirty[bucket // IN_BLOCK] = True

    def entries(self, bucket: int) -> dict[int, tuple[int, int]]:
        """Return sites and repeats of the sentences in a bucket, in the order in which they are replaced."""
        turns = list(self._turns(bucket))
        rows = zip(*(part[turns].tolist() for part in (self._sentences, self._sites, self._repeats)), strict=True)
        return {sentence: (sites, repeats) for sentence, sites, repeats in rows if sites}

    def _turns(self, bucket: int) -> Iterator[int]:
        """Yield the ways of a bucket in the order in which they are replaced; the one filled last comes last."""
        newest = int(self._newest[bucket])
        for step in range(newest + 1, newest + 1 + _WAYS):
            yield bucket * _WAYS + step % _WAYS

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
