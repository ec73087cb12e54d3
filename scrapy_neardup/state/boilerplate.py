"""Boilerplate: how many pages hold a sentence, on one site and on all sites."""

from __future__ import annotations

import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Changes, Row
from scrapy_neardup.state import layout
from scrapy_neardup.state.records import PageRows
from scrapy_neardup.state.sentence_counts import BLOCKS, IN_BLOCK, Recurrence, Sentences

if TYPE_CHECKING:
    from tldextract import TLDExtract


# How many of a site's last pages repeat another one's template under another title. On most sites 1 in 100 does. Where
# 1 in 5 does, as in a shop, shared text is the site's template, and the method asks for more.


#: Sites to remember, those noted last.
_SITES = 4096
#: Above this many pages the counts of a site are halved, so the last pages count.
_LAST = 1024
#: Below this many pages the share is unknown.
LEAST_PAGES = 64
#: The format of a site before compression; the site noted last comes last.
_PACKED = np.dtype([("site", ">u4"), ("pages", ">u2"), ("forms", ">u2")])


class Forms:
    """Counts of 4,096 sites by 32-bit fingerprint, in half a megabyte: pages, and those that are forms.

    A form is a page that repeats a template of its site with other names or numbers in it.
    """

    def __init__(self) -> None:
        self._sites: dict[int, tuple[int, int]] = {}
        self._is_changed = False

    def note(self, site: int, *, in_form: bool) -> None:
        """Count a page of a site, and whether it is a form."""
        pages, forms = self._sites.pop(site, (0, 0))
        self._put(site, pages + 1, forms + in_form)

    def share(self, site: int) -> float:
        """Return the share of forms among the pages of a site; 0 if too few pages are known."""
        pages, forms = self._sites.get(site, (0, 0))
        return forms / pages if pages >= LEAST_PAGES else 0.0

    def changed(self) -> dict[int, bytes]:
        """Return the one block, if it changed since ``saved``."""
        return self.blocks() if self._is_changed else {}

    def blocks(self) -> dict[int, bytes]:
        """Return everything as one block, unless it is empty."""
        rows = [(site, *counts) for site, counts in self._sites.items()]
        return {0: zlib.compress(np.array(rows, _PACKED).tobytes(), 1)} if rows else {}

    def saved(self) -> None:
        """The result of ``changed`` was written."""
        self._is_changed = False

    def load(self, block: int, packed: bytes) -> None:
        """Load the block. Raises ValueError and loads nothing if it is damaged."""
        if block:
            raise ValueError(f"there is no block {block} with counts of forms")
        try:
            plain = zlib.decompress(packed)
        except zlib.error as error:
            raise ValueError(f"the counts of forms cannot be unpacked ({error})") from None
        if len(plain) % _PACKED.itemsize:
            raise ValueError(f"there are no counts of forms in {len(plain)} bytes")
        found = np.frombuffer(plain, _PACKED)
        pages, sites = found["pages"], np.unique(found["site"])
        are_counts = (found["forms"] <= pages) & (pages > 0) & (pages < _LAST)
        if not len(sites) == len(found) <= _SITES or not are_counts.all():
            raise ValueError("the counts of forms hold what cannot stand there")
        columns = (found[name].tolist() for name in ("site", "pages", "forms"))
        self._sites = {site: (pages, forms) for site, pages, forms in zip(*columns, strict=True)}

    def merge(self, other: Forms) -> None:
        """Add the counts of another state."""
        for site, (pages, forms) in other._sites.items():
            ours = self._sites.pop(site, (0, 0))
            self._put(site, ours[0] + pages, ours[1] + forms)

    def _put(self, site: int, pages: int, forms: int) -> None:
        while pages >= _LAST:
            pages, forms = pages // 2, forms // 2
        self._sites[site] = pages, forms
        if len(self._sites) > _SITES:
            del self._sites[next(iter(self._sites))]
        self._is_changed = True


# A sentence on many pages of a site is boilerplate of that site only, so nobody can make a sentence of another
# publisher boilerplate by repeating it. A sentence on many sites is boilerplate everywhere; a site counts once there,
# and the secret of the state chooses which of 32 bits it sets. A third table counts templates; see ``Forms``.


#: A sentence on this many pages of a site is boilerplate there.
COMMON_HERE = 16
#: A sentence with this many of 32 site bits is boilerplate everywhere: about 36 publishers.
COMMON_BITS = 22


class PageCounts(ABC):
    """On how many pages each sentence stood, and how many pages of a site are forms."""

    @abstractmethod
    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        """Count the different sentences of a page for its site, and unless it is a copy for all sites.

        ``page``: the page's 32-bit number; a number that the site has already counts nothing. Return whether it
        counted.
        """

    @abstractmethod
    def note_form(self, site: str, hashes: Keyed, *, in_form: bool) -> None:
        """Count a page and whether it repeats a template. Pages without a site count as one site."""

    @abstractmethod
    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        """Return on how many pages of a site each sentence stood, at most 256."""

    @abstractmethod
    def stood_anywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return a lower bound for the pages of each sentence on all sites; copies do not count."""

    @abstractmethod
    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate everywhere."""

    @abstractmethod
    def share_of_forms(self, site: str, hashes: Keyed) -> float:
        """Return the share of forms among the last pages of a site; 0 if too few pages are known."""

    def is_own(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate of a site itself."""
        return self.stood_on(sentences, site, hashes) >= COMMON_HERE

    def is_common(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate, of a site or everywhere."""
        return self.is_own(sentences, site, hashes) | self.is_common_everywhere(sentences)


class Counts(PageCounts):
    """The boilerplate counts of a state, of fixed size."""

    def __init__(self) -> None:
        self.here = Recurrence()
        self.everywhere = Recurrence()
        self.forms = Forms()
        #: All tables, and the number of the first block of each.
        self._tables: dict[int, Recurrence | Forms] = {0: self.here, BLOCKS: self.everywhere, 2 * BLOCKS: self.forms}

    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        by = site_bit(site, hashes) if everywhere else None
        kernels = compiled.kernels
        if kernels is not None:
            tables = self.here.memory, by, self.everywhere.memory
            of_site = number_of_site(site, hashes)
            number = b"" if page is None else page.to_bytes(4, sys.byteorder)
            noted = sentences.tobytes() + number
            return kernels.count_page(noted, page is not None, IN_BLOCK, of_site, *hashes.drawn, *tables)
        own = np.array([] if page is None else [page], np.uint32)
        if self.stood_on(own, site, hashes).any():
            return False
        counted = np.concatenate((sentences, own))
        self.here.note(_of_site(np.concatenate((counted, ALL_PAGES)), site, hashes), 0)
        if by is not None:
            self.everywhere.note(counted, by)
        return True

    def note_form(self, site: str, hashes: Keyed, *, in_form: bool) -> None:
        self.forms.note(_form(site, hashes), in_form=in_form)

    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        return self.here.pages(_of_site(sentences, site, hashes))

    def stood_anywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        return self.everywhere.pages(sentences)

    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        return self.everywhere.sites(sentences) >= COMMON_BITS

    def share_of_forms(self, site: str, hashes: Keyed) -> float:
        return self.forms.share(_form(site, hashes))

    def is_common(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        kernels = compiled.kernels
        if kernels is None:
            return super().is_common(sentences, site, hashes)
        tables = COMMON_HERE, self.here.memory, COMMON_BITS, self.everywhere.memory
        of_site = number_of_site(site, hashes)
        found = kernels.are_common(sentences.tobytes(), IN_BLOCK, of_site, *hashes.drawn, *tables)
        return np.frombuffer(found, np.bool_)

    def changed(self) -> dict[int, bytes]:
        """Return number and content of blocks that changed since ``saved``."""
        return self._numbered(lambda table: table.changed())

    def blocks(self) -> dict[int, bytes]:
        """Return number and content of blocks with counts."""
        return self._numbered(lambda table: table.blocks())

    def _numbered(self, blocks_of: Callable[[Recurrence | Forms], dict[int, bytes]]) -> dict[int, bytes]:
        tables = self._tables.items()
        return {first + block: packed for first, table in tables for block, packed in blocks_of(table).items()}

    def saved(self) -> None:
        """The result of ``changed`` was written."""
        for table in self._tables.values():
            table.saved()

    def load(self, block: int, packed: bytes) -> None:
        """Load a block. Raises ValueError and loads nothing if it is damaged."""
        first = max(first for first in self._tables if first <= block)
        self._tables[first].load(block - first, packed)

    def merge(self, other: Counts, in_both: int = 0) -> None:
        """Add the counts of another state with the same secret; ``in_both``: see ``Recurrence.merge``."""
        self.here.merge(other.here, in_both)
        self.everywhere.merge(other.everywhere, in_both)
        self.forms.merge(other.forms)


class CountsOfSite:
    """The counts of one site. An empty name stands for an unknown site, where only general boilerplate counts."""

    def __init__(self, counts: PageCounts, site: str, hashes: Keyed) -> None:
        self._counts = counts
        self._site = site
        self._hashes = hashes

    def pages(self) -> int:
        """How many of its pages were counted, at most 256."""
        return int(self.stood_on(ALL_PAGES)[0])

    def stood_on(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return on how many of its pages each sentence stood, at most 256."""
        if not self._site:
            return np.zeros(len(sentences), np.uint16)
        return self._counts.stood_on(sentences, self._site, self._hashes)

    def stood_anywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """Return a lower bound for the pages of each sentence, here or anywhere. Copies count here alone."""
        here = self._counts.stood_on(sentences, self._site, self._hashes)
        return np.maximum(here, self._counts.stood_anywhere(sentences))

    def forms(self) -> float:
        """The share of its last pages that repeat a template; 0 if few are known."""
        return self._counts.share_of_forms(self._site, self._hashes)

    def is_own(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate of the site itself. Pages without a site count as one site."""
        return self._counts.is_own(sentences, self._site, self._hashes)

    def is_common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return which sentences are boilerplate, of the site or everywhere."""
        return self._counts.is_common(sentences, self._site, self._hashes)


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


#: A pseudo-sentence on every page, which counts the pages of a site.
ALL_PAGES = np.array([0], np.uint32)


def _of_site(sentences: Sentences, site: str, hashes: Keyed) -> Sentences:
    """Return fingerprints of sentences on this site, unrelated to those on other sites."""
    return hashes.halves(sentences, number_of_site(site, hashes))


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


#: Pages between writes of the counts. A kill loses the counts of these pages at most.
_COUNTS_EVERY = 5000


class BoilerplateCounts:
    """The boilerplate counts of a state: held in memory, and written from time to time."""

    def __init__(self, rows: PageRows) -> None:
        """Raises StoreDamaged."""
        self._rows = rows
        self._kv = rows.kv
        #: Pages counted since the opening.
        self._noted = 0
        self.counts = self.load()
        #: What counts and judges pages instead, if ``PageStore.use_exact_counts`` named it.
        self.substitute: PageCounts | None = None

    @property
    def used(self) -> PageCounts:
        """The counts by which pages are judged."""
        return self.substitute or self.counts

    def load(self) -> Counts:
        """Return the counts that are written. Raises StoreDamaged."""
        try:
            return read_counts(self._kv.scan(b"b"))
        except ValueError as error:
            raise self._kv.damaged(str(error)) from None

    def note(self, sentences: Sentences, site: str, *, everywhere: bool, page: int | None) -> None:
        """See ``PageStore.note``."""
        if not self.used.note(sentences, site, self._rows.hashes, everywhere=everywhere, page=page):
            return
        self._noted += 1
        if self._noted % _COUNTS_EVERY == 0:
            self.write(sync=False)

    def note_form(self, site: str, *, in_form: bool) -> None:
        """See ``PageStore.note_form``."""
        self.used.note_form(site, self._rows.hashes, in_form=in_form)

    def write(self, *, sync: bool) -> None:
        """Write changed counts in one batch. A failed write is repeated later."""
        if not self._kv.is_scratch:  # else nobody reads them again
            self._kv.write(self.changes(), sync=sync)
            self.counts.saved()

    def changes(self) -> Changes:
        """Return the batch with changed counts."""
        return Changes({layout.block_key(block): packed for block, packed in self.counts.changed().items()})
