"""How a ruling ends: a page passes and is reserved, or is dropped and noted."""

from __future__ import annotations

import json
from collections.abc import Callable, Set
from dataclasses import dataclass, replace

from scrapy_neardup.judge.drops import Drops
from scrapy_neardup.judge.in_flight import Blocked, InFlight, Reservation, Ruled, Ruling
from scrapy_neardup.judge.matching import Found
from scrapy_neardup.judge.preference import Contender, Preference, Standing
from scrapy_neardup.methods import Method
from scrapy_neardup.model import NO_SENTENCES, Fingerprint, Kind, Likeness, Match, Page, Verdict
from scrapy_neardup.state.evidence import Keep, evidence
from scrapy_neardup.state.kv import Row
from scrapy_neardup.state.pages import PageStore, stands_for, with_first
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# What every ruling ends in: a page that passes is on its way, and of one that is dropped it is noted for what.


@dataclass(frozen=True, slots=True)
class Registrar:
    """For one crawl: its method on its store, whose item ``passes`` though it is a duplicate, and what is kept."""

    method: Method
    store: PageStore
    in_flight: InFlight
    passes: Callable[[Verdict], bool]
    keep: Keep
    preference: Preference | None
    drops: Drops | None

    def match(self, page: Page, found: Found) -> Match:
        """An earlier page as the one that decides, with what both say."""
        return Match(
            found.original.group,
            found.original.url,
            found.original.first_seen,
            found.comparison.similarity,
            found.comparison.containment,
            self.method.shared(page, found.compared.sketch) if page.text else (),
        )

    def reserve(
        self,
        page: Page,
        verdict: Verdict,
        record: Record,
        fingerprint: Fingerprint,
        known: Record | None,
        found: tuple[Likeness | None, Match | None] | None = None,
        of: tuple[Record, ...] = (),
    ) -> Ruled:
        """The page passes and is new to the state, or another version of ``known``: it is on its way from now on.

        ``found``: how it is like which page, where the verdict does not say that. ``of``: what it is a copy of.
        """
        if known is not None and known.is_delivered:
            record = replace(record, since=known.age)
        likeness, match = found or (verdict.likeness, verdict.match)
        kept = evidence(page, likeness, match, copy=record.original != record.id, keep=self.keep)
        if self.preference is not None and record.keys:
            kept = self.preference.weighed(Contender(page, fingerprint), kept, self.method)
        reservation = Reservation(verdict, fingerprint, record, kept, page.site, known.id if known else 0, of)
        self.in_flight.add(reservation)
        return Ruled(verdict, reservation)

    def drop(self, id: int, page: Page, match: Match, likeness: Likeness | None) -> tuple[Row, ...]:
        """What tells later that the page was dropped, if that is kept: to be written with what is known of it."""
        return self.drops.rows(id, page.url, match, likeness) if self.drops is not None else ()


# ----------------------------------------------------------------------------------------------------------------------
# Copies that were dropped, and come again with the same text: they stay what they are.
#
# What a state counts goes on after a page was judged. On the first pages of a site, copies and excerpts that were filed
# in the meantime hold the lines of an article, which are taken for the site's form then; a witness by which a copy was
# found is forgotten. So the very page that was dropped would say less of its own when it comes again, and be delivered
# after all. Therefore the record of a dropped copy tells what the page was: a hash of its title, its text, its kind,
# and of all that its verdict depended on beside the state. Only where all of that is the same, and the original is
# there, the page is what it was. A page that has become an article of its own has another text, however alike the two
# are, so it cannot be held for the copy that it was: it is judged as if nothing were known of it. So is every page once
# another threshold, method or policy decides.


class Returning:
    """What dropped copies were, by one method under the secret of a state, with one policy."""

    def __init__(self, method: Method, min_letters: int, also_copies: Set[Likeness]) -> None:
        said = (method.recipe(), method.decisions(), min_letters, sorted(also_copies))
        self._hashes = method.hashes
        self._rules = json.dumps(said, sort_keys=True)

    def mark(self, page: Page, likeness: Likeness | None) -> int:
        """What is to be known of a page that is dropped as a copy; never 0."""
        return self._mark(self._hashes.of(page.title), self._hashes.of(page.text), likeness)

    def kinds(self, page: Page, known: Record) -> list[Likeness | None]:
        """The one kind of which the copy was that was dropped at the URL of a page; none if the page is not that."""
        if not known.dropped:
            return []
        title, text = self._hashes.of(page.title), self._hashes.of(page.text)
        return [kind for kind in (None, *Likeness) if self._mark(title, text, kind) == known.dropped]

    def _mark(self, title: int, text: int, likeness: Likeness | None) -> int:
        return self._hashes.of(f"{title} {text} {likeness and likeness.value} {self._rules}") or 1


# ----------------------------------------------------------------------------------------------------------------------
# The sentences of a page that says something of its own are counted, once.


def note_once(store: PageStore, url: str, site: str, fingerprint: Fingerprint, *, everywhere: bool = True) -> None:
    """Count the sentences of a page, though it was taken back in between; raises StoreError.

    Those of a copy count for its site alone: the text of an article that many sites have is not boilerplate.

    Counted twice, its own sentences would be taken for those of its site. The page is marked among them, and so
    forgotten when they are.
    """
    if len(fingerprint.sentences):
        store.note(fingerprint.sentences, site, everywhere=everywhere, page=store.hashes.short(f"page {url}"))


# ----------------------------------------------------------------------------------------------------------------------
# A page that is a copy and nothing more: its URL is noted, once; if its item passes, once that came through.


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


# ----------------------------------------------------------------------------------------------------------------------
# A page that passes though it is a copy: it stands for its group from now on, or is news of a delivered page.


class Groups:
    """Rules on copies that are more than that to their group: see ``succession``."""

    def __init__(self, registrar: Registrar) -> None:
        self._registrar = registrar

    def ruling(
        self,
        role: Standing,
        page: Page,
        best: Found,
        known: Record | None,
        fingerprint: Fingerprint,
        before: Match | None,
    ) -> Ruling:
        """The ruling on a copy of ``best.original``; ``before``: what was at its URL, if that was delivered.

        Who leads may not change while another page that is to lead is on its way.
        """
        registrar, group = self._registrar, best.original.group
        rivals = registrar.in_flight.of_key(group)
        if role.leads and rivals:
            return Blocked(rivals[0])
        match, likeness = registrar.match(page, best), best.comparison.likeness
        differs = match.similarity < registrar.method.witness_below
        filed = replace(
            fingerprint,
            keys=fingerprint.keys if role.leads or (differs and best.compared.is_original) else (),
            sentences=fingerprint.sentences if differs and known is None else NO_SENTENCES,
        )
        if role.leads:
            filed = replace(filed, keys=(*filed.keys, group))
        id = registrar.store.new_id()
        record = Record(
            id, page.url, group, match.similarity, filed.keys, fingerprint.sketch, delivered=True, body=page.body
        )
        if role is Standing.BETTER:
            verdict = Verdict(role.kind, page.url, id, match, likeness=likeness, group=group)
        else:
            verdict = Verdict(role.kind, page.url, id, before or match, group=group)
        of = with_first(registrar.store, best.original)
        return registrar.reserve(page, verdict, record, filed, known, (likeness, match), of=of)
