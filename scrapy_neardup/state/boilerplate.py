"""Boilerplate: on how many pages a sentence stands, of one site and of all sites.

A sentence on many pages of a site is boilerplate of that site only, so nobody can make a sentence of another publisher
boilerplate by repeating it. A sentence on many sites is boilerplate everywhere; a site counts once there, and the
secret of the state chooses which of 32 bits it sets.

A third table counts forms: pages that repeat another page of their site under another title, with other names or
numbers. On most sites 1 page in 100 does. Where 1 in 5 does, as in a shop, shared text is the site's template, and the
method asks for more.
"""

from __future__ import annotations

import struct
import sys
import zlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Row
from scrapy_neardup.state import layout

if TYPE_CHECKING:
    from tldextract import TLDExtract

#: 32-bit fingerprints of sentences.
Sentences = npt.NDArray[np.uint32]
#: A sentence on this many pages of a site is boilerplate there.
COMMON_HERE = 16
#: A sentence with this many of 32 site bits is boilerplate everywhere: about 36 publishers.
COMMON_BITS = 22
#: Below this many pages the share of forms is unknown.
LEAST_PAGES = 64
#: A pseudo-sentence on every page, which counts the pages of a site.
ALL_PAGES = np.array([0], np.uint32)


class CountsOfSite(ABC):
    """The counts of one site. Pages without a site count as one site with an empty name."""

    def __init__(self, site: str, hashes: Keyed) -> None:
        self.site = site
        self.hashes = hashes
        #: The number that is mixed into the site's sentences.
        self.number = number_of_site(site, hashes)

    @abstractmethod
    def note(self, sentences: Sentences, *, everywhere: bool, page: int | None = None) -> bool:
        """Count the different sentences of a page for its site, and unless it is a copy for all sites.

        ``page``: the page's 32-bit number; a number that the site has already counts nothing. Return whether it
        counted.
        """

    @abstractmethod
    def note_form(self, *, in_form: bool) -> None:
        """Count a page, and whether it is a form."""

    @abstractmethod
    def template_share(self) -> float:
        """Return the share of forms among the last pages; 0 if too few pages are known."""

    @abstractmethod
    def pages_here(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return on how many pages each sentence stood, at most 256."""

    @abstractmethod
    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate everywhere."""

    def pages(self) -> int:
        """Return the number of counted pages, at most 256; 0 for pages without a site."""
        return int(self.pages_on_site(ALL_PAGES)[0])

    def pages_on_site(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return on how many pages each sentence stood, at most 256; on none of those without a site."""
        return self.pages_here(sentences) if self.site else np.zeros(len(sentences), np.uint16)

    def is_own(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate of the site itself."""
        return self.pages_here(sentences) >= COMMON_HERE

    def is_common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate, of the site or everywhere."""
        return self.is_own(sentences) | self.is_common_everywhere(sentences)


def count_bits(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return how many bits of each value are set."""
    bits = np.unpackbits(values.view(np.uint8)).reshape(len(values), 32)
    found: npt.NDArray[np.uint8] = bits.sum(axis=1, dtype=np.uint8)
    return found


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
#: Sites and repeats of sentences, in the order in which these are replaced.
_Entries = dict[int, tuple[int, int]]


class Recurrence:
    """Counts of 131,072 sentences by 32-bit fingerprint, in 1.2 MB, after Misra and Gries (1982).

    A sentence that finds its bucket full replaces one without repeats, or else decrements every count there. So
    frequent sentences stay, and the many that come once pass through. Memory, written bytes and work per page are
    bounded.

    A sentence has 32 bits for its sites, and its *repeats*, at most 255: pages on a site (or one with the same bit)
    where it had stood before. A sentence of one site has a repeat for each page after the first; a sentence that
    moves between sites has as many after about twice as many pages.

    Counts are never too high. They are exact while the bucket has room. They are too low for a sentence that returns
    too late (a full table forgets one without repeats after 50,000 to 130,000 new sentences, one to three thousand
    pages), or whose bucket holds eight that are as frequent. Equal fingerprints, which are rare, share a count, and two
    sites may share a bit, so counts over several sites are estimates.
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
        return count_bits(sites), repeats

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
    return slice(block * IN_BLOCK, (block + 1) * IN_BLOCK)


#: The forms of this many sites are counted, those noted last.
_SITES = 4096
#: Above this many pages the forms of a site are halved, so the last pages count.
_LAST = 1024
#: A site before compression: fingerprint, pages, forms. The site noted last comes last.
_FORM = struct.Struct(">IHH")


class Forms:
    """Counts of 4,096 sites by 32-bit fingerprint, in half a megabyte: pages, and forms among them."""

    def __init__(self) -> None:
        self._sites: dict[int, tuple[int, int]] = {}
        #: Whether it changed since its block was written.
        self.is_changed = False

    def note(self, site: int, pages: int, forms: int) -> None:
        """Add pages of a site, and forms among them."""
        had_pages, had_forms = self._sites.pop(site, (0, 0))
        pages, forms = had_pages + pages, had_forms + forms
        while pages >= _LAST:
            pages, forms = pages // 2, forms // 2
        self._sites[site] = pages, forms
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        self.is_changed = True

    def share(self, site: int) -> float:
        """Return the share of forms among the pages of a site; 0 if too few pages are known."""
        pages, forms = self._sites.get(site, (0, 0))
        return forms / pages if pages >= LEAST_PAGES else 0.0

    def blocks(self, *, changed: bool = False) -> dict[int, bytes]:
        """Return everything as one block, unless it is empty; ``changed``: and unless it is unchanged."""
        plain = b"".join(_FORM.pack(site, *counts) for site, counts in self._sites.items())
        return {0: zlib.compress(plain, 1)} if plain and (self.is_changed or not changed) else {}

    def load(self, block: int, packed: bytes) -> None:
        """Load the block. Raises ValueError and loads nothing if it is damaged."""
        if block:
            raise ValueError(f"there is no block {block} with counts of forms")
        try:
            rows = list(_FORM.iter_unpack(zlib.decompress(packed)))
        except (zlib.error, struct.error) as error:
            raise ValueError(f"the counts of forms cannot be unpacked ({error})") from None
        found = {site: (pages, forms) for site, pages, forms in rows}
        are_counts = all(forms <= pages and 0 < pages < _LAST for pages, forms in found.values())
        if not (len(found) == len(rows) <= _SITES and are_counts):
            raise ValueError("the counts of forms hold what cannot stand there")
        self._sites = found

    def merge(self, other: Forms) -> None:
        """Add the counts of another state."""
        for site, counts in other._sites.items():
            self.note(site, *counts)


class Counts:
    """The counts of a state, of fixed size."""

    def __init__(self) -> None:
        self.here = Recurrence()
        self.everywhere = Recurrence()
        self.table_of_forms = Forms()
        self._tables: tuple[Recurrence | Forms, ...] = self.here, self.everywhere, self.table_of_forms

    def on_site(self, site: str, hashes: Keyed) -> CountsOfSite:
        """Return the counts of a site; the name may be empty."""
        return _FixedCountsOfSite(self, site, hashes)

    def rows(self, *, changed: bool = False) -> dict[bytes, bytes]:
        """Return the rows of all counts; ``changed``: of those that changed since ``saved``."""
        return {
            layout.block_key(BLOCKS * number + block): packed
            for number, table in enumerate(self._tables)
            for block, packed in table.blocks(changed=changed).items()
        }

    def saved(self) -> None:
        """The changed rows were written."""
        self.here.saved()
        self.everywhere.saved()
        self.table_of_forms.is_changed = False

    def load(self, block: int, packed: bytes) -> None:
        """Load a block. Raises ValueError and loads nothing if it is damaged."""
        number = min(block // BLOCKS, 2)
        self._tables[number].load(block - BLOCKS * number, packed)

    def merge(self, other: Counts, in_both: int = 0) -> None:
        """Add the counts of another state with the same secret; ``in_both``: see ``Recurrence.merge``."""
        self.here.merge(other.here, in_both)
        self.everywhere.merge(other.everywhere, in_both)
        self.table_of_forms.merge(other.table_of_forms)


class _FixedCountsOfSite(CountsOfSite):
    def __init__(self, counts: Counts, site: str, hashes: Keyed) -> None:
        super().__init__(site, hashes)
        self._counts = counts

    def _of_site(self, sentences: Sentences) -> Sentences:
        """Return fingerprints of sentences on this site, unrelated to those on other sites."""
        return self.hashes.halves(sentences, self.number)

    def note(self, sentences: Sentences, *, everywhere: bool, page: int | None = None) -> bool:
        by = site_bit(self.site, self.hashes) if everywhere else None
        kernels = compiled.kernels
        if kernels is not None:
            tables = self._counts.here.memory, by, self._counts.everywhere.memory
            number = b"" if page is None else page.to_bytes(4, sys.byteorder)
            noted = sentences.tobytes() + number
            return kernels.count_page(noted, page is not None, self.number, *self.hashes.drawn, *tables)
        own = np.array([] if page is None else [page], np.uint32)
        if self.pages_here(own).any():
            return False
        counted = np.concatenate((sentences, own))
        self._counts.here.note(self._of_site(np.concatenate((counted, ALL_PAGES))), 0)
        if by is not None:
            self._counts.everywhere.note(counted, by)
        return True

    def note_form(self, *, in_form: bool) -> None:
        self._counts.table_of_forms.note(_form(self.site, self.hashes), 1, int(in_form))

    def template_share(self) -> float:
        return self._counts.table_of_forms.share(_form(self.site, self.hashes))

    def pages_here(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        return self._counts.here.pages(self._of_site(sentences))

    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        return self._counts.everywhere.sites(sentences) >= COMMON_BITS

    def is_common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        kernels = compiled.kernels
        if kernels is None:
            return super().is_common(sentences)
        tables = COMMON_HERE, self._counts.here.memory, COMMON_BITS, self._counts.everywhere.memory
        found = kernels.are_common(sentences.tobytes(), self.number, *self.hashes.drawn, *tables)
        return np.frombuffer(found, np.bool_)


@lru_cache(maxsize=10_000)
def publisher(site: str) -> str:
    """Return the publisher of a site: its registered domain, because subdomains are free; an account is its own.

    >>> publisher("news.daybook.example.co.uk"), publisher("mp.weixin.qq.com MzA5"), publisher("localhost")
    ('example.co.uk', 'mp.weixin.qq.com MzA5', 'localhost')
    >>> publisher("a.b.moor.example"), publisher("203.0.113.7")
    ('moor.example', '203.0.113.7')
    """
    if not site or " " in site:
        return site
    if ":" in site:  # as many addresses as a customer is given, 2**80
        return ":".join(site.split(":")[:3])
    found = _domains()(site)
    if found.ipv4:
        return site
    return found.top_domain_under_public_suffix or ".".join(site.split(".")[-2:])


@cache
def _domains() -> TLDExtract:
    """Return the packaged list of public suffixes. Nothing is fetched.

    It loads on first use, which takes a tenth of a second.
    """
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)


@lru_cache(maxsize=1000)
def number_of_site(site: str, hashes: Keyed) -> int:
    """Return the number that is mixed into a site's sentences."""
    return hashes.of(f"site {site}")


@lru_cache(maxsize=1000)
def site_bit(site: str, hashes: Keyed) -> int:
    """Return the site's bit."""
    return hashes.short(publisher(site)) & 31


@lru_cache(maxsize=1000)
def _form(site: str, hashes: Keyed) -> int:
    """Return the site's fingerprint among the templates."""
    return hashes.short(f"forms {site}")


def read_counts(rows: Iterable[Row]) -> Counts:
    """Return the counts in rows of a state. Raises ValueError."""
    counts = Counts()
    for key, packed in rows:
        counts.load(layout.unpack_block(key), packed)
    return counts
