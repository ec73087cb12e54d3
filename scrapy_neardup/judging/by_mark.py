"""Pages that are compared with no other: they pass, but made from the very same at the same URL they need not twice.

The mark of a page is the fingerprint of what it was made from (``Page.html``), which its record holds for a sketch.
"""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Blocked, Ruled, Ruling
from scrapy_neardup.model import Fingerprint, Kind, Match, Page, Verdict
from scrapy_neardup.stores import Record
from scrapy_neardup.stores.record import is_same_mark, row_mark


class ByMark:
    """Rules on pages that say too little or too much, and on rows of a listing that are known by all they hold."""

    def __init__(self, registrar: Registrar, generation: int) -> None:
        self._registrar = registrar
        self._store = registrar.store
        self._generation = generation

    def is_unchanged(self, url: str, mark: int) -> bool:
        """Whether the page at a URL was too little or too much to be judged, and is still made from the very same."""
        known = self._store.find(url) if mark else None
        return known is not None and known.similarity == 0 and known.sketch == _packed(mark)

    def unchanged(self, page: Page, known: Record) -> Verdict:
        """The verdict on a page that is still made from the very same."""
        self._store.touch(known, renewed=replace(known, body=page.body or known.body))
        match = Match(known.id, known.url, known.first_seen, 1.0, 1.0)
        return Verdict(Kind.UNCHANGED, page.url, known.id, match)

    def ruling(self, page: Page, verdict: Verdict, *, is_known_again: bool = False) -> Ruling:
        """The ruling on a page of which the verdict is known, but for whether it is unchanged or updated.

        Rows of a listing that say too little may be alike and mean different things: in one crawl all of them pass.
        ``is_known_again``: it is a row that says enough.
        """
        if not page.html:
            return Ruled(verdict)
        mark = row_mark(page.html) if page.row else _packed(page.html)
        twins_pass = page.row and not is_known_again
        if (twin := self._registrar.in_flight.of_url(page.url)) is not None:
            return Blocked(twin) if is_same_mark(twin.record.sketch, mark) and not twins_pass else Ruled(verdict)
        known = self._store.find(page.url)
        if known is not None and known.similarity > 0:
            return Ruled(verdict)  # its text may only have failed to load; what is known of it stays
        if known is not None and is_same_mark(known.sketch, mark):
            if twins_pass and known.id > self._generation:
                return Ruled(verdict)
            return Ruled(self.unchanged(page, known))
        id = self._store.new_id()
        if is_known_again:
            verdict = replace(verdict, id=id)
            if known is not None:
                verdict = replace(verdict, kind=Kind.UPDATED, reason="")
        record = Record(id, page.url, id, 0.0, (), mark, body=page.body)
        return self._registrar.reserve(page, verdict, record, Fingerprint((), mark), known)


def _packed(mark: int) -> bytes:
    return mark.to_bytes(8, "big")
