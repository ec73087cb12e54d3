"""A page that is a copy and nothing more: its URL is noted, once; if its item passes, once that came through."""

from __future__ import annotations

from dataclasses import replace

from scrapy_neardup.judging.matching import Found
from scrapy_neardup.judging.noting import note_once
from scrapy_neardup.judging.registrar import Registrar
from scrapy_neardup.judging.reservations import Ruled
from scrapy_neardup.judging.returning import Returning
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.stores import Record, evidence, stands_for, with_first


class Copies:
    """Rules on copies, and on those that were dropped and come again: see ``returning``."""

    def __init__(self, registrar: Registrar, returning: Returning) -> None:
        self._registrar = registrar
        self._returning = returning
        self._store = registrar.store
        self._witness_below = registrar.method.witness_below

    def ruling(
        self, page: Page, best: Found, known: Record | None, fingerprint: Fingerprint, *, said: bool = False
    ) -> Ruled:
        """The ruling on a copy of ``best.original``; ``said``: it is one by hand.

        A copy that is like its original is found through that; one that differs speaks for itself, and is a witness.
        The keys of its fingerprint are those that are evidence.
        """
        match, likeness = self._registrar.match(page, best), best.comparison.likeness
        verdict = Verdict(Kind.DUPLICATE, page.url, match=match, likeness=likeness, by_hand=said)
        passes = self._registrar.passes(verdict)
        of = tuple({one.id: one for one in (*with_first(self._store, best.original), best.compared)}.values())
        mark = 0 if passes or said or not page.text else self._returning.mark(page, likeness)
        if known is not None and not passes and _keeps_its_place(known, match.id):
            along = self._registrar.drop(self._store.new_id(), page, match, likeness)
            self._store.touch(known, of=of, along=along, renewed=self._renewed(known, mark, page, match, likeness))
            return Ruled(replace(verdict, id=known.id), was_delivered=known.is_delivered)
        differs = match.similarity < self._witness_below
        is_witness = differs and best.compared.is_original
        id, keys = self._store.new_id(), fingerprint.keys if is_witness else ()
        sketch = fingerprint.sketch if is_witness or passes else b""
        body = 0 if said else page.body  # what is said may be taken back
        copy = Record(id, page.url, match.id, match.similarity, keys, sketch, passes, dropped=mark, body=body)
        verdict = replace(verdict, id=id)
        counts = differs and known is None
        if passes:
            filed = replace(fingerprint, keys=keys, sentences=fingerprint.sentences if counts else NO_SENTENCES)
            return self._registrar.reserve(page, verdict, copy, filed, known, of=of)
        if known is None:
            self._store.note_form(page.site, in_form=fingerprint.in_form)
        if counts:
            note_once(self._store, page.url, page.site, fingerprint, everywhere=False)
        kept = evidence(page, likeness, match, copy=True, keep=self._registrar.keep)
        along = self._registrar.drop(id, page, match, likeness)
        self._store.add(copy, kept, replaces=known.id if known else 0, of=of, along=along)
        return Ruled(verdict)

    def returned(self, page: Page, known: Record, fingerprint: Fingerprint) -> Ruled | None:
        """The ruling on the very page that was dropped at its URL, as long as its original is there."""
        if not (kinds := self._returning.kinds(page, known)):
            return None
        original = stands_for(self._store, known, besides=page.url)
        if original is None or not original.sketch:
            return None
        comparison = self._registrar.method.compare(fingerprint, original.sketch, frozenset())
        as_then = replace(comparison, similarity=known.similarity, likeness=kinds[0])
        match = self._registrar.match(page, Found(as_then, original, original))
        verdict = Verdict(Kind.DUPLICATE, page.url, known.id, match, likeness=kinds[0])
        if self._registrar.passes(verdict):
            return None  # it is to be delivered: as what it is taken for now
        along = self._registrar.drop(self._store.new_id(), page, match, kinds[0])
        renewed = self._renewed(known, known.dropped, page, match, kinds[0])
        self._store.touch(known, of=with_first(self._store, original), along=along, renewed=renewed)
        return Ruled(verdict)

    def _renewed(self, known: Record, mark: int, page: Page, match: Match, likeness: Likeness | None) -> Record:
        """What is to be known of a dropped copy that is dropped once more, with another text, or other bytes.

        By its bytes it is known if what is kept of it is still true, as nothing else can be told of it then.
        """
        if not mark or known.is_delivered:
            return known
        body = 0
        if mark == known.dropped:
            told = self._store.evidence(known.id) if page.body not in (0, known.body) else None
            shown = (likeness and likeness.value, round(match.similarity, 4), round(match.containment, 4))
            same = told is not None and (told.likeness, told.similarity, told.containment) == shown
            body = page.body if same else known.body
        return replace(known, dropped=mark, body=body)


def _keeps_its_place(known: Record, original: int) -> bool:
    """Whether what is known of a URL stays though the page has become a copy of this original, and is dropped.

    What was delivered does: its text may come back, and on an original others may stand.
    """
    return known.is_delivered or known.original == original
