"""Boilerplate: how many pages hold a sentence, on one site and on all sites."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.state import layout
from scrapy_neardup.state.kv import Changes, KeyValueStore
from scrapy_neardup.state.sentence_counts import BLOCKS, IN_BLOCK, Recurrence, Sentences, plain

if TYPE_CHECKING:
    from tldextract import TLDExtract


# ----------------------------------------------------------------------------------------------------------------------
# Of the last pages of a site, how many looked like another one of it under another title: what makes a catalogue.
#
# On most sites one page in a hundred does. Where one in five does, as among the products of a shop, what two pages
# share is the form of the site, and the method asks for more: see ``cascade_check``.


#: Sites of which that is known at once, the last ones that were noted.
_SITES = 4096
#: Pages after which those of a site are halved, with those in a form: so it is the last ones that count.
_LAST = 1024
#: Before so many pages nothing is said of a site.
_LEAST = 64
#: How a site is written, before all are compressed; the same on every machine. The one that was noted last comes last.
_PACKED = np.dtype([("site", ">u4"), ("pages", ">u2"), ("forms", ">u2")])


class Forms:
    """The counts of 4,096 sites, by 32-bit fingerprint; half a megabyte, whatever the number of sites."""

    def __init__(self) -> None:
        self._sites: dict[int, tuple[int, int]] = {}
        self._is_changed = False

    def note(self, site: int, *, in_form: bool) -> None:
        """Count a page of a site, and whether it looked like another one under another title."""
        pages, forms = self._sites.pop(site, (0, 0))
        self._put(site, pages + 1, forms + in_form)

    def share(self, site: int) -> float:
        """The share of such pages among the last ones of a site; 0 where too few are known."""
        pages, forms = self._sites.get(site, (0, 0))
        return forms / pages if pages >= _LEAST else 0.0

    def changed(self) -> bytes | None:
        """All of it, packed, if it was changed since it was last ``saved``."""
        return self.packed() if self._is_changed else None

    def packed(self) -> bytes | None:
        """All of it, compressed, unless it is empty."""
        rows = [(site, *counts) for site, counts in self._sites.items()]
        return zlib.compress(np.array(rows, _PACKED).tobytes(), 1) if rows else None

    def saved(self) -> None:
        """What ``changed`` gave has been written."""
        self._is_changed = False

    def load(self, packed: bytes) -> None:
        """Take what was written; raises ValueError if it is none, and then takes nothing."""
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
        """Add those of another state."""
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


# ----------------------------------------------------------------------------------------------------------------------
# On how many pages of its own site a sentence stands, and on how many sites: two tables of one kind; and a third.
#
# What stands on many pages of a site is boilerplate of that site, and of no other: so nobody makes a sentence of
# somebody else's article boilerplate by publishing it often. What stands on many sites is boilerplate everywhere; there
# a site counts once, however many pages and hosts it has, and which of the 32 bits it sets is told by the secret of the
# state.
#
# The third table is of the sites themselves: see ``Forms``.


#: Pages of a site that make a sentence boilerplate of it.
_COMMON_HERE = 16
#: Bits of the 32 for sites that make a sentence boilerplate everywhere: about 36 publishers.
_COMMON_BITS = 22


class Counts:
    """The counts of a state; ``blocks``, ``changed``, ``load`` and ``saved`` as of ``Recurrence``, for all tables."""

    def __init__(self) -> None:
        self._here = Recurrence()
        self._everywhere = Recurrence()
        self._forms = Forms()

    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        """Count the different sentences of one page, for its site, and unless it is a copy for all sites.

        ``page``: a number of the page's own, of 32 bits, which is counted as well; if it was counted on that site,
        nothing is. Whether it was done now.
        """
        by = _bit(site, hashes) if everywhere else None
        kernels = compiled.kernels
        if kernels is not None:
            tables = self._here.memory, by, self._everywhere.memory
            of_site = _number(site, hashes)
            return kernels.count_page(plain(sentences), IN_BLOCK, of_site, *hashes.drawn, *tables, page)
        own = np.array([] if page is None else [page], np.uint32)
        if self.stood_on(own, site, hashes).any():
            return False
        noted = np.concatenate((sentences, own))
        self._here.note(_of_site(np.concatenate((noted, _PAGES)), site, hashes), 0)
        if by is not None:
            self._everywhere.note(noted, by)
        return True

    def note_form(self, site: str, hashes: Keyed, *, in_form: bool) -> None:
        """Count a page, and whether it looked like another one of its site under another title; if that is known."""
        if site:
            self._forms.note(_form(site, hashes), in_form=in_form)

    def forms(self, site: str, hashes: Keyed) -> float:
        """The share of such pages among the last ones of a site."""
        return self._forms.share(_form(site, hashes))

    def pages(self, site: str, hashes: Keyed) -> int:
        """How many pages of a site were noted, 256 at most."""
        return int(self.stood_on(_PAGES, site, hashes)[0])

    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        """On how many pages of a site each sentence stood, 256 at most."""
        return self._here.pages(_of_site(sentences, site, hashes))

    def is_common_here(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        """Which sentences are boilerplate of a site; pages whose site is not known are taken for those of one."""
        return self.stood_on(sentences, site, hashes) >= _COMMON_HERE

    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Which sentences are boilerplate on whatever site."""
        return self._everywhere.sites(sentences) >= _COMMON_BITS

    def are_common(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.bool_]:
        """Which sentences are boilerplate, of a site or on whatever site."""
        kernels = compiled.kernels
        if kernels is not None:
            tables = _COMMON_HERE, self._here.memory, _COMMON_BITS, self._everywhere.memory
            found = kernels.are_common(plain(sentences), IN_BLOCK, _number(site, hashes), *hashes.drawn, *tables)
            return np.frombuffer(found, np.bool_)
        return self.is_common_here(sentences, site, hashes) | self.is_common_everywhere(sentences)

    def everywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """On how many pages of whatever sites each sentence stood, copies left out: at least on so many."""
        return self._everywhere.pages(sentences)

    def changed(self) -> dict[int, bytes]:
        """Number and packed content of each block that was changed since it was last ``saved``."""
        return _all(self._here.changed(), self._everywhere.changed(), self._forms.changed())

    def blocks(self) -> dict[int, bytes]:
        """The same of each block that holds a sentence."""
        return _all(self._here.blocks(), self._everywhere.blocks(), self._forms.packed())

    def saved(self) -> None:
        """All that ``changed`` gave has been written."""
        self._here.saved()
        self._everywhere.saved()
        self._forms.saved()

    def load(self, block: int, packed: bytes) -> None:
        """Take a block as it was written; raises ValueError if it is none, and then takes nothing."""
        if block < BLOCKS:
            self._here.load(block, packed)
            return
        if block == _FORMS:
            self._forms.load(packed)
            return
        try:
            self._everywhere.load(block - BLOCKS, packed)
        except ValueError as error:
            raise ValueError(f"{error}, in the counts over all sites, from {BLOCKS} on") from None

    def merge(self, other: Counts, in_both: int = 0) -> None:
        """Add the counts of another state of the same secret; ``in_both``: see ``Recurrence.merge``."""
        self._here.merge(other._here, in_both)
        self._everywhere.merge(other._everywhere, in_both)
        self._forms.merge(other._forms)


class CountsOfSite:
    """What is known of one site; empty: pages of which none is known, and nothing is said of it but what is common."""

    def __init__(self, counts: Counts, site: str, hashes: Keyed) -> None:
        self._counts = counts
        self._site = site
        self._hashes = hashes

    def pages(self) -> int:
        """How many of its pages were noted, 256 at most."""
        return self._counts.pages(self._site, self._hashes) if self._site else 0

    def stood_on(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """On how many of its pages each sentence stood, 256 at most."""
        if not self._site:
            return np.zeros(len(sentences), np.uint16)
        return self._counts.stood_on(sentences, self._site, self._hashes)

    def stood_anywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """On how many pages each sentence stood at least, of this site or of all."""
        here = self._counts.stood_on(sentences, self._site, self._hashes)
        return np.maximum(here, self._counts.everywhere(sentences))

    def forms(self) -> float:
        """The share of its last pages that looked like another one of it under another title; 0 if few are known."""
        return self._counts.forms(self._site, self._hashes) if self._site else 0.0

    def is_own(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Which of these sentences are boilerplate of the site itself."""
        return self._counts.is_common_here(sentences, self._site, self._hashes)

    def is_common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Which of them are boilerplate, of the site or everywhere."""
        return self._counts.are_common(sentences, self._site, self._hashes)


@lru_cache(maxsize=10_000)
def publisher(site: str) -> str:
    """Who answers for a site: its registered domain, as hosts below that cost nothing; an account is its own.

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
    """By the list of public suffixes that comes with the package: nothing is fetched.

    Loaded when a host is met: it takes a tenth of a second, half of it for what would fetch.
    """
    from tldextract import TLDExtract

    return TLDExtract(suffix_list_urls=(), cache_dir=None)


#: Counted with each page of a site, as if it were a sentence of them all.
_PAGES = np.array([0], np.uint32)
#: The block that the forms are written in.
_FORMS = 2 * BLOCKS


def _of_site(sentences: Sentences, site: str, hashes: Keyed) -> Sentences:
    """The fingerprints of these sentences on this site, which say nothing of the same sentences on another one."""
    return hashes.halves(sentences, _number(site, hashes))


@lru_cache(maxsize=1000)
def _number(site: str, hashes: Keyed) -> int:
    """What a site's sentences are mixed with."""
    return hashes.of(f"site {site}")


@lru_cache(maxsize=1000)
def _bit(site: str, hashes: Keyed) -> int:
    """Which of the bits for sites its pages set."""
    return hashes.short(publisher(site)) & 31


@lru_cache(maxsize=1000)
def _form(site: str, hashes: Keyed) -> int:
    """By what a site is known among the forms."""
    return hashes.short(f"forms {site}")


def _all(here: Mapping[int, bytes], everywhere: Mapping[int, bytes], forms: bytes | None) -> dict[int, bytes]:
    blocks = {**here, **{BLOCKS + block: packed for block, packed in everywhere.items()}}
    return blocks if forms is None else {**blocks, _FORMS: forms}


# ----------------------------------------------------------------------------------------------------------------------
# The counts of sentences of a state: held in memory, written now and then.


#: Pages after which the counts of sentences are written; a kill costs as many pages' counts at most.
_COUNTS_EVERY = 5000


class Counting(KeyValueStore):
    """What a store does with sentences; see ``Recurrence`` for how they are counted."""

    _counts: Counts
    #: Pages that were noted since the opening.
    _noted = 0

    @property
    @abstractmethod
    def hashes(self) -> Keyed:
        """What hashes under the secret of the state."""

    def on_site(self, site: str) -> CountsOfSite:
        """What is known of a site by its name (see ``site_of``), which is empty where it is not known."""
        return CountsOfSite(self._counts, site, self.hashes)

    def note(self, sentences: Sentences, site: str, *, everywhere: bool = True, page: int | None = None) -> None:
        """Count the sentences of a page (32-bit fingerprints), for its site, and unless it is a copy for all sites.

        ``page``: a number of the page's own, of 32 bits: if it was counted before, nothing is.

        The counts are bounded in size, are written at a close and every few thousand pages, and are not taken back
        with a page: they are a statistic, and one page more makes few sentences common. If that write fails, the page
        is counted all the same, and the counts are written with the next.
        """
        if not self._counts.note(sentences, site, self.hashes, everywhere=everywhere, page=page):
            return
        self._noted += 1
        if self._noted % _COUNTS_EVERY == 0:
            self._write_counts({}, sync=False)

    def note_form(self, site: str, *, in_form: bool) -> None:
        """Count a page of a site, and whether it looked like another one of it under another title.

        It is written with the counts of sentences.
        """
        self._counts.note_form(site, self.hashes, in_form=in_form)

    def counted(self) -> dict[int, bytes]:
        """The counts of sentences, by number of block, as ``Counts.load`` takes them."""
        return self._counts.blocks()

    def add_counts(self, counts: Counts, in_both: int = 0) -> None:
        """Add those of another state, and write them; ``in_both``: how many pages at most both states have noted."""
        self._counts.merge(counts, in_both)
        self._write_counts({}, sync=True)

    def _load_counts(self) -> Counts:
        found = Counts()
        try:
            for key, packed in self._scan(b"b"):
                found.load(layout.unpack_block(key), packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None
        return found

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Write the counts of sentences that have changed, in one batch with ``puts``; what fails is still to do."""
        counts = {layout.block_key(block): packed for block, packed in self._counts.changed().items()}
        self._write(Changes({**counts, **puts}), sync=sync)
        self._counts.saved()
