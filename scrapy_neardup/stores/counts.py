"""On how many pages of its own site a sentence stands, and on how many sites: two tables of one kind; and a third.

What stands on many pages of a site is boilerplate of that site, and of no other: so nobody makes a sentence of somebody
else's article boilerplate by publishing it often. What stands on many sites is boilerplate everywhere; there a site
counts once, however many pages and hosts it has, and which of the 32 bits it sets is told by the secret of the state.

The third table is of the sites themselves: see ``Forms``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.stores.forms import Forms
from scrapy_neardup.stores.recurrence import BLOCKS, IN_BLOCK, Recurrence, Sentences, plain

if TYPE_CHECKING:
    from tldextract import TLDExtract

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
