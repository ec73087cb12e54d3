"""Exact boilerplate counts: a number for every sentence of every site, without a limit of memory.

They count the same pages as ``boilerplate.Counts``, so both give nearly the same verdicts. But they do not depend on
the order of the pages, and the counts of two sets of pages can be added. So an archive can be counted in parts.

A page counts once: only the first version of a URL is noted, and pages are never rolled back here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.state.boilerplate import (
    ALL_PAGES,
    COMMON_BITS,
    COMMON_HERE,
    LEAST_PAGES,
    CountsOfSite,
    Sentences,
    count_bits,
    site_bit,
)

Hashes = npt.NDArray[np.uint64]
_NO_HASHES = np.zeros(0, np.uint64)
#: Pages of a site in a block. Two blocks tell how many of its last pages are forms: a full one, and the next.
_BLOCK = 512


class CountTable:
    """Counts by hash. It lists every hash that was looked up.

    Expected hashes are in an array, which takes little memory; others in a dictionary.
    """

    def __init__(self, expected: Hashes = _NO_HASHES) -> None:
        """``expected``: hashes in ascending order."""
        self._expected = expected
        #: The counts of the expected hashes; behind them a place for all others.
        self.counts = np.zeros(len(expected) + 1, np.uint32)
        self._others: dict[int, int] = {}
        #: Called before counts are read.
        self.before_look: Callable[[], None] = lambda: None
        self._begun: tuple[npt.NDArray[np.uint32], dict[int, int]] = self.counts, {}

    @property
    def now(self) -> npt.NDArray[np.uint32]:
        """The counts of the expected hashes, and a place for others."""
        self.before_look()
        return self.counts

    def get(self, hashes: Hashes) -> npt.NDArray[np.uint32]:
        """Return the count of each hash; 0 for an unknown one."""
        places = self._places(hashes)
        found = self.now[places]
        for at in np.flatnonzero(places == len(self._expected)):
            found[at] = self._others.setdefault(int(hashes[at]), 0)
        return found

    def change(self, hashes: Hashes, change: np.ufunc, by: npt.NDArray[np.uint32] | np.uint32) -> None:
        """Change the counts of different hashes, each by its own number or all by one: add it, or set its bits."""
        places, by = self._places(hashes), np.broadcast_to(by, len(hashes))
        is_expected = places < len(self._expected)
        places = places[is_expected]
        self.counts[places] = change(self.counts[places], by[is_expected])
        for hash, one in zip(hashes[~is_expected].tolist(), by[~is_expected].tolist(), strict=True):
            self._others[hash] = int(change(self._others.get(hash, 0), one))

    def begin(self, hashes: Hashes, counts: npt.NDArray[np.uint32]) -> None:
        """Begin with these counts."""
        self.change(hashes, np.add, counts)
        self._begun = self.counts.copy(), dict(self._others)

    def added(self) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Return all hashes, and how much each count grew since ``begin``; of bits, those that were set since."""
        (begun, others), hashes = self._begun, np.fromiter(self._others, np.uint64, len(self._others))
        now = np.concatenate((self.now[:-1], np.fromiter(self._others.values(), np.uint32, len(self._others))))
        before = np.concatenate((begun[:-1], np.array([others.get(one, 0) for one in self._others], np.uint32)))
        return np.concatenate((self._expected, hashes)), (now - before).astype(np.int64)

    def _places(self, hashes: Hashes) -> npt.NDArray[np.intp]:
        """Return the place of each hash in ``counts``: the last one for hashes that are not expected."""
        places = np.searchsorted(self._expected, hashes)
        if len(self._expected):
            found = self._expected[np.minimum(places, len(self._expected) - 1)] == hashes
            places[~found] = len(self._expected)
        return places


class ExactCounts:
    """``numbers``: pages by the number of a sentence on a site. ``bits``: the sites of a sentence, as bits.

    ``forms``: pages of a site, and forms among them, by number.
    """

    def __init__(self, numbers: Hashes = _NO_HASHES, sentences: Hashes = _NO_HASHES) -> None:
        """See ``CountTable`` for expected hashes."""
        self.numbers = CountTable(numbers)
        self.bits = CountTable(sentences)
        self.forms: dict[int, int] = {}

    def on_site(self, site: str, hashes: Keyed) -> CountsOfSite:
        """Return the counts of a site; the name may be empty."""
        return _ExactCountsOfSite(self, site, hashes)


class _ExactCountsOfSite(CountsOfSite):
    def __init__(self, counts: ExactCounts, site: str, hashes: Keyed) -> None:
        super().__init__(site, hashes)
        self._counts = counts

    def _numbers(self, sentences: Sentences) -> Hashes:
        return numbers_on_sites(sentences, np.uint64(self.number), self.hashes)

    def note(self, sentences: Sentences, *, everywhere: bool, page: int | None = None) -> bool:
        sentences = np.unique(sentences)
        numbers = self._numbers(np.concatenate((sentences, ALL_PAGES)))
        self._counts.numbers.change(numbers, np.add, np.uint32(1))
        if everywhere:
            bit = np.uint32(1 << site_bit(self.site, self.hashes))
            self._counts.bits.change(sentences.astype(np.uint64), np.bitwise_or, bit)
        return True

    def note_form(self, *, in_form: bool) -> None:
        counted = self._counts.forms
        number = number_of_form_pages(self.site, self.hashes)
        pages = counted.get(number, 0)
        counted[number] = pages + 1
        if in_form:
            forms = _forms(self.site, pages // _BLOCK, self.hashes)
            counted[forms] = counted.get(forms, 0) + 1

    def template_share(self) -> float:
        """See ``CountsOfSite``. The last pages lie in the last full block and in the one begun after it."""
        counted = self._counts.forms
        pages = counted.setdefault(number_of_form_pages(self.site, self.hashes), 0)
        if pages < LEAST_PAGES:
            return 0.0
        forms = sum(counted.setdefault(one, 0) for one in numbers_of_forms(self.site, pages, self.hashes))
        return forms / (pages - _BLOCK * _last_blocks(pages).start)

    def pages_here(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        return np.minimum(self._counts.numbers.get(self._numbers(sentences)), COMMON_HERE).astype(np.uint16)

    def is_common_everywhere(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        return count_bits(self._counts.bits.get(sentences.astype(np.uint64))) >= COMMON_BITS


def numbers_on_sites(sentences: Sentences, sites: np.uint64 | Hashes, hashes: Keyed) -> Hashes:
    """Return the numbers of sentences, each on its site; ``sites``: see ``number_of_site``."""
    return hashes.numbers(sentences.astype(np.uint64) ^ sites)


@lru_cache(maxsize=1000)
def number_of_form_pages(site: str, hashes: Keyed) -> int:
    """Return the number of a counter: pages of a site that were compared with its forms."""
    return hashes.of(f"form pages {site}")


def numbers_of_forms(site: str, pages: int, hashes: Keyed) -> list[int]:
    """Return the numbers that count the last forms of a site; ``pages``: what ``number_of_form_pages`` counts."""
    return [_forms(site, block, hashes) for block in _last_blocks(pages)]


def _last_blocks(pages: int) -> range:
    return range(max(0, pages // _BLOCK - 1), pages // _BLOCK + 1)


@lru_cache(maxsize=1000)
def _forms(site: str, block: int, hashes: Keyed) -> int:
    """Return the number that counts the forms among a block of these pages."""
    return hashes.of(f"forms {site} {block}")
