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
from collections import defaultdict

import numpy as np
import numpy.typing as npt

_WAYS = 8
_BUCKETS = 2**14
#: Buckets per block; a block is written at once.
IN_BLOCK = 64
#: Blocks of a table.
BLOCKS = _BUCKETS // IN_BLOCK
#: A bucket in memory: its entries in the order in which they are replaced, behind them empty ways without sites; and
#: whether it changed since it was written. The compiled module counts in the same memory.
_BUCKET = np.dtype(
    [("sentences", np.uint32, _WAYS), ("sites", np.uint32, _WAYS), ("repeats", np.uint8, _WAYS), ("changed", np.uint32)]
)
#: A bucket on disk.
_PACKED = _BUCKET.newbyteorder("<")
Sentences = npt.NDArray[np.uint32]
#: Sites and repeats of sentences, in the order in which these are replaced.
_Entries = dict[int, tuple[int, int]]


class Recurrence:
    """Counts of 131,072 sentences by 32-bit fingerprint, in 1.2 MB.

    A sentence has 32 bits for its sites, and its *repeats*, at most 255: pages on a site (or one with the same bit)
    where it had stood before. A sentence of one site has a repeat for each page after the first; a sentence that
    moves between sites has as many after about twice as many pages.
    """

    def __init__(self) -> None:
        self.memory = bytearray(_BUCKETS * _BUCKET.itemsize)
        self._buckets = np.frombuffer(self.memory, _BUCKET)

    def note(self, sentences: Sentences, site: int) -> None:
        """Count the different sentences of one page; ``site``: any hash of its site.

        Known sentences come first. Then each new one, the largest first, takes an empty way, or the place of the first
        entry without repeats. If there is none, all counts of the bucket go down, at most by one a page: if only the
        weakest did, the other ways would be held for ever by sentences that were frequent once.
        """
        bit, by_bucket = 1 << (site & 31), defaultdict[int, list[int]](list)
        for sentence in sorted(set(sentences.tolist()), reverse=True):
            by_bucket[sentence % _BUCKETS].append(sentence)
        for bucket, ones in by_bucket.items():
            entries = self.entries(bucket)
            new = [sentence for sentence in ones if sentence not in entries]
            for sentence in entries.keys() & set(ones):
                sites, repeats = entries[sentence]
                entries[sentence] = sites | bit, min(255, repeats + bool(sites & bit))
            for sentence in new:
                if len(entries) == _WAYS:
                    order = list(entries)
                    first = next((at for at, held in enumerate(order) if not entries[held][1]), None)
                    if first is None:
                        entries = {held: (sites, repeats - 1) for held, (sites, repeats) in entries.items()}
                        break
                    entries = {held: entries[held] for held in order[first + 1 :] + order[:first]}
                entries[sentence] = bit, 0
            self._put(bucket, entries)

    def sites(self, sentences: Sentences) -> npt.NDArray[np.uint8]:
        """Return the site bits of each sentence, at most 32; 0 if unknown."""
        return self._find(sentences)[0]

    def pages(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return a lower bound for the pages of each sentence: a first page per site, and the repeats."""
        sites, repeats = self._find(sentences)
        return repeats.astype(np.uint16) + sites

    def _find(self, sentences: Sentences) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """Return site bits and repeats of each sentence; 0 if unknown."""
        buckets = self._buckets[sentences % _BUCKETS]  # of a good hash, any bits will do
        is_it = (buckets["sentences"] == sentences[:, None]) & (buckets["sites"] != 0)
        sites = np.where(is_it, buckets["sites"], 0).sum(axis=1, dtype=np.uint32)
        repeats: npt.NDArray[np.uint8] = np.where(is_it, buckets["repeats"], 0).sum(axis=1, dtype=np.uint8)
        bits = np.unpackbits(sites.view(np.uint8).reshape(-1, 4), axis=1)
        return bits.sum(axis=1, dtype=np.uint8), repeats

    def blocks(self, *, changed: bool = False) -> dict[int, bytes]:
        """Return number and content of blocks with sentences; ``changed``: of those that changed since ``saved``."""
        field = self._buckets["changed" if changed else "sites"]
        blocks = np.flatnonzero(field.reshape(BLOCKS, -1).any(axis=1))
        return {block: zlib.compress(self._pack(block), 1) for block in blocks.tolist()}

    def saved(self) -> None:
        """The result of ``changed`` was written. Call it before the next page."""
        self._buckets["changed"] = 0

    def _pack(self, block: int) -> bytes:
        packed = self._buckets[_place(block)].astype(_PACKED)
        packed["changed"] = 0
        return packed.tobytes()

    def load(self, block: int, packed: bytes) -> None:
        """Load a block. Raises ValueError and loads nothing if it is damaged."""
        try:
            plain = zlib.decompress(packed)
        except zlib.error as error:
            raise ValueError(f"block {block} of the counted sentences cannot be unpacked ({error})") from None
        if not 0 <= block < BLOCKS or len(plain) != IN_BLOCK * _PACKED.itemsize:
            raise ValueError(f"there is no block {block} with {len(plain)} bytes of counted sentences")
        found, rows = np.frombuffer(plain, _PACKED), _place(block)
        held, own = found["sites"] != 0, np.arange(rows.start, rows.stop)[:, None]
        if (held & (found["sentences"] % _BUCKETS != own)).any() or (held[:, 1:] > held[:, :-1]).any():
            raise ValueError(f"block {block} of the counted sentences holds what cannot stand there")
        self._buckets[rows] = found
        self._buckets["changed"][rows] = 0

    def merge(self, other: Recurrence, in_both: int = 0) -> None:
        """Add the counts of another table, after Agarwal et al. (2012), "Mergeable summaries".

        Equal sentences add repeats and unite sites. If a bucket then has more than eight, those with most repeats stay,
        less the repeats of the ninth. At most ``in_both`` pages were counted in both tables; each was at most one
        repeat in both, so as many are subtracted from a sum, down to the larger part. No count gets too high.
        """
        for bucket in np.flatnonzero(other._buckets["sites"].any(axis=1)).tolist():
            found = self.entries(bucket)
            for sentence, (sites, repeats) in other.entries(bucket).items():
                had_sites, had = found.get(sentence, (0, 0))
                found[sentence] = had_sites | sites, min(255, had + repeats - min(in_both, had, repeats))
            most = sorted(found, key=lambda one: -found[one][1])
            ninth, stay = found[most[_WAYS]][1] if len(most) > _WAYS else 0, set(most[:_WAYS])
            left = {one: (sites, repeats - ninth) for one, (sites, repeats) in found.items() if one in stay}
            self._put(bucket, left)

    def entries(self, bucket: int) -> _Entries:
        """Return sites and repeats of the sentences in a bucket, in the order in which they are replaced."""
        row = self._buckets[bucket]
        rows = zip(*(row[part].tolist() for part in ("sentences", "sites", "repeats")), strict=True)
        return {sentence: (sites, repeats) for sentence, sites, repeats in rows if sites}

    def _put(self, bucket: int, entries: _Entries) -> None:
        rows = [(sentence, *counts) for sentence, counts in entries.items()]
        rows += [(0, 0, 0)] * (_WAYS - len(rows))
        row = self._buckets[bucket]
        row["sentences"], row["sites"], row["repeats"] = zip(*rows, strict=True)
        row["changed"] = 1


def _place(block: int) -> slice:
    """Return the buckets of a block."""
    return slice(block * IN_BLOCK, (block + 1) * IN_BLOCK)
