"""The counts of sentences of a state: held in memory, written now and then."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.ordered import OrderedBytes
from scrapy_neardup.stores.recurrence import Recurrence, Sentences

#: Pages after which the counts of sentences are written; a kill costs as many pages' counts at most.
_COUNTS_EVERY = 5000
#: Repeats (see ``Recurrence``) that make a sentence common: 16 pages of one site, or about 38 of as many sites.
_COMMON = 15


class CountsOfSite:
    """What is known of one site: on how many of its pages a sentence stood."""

    def __init__(self, recurrence: Recurrence, site: int) -> None:
        self._recurrence = recurrence
        self._site = site

    def pages(self) -> int:
        """How many of its pages were noted, 256 at most."""
        return int(self.stood_on(np.array([_of_pages(self._site)], np.uint32))[0])

    def stood_on(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """On how many of its pages each sentence stood, 256 at most; too few rather than too many on one site alone."""
        if not self._site:
            return np.zeros(len(sentences), np.uint16)
        return self._recurrence.stood_on(sentences, self._site)


class Counting(OrderedBytes):
    """What a store does with sentences; see ``Recurrence`` for how they are counted."""

    _recurrence: Recurrence
    #: Pages that were noted since the opening.
    _noted = 0

    def common(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Which of these sentences (32-bit fingerprints) stand on so many pages that they are no evidence."""
        return self._recurrence.repeats(sentences) >= _COMMON

    def stood_on(self, sentences: Sentences) -> npt.NDArray[np.uint16]:
        """On how many pages each of these sentences stood: at least on so many, 287 at most."""
        return self._recurrence.pages(sentences)

    def on_site(self, site: int) -> CountsOfSite:
        """What is known of a site, by any hash of it; 0 for none, of which nothing is known."""
        return CountsOfSite(self._recurrence, site)

    def note(self, sentences: Sentences, site: int) -> None:
        """Count the sentences of a page that is no copy, and the page for its site; ``site`` is any hash of that.

        The counts are bounded in size, are written at a close and every few thousand pages, and are not taken back
        with a page: they are a statistic, and one page more makes few sentences common. If that write fails, the page
        is counted all the same, and the counts are written with the next.
        """
        if site:
            sentences = np.append(sentences, _of_pages(site))
        self._recurrence.note(sentences, site)
        self._noted += 1
        if self._noted % _COUNTS_EVERY == 0:
            self._write_counts({}, sync=False)

    def counted(self) -> dict[int, bytes]:
        """The counts of sentences, by number of block, as ``Recurrence.load`` takes them."""
        return self._recurrence.blocks()

    def add_counts(self, counts: Recurrence, in_both: int = 0) -> None:
        """Add those of another state, and write them; ``in_both``: how many pages at most both states have noted."""
        self._recurrence.merge(counts, in_both)
        self._write_counts({}, sync=True)

    def _load_recurrence(self) -> Recurrence:
        found = Recurrence()
        try:
            for key, packed in self._scan(b"b"):
                found.load(layout.unpack_block(key), packed)
        except ValueError as error:
            raise self.damaged(str(error)) from None
        return found

    def _write_counts(self, puts: Mapping[bytes, bytes], *, sync: bool) -> None:
        """Write the counts of sentences that have changed, in one batch with ``puts``; what fails is still to do."""
        counts = {layout.block_key(block): packed for block, packed in self._recurrence.changed().items()}
        self._write(Changes({**counts, **puts}), sync=sync)
        self._recurrence.saved()


def _of_pages(site: int) -> np.uint32:
    """Counted once with each page of a site, as if it were a sentence of them all."""
    return np.uint32(site >> 32 & 0xFFFFFFFF)
