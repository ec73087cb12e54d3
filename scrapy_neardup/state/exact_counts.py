"""Exact boilerplate counts: a number for every sentence of every site, without a limit of memory.

They count the same pages as ``boilerplate.Counts``, so both give nearly the same verdicts. But what they hold does not
depend on the order of the pages, and the counts of two sets of pages are added up. So an archive can be counted in
parts. They take some 4 kilobytes of memory a page, and are never written.

A page counts once: only the first version of a URL is noted, and pages are never rolled back here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.state.boilerplate import (
    ALL_PAGES,
    COMMON_BITS,
    COMMON_HERE,
    LEAST_PAGES,
    PageCounts,
    number_of_site,
    site_bit,
)
from scrapy_neardup.state.sentence_counts import Sentences

#: The number of a sentence is even, and a page asks for no more of its count than this. Other numbers are odd.
MOST = COMMON_HERE
#: Pages of a site in a block. The last full block and the one begun after it tell how many of its pages are forms.
_BLOCK = 512


class CountsByHash(Protocol):
    """Counts by hash."""

    def get(self, hash: int, default: int, /) -> int:
        """Return the count of a hash."""

    def __setitem__(self, hash: int, count: int, /) -> None:
        """Set it."""


class ExactCounts(PageCounts):
    """Counts by 64-bit number, and the bits of sites by 32-bit fingerprint of a sentence.

    Every look-up goes through ``get`` and ``get_bits``, every change through ``add`` and ``add_bits``.
    """

    def __init__(self) -> None:
        self.numbers: CountsByHash = {}
        self.bits: CountsByHash = {}

    def get(self, numbers: Iterable[int]) -> list[int]:
        """Return the count of each number."""
        known = self.numbers
        return [known.get(number, 0) for number in numbers]

    def get_bits(self, sentences: Iterable[int]) -> list[int]:
        """Return the bits of each sentence: one of 32 for each site, which several sites may share."""
        known = self.bits
        return [known.get(sentence, 0) for sentence in sentences]

    def add(self, numbers: Iterable[int], pages: int = 1) -> None:
        """Add pages to the count of each number."""
        known = self.numbers
        for number in numbers:
            known[number] = known.get(number, 0) + pages

    def add_bits(self, sentences: Iterable[int], bits: int) -> None:
        """Add bits of sites to each sentence."""
        known = self.bits
        for sentence in sentences:
            known[sentence] = known.get(sentence, 0) | bits

    def note(
        self, sentences: Sentences, site: str, hashes: Keyed, *, everywhere: bool, page: int | None = None
    ) -> bool:
        sentences = np.unique(sentences)
        self.add(numbers_on_site(np.concatenate((sentences, ALL_PAGES)), site, hashes))
        if everywhere:
            self.add_bits(sentences.tolist(), 1 << site_bit(site, hashes))
        return True

    def note_form(self, site: str, hashes: Keyed, *, in_form: bool) -> None:
        (pages,) = self.get([number_of_form_pages(site, hashes)])
        self.add([number_of_form_pages(site, hashes)])
        if in_form:
            self.add([_forms(site, pages // _BLOCK, hashes)])

    def stood_on(self, sentences: Sentences, site: str, hashes: Keyed) -> npt.NDArray[np.uint16]:
        return np.minimum(self.get(numbers_on_site(sentences, site, hashes)), MOST).astype(np.uint16)

    def stood_anywhere(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        return np.array([bits.bit_count() for bits in self.get_bits(sentences.tolist())], np.uint16)

    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        return self.stood_anywhere(sentences) >= COMMON_BITS

    def share_of_forms(self, site: str, hashes: Keyed) -> float:
        """See ``PageCounts``. The last pages are those of two blocks: a full one, and the one begun after it."""
        (pages,) = self.get([number_of_form_pages(site, hashes)])
        if pages < LEAST_PAGES:
            return 0.0
        forms = sum(self.get(numbers_of_forms(site, pages, hashes)))
        return forms / (pages - _BLOCK * _last_blocks(pages).start)


def numbers_on_site(sentences: Sentences, site: str, hashes: Keyed) -> list[int]:
    """Return the numbers of sentences on this site."""
    numbers: list[int] = numbers_on_sites(sentences, np.uint64(number_of_site(site, hashes)), hashes).tolist()
    return numbers


def numbers_on_sites(
    sentences: Sentences, sites: np.uint64 | npt.NDArray[np.uint64], hashes: Keyed
) -> npt.NDArray[np.uint64]:
    """Return the numbers of sentences, each on its site; ``sites``: see ``number_of_site``."""
    return hashes.numbers(sentences.astype(np.uint64) ^ sites) & ~np.uint64(1)


@lru_cache(maxsize=1000)
def number_of_form_pages(site: str, hashes: Keyed) -> int:
    """Return the number of a counter: pages of a site that were compared with its forms."""
    return hashes.of(f"form pages {site}") | 1


def numbers_of_forms(site: str, pages: int, hashes: Keyed) -> list[int]:
    """Return the numbers that count the last forms of a site; ``pages``: what ``number_of_form_pages`` counts."""
    return [_forms(site, block, hashes) for block in _last_blocks(pages)]


def _last_blocks(pages: int) -> range:
    return range(max(0, pages // _BLOCK - 1), pages // _BLOCK + 1)


@lru_cache(maxsize=1000)
def _forms(site: str, block: int, hashes: Keyed) -> int:
    """Return the number that counts the forms among a block of these pages."""
    return hashes.of(f"forms {site} {block}") | 1
