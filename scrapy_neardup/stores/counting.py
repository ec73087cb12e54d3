"""The counts of sentences of a state: held in memory, written now and then."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.stores import layout
from scrapy_neardup.stores.changes import Changes
from scrapy_neardup.stores.counts import Counts, CountsOfSite
from scrapy_neardup.stores.ordered import OrderedBytes
from scrapy_neardup.stores.recurrence import Sentences

#: Pages after which the counts of sentences are written; a kill costs as many pages' counts at most.
_COUNTS_EVERY = 5000


class Counting(OrderedBytes):
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
