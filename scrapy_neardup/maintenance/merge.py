"""Add the pages of other states to a state.

Pages are united by URL, as if we had crawled them when the source saw them last. A new page is added with its first
sight as id; if that id is taken, with the next free one, and its references follow. Of a known page the version seen
later stays, under our id. An original stays one, because its copies depend on it. An original of the source that
copies one of ours becomes its copy, together with its own copies; they are no variants any more, or a group could
drift. A page that represents its group there represents it here, unless its original is a copy of ours. A
delivered page stays delivered, so it is unchanged when it comes again. Of two manual verdicts the newer one stays. A
page kept by hand becomes no copy. So a second merge of the same pages changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from scrapy_neardup.judge.lists import (
    ManualKind,
    ManualVerdict,
    find_manual_verdict,
    manual_verdicts,
    write_manual_verdicts,
)
from scrapy_neardup.judge.matching import search
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.maintenance.sources import PageEntry, sealed_pages
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record


@dataclass(slots=True)
class MergeCounts:
    """The result of a merge.

    ``added``: new here. ``known``: unchanged. ``newer``: seen later there, or judged only there. ``copies``: originals
    that copy one of ours. ``judgements``: manual verdicts taken; ``against``: pages on which both sides disagreed.
    """

    added: int = 0
    known: int = 0
    newer: int = 0
    copies: int = 0
    judgements: int = 0
    against: int = 0


def merge(source: PageStore, store: PageStore, method: Method | None = None, watch: Watch = unwatched) -> MergeCounts:
    """Add all pages of a source with our recipe; with a method, find copies across the two.

    New pages are sealed together, so an interrupted merge is rolled back at the next opening. Pages that are newer
    there may have been renewed; the same merge again completes it. Memory grows with pages that change id or become
    copies.
    """
    found = MergeCounts()
    found.judgements, found.against = take_verdicts(manual_verdicts(source), store)
    merger = _Merger(source, store, watch, found)
    merger.plan(method.with_hashes(store.hashes) if method else None)
    merger.write()
    return found


def take_verdicts(verdicts: Iterable[ManualVerdict], store: PageStore) -> tuple[int, int]:
    """Take manual verdicts of another state; the newer one of two stays.

    Return how many were taken, and on how many pages the states disagreed.
    """
    taken, against = [], 0
    for one in verdicts:
        known = find_manual_verdict(store, one.url)
        if known is not None and (known.kind, known.other) != (one.kind, one.other):
            against += 1
        if known is None or known.when < one.when:
            taken.append(one)
    if taken:
        write_manual_verdicts(store, *taken)
    return len(taken), against


@dataclass(frozen=True, slots=True)
class Copy:
    """A page's original, the similarity, and whether the page is a variant."""

    original: int
    comparison: Comparison
    is_variant: bool


def find_copy(method: Method, store: PageStore, page: Record) -> Copy | None:
    """Return the original in the store that a page of another state copies, judged as in a crawl.

    A record lacks the page's boilerplate and the project's policy; both make a copy less likely.
    """
    if not page.sketch:
        return None
    fingerprint = Fingerprint(page.keys, page.sketch)
    found = search(method, store, page.url, fingerprint).nearest
    if found is None or not found.comparison.duplicate:
        return None
    differs = found.comparison.similarity < method.variant_below
    return Copy(found.leader.group, found.comparison, differs and found.compared.is_original)


def is_renewed(known: Record, last_seen: int, entry: PageEntry) -> bool:
    """Whether a page of the source replaces our version, which was last seen at ``last_seen``.

    As if we had crawled it then. An original stays one, because others depend on it; a delivered copy
    also stays, if the other one was dropped. An unjudged page never replaces a judged one.
    """
    record = entry.record
    if known.is_unjudged and not record.is_unjudged:
        return True
    if entry.seen <= last_seen or known.is_original > record.is_original or record.is_unjudged > known.is_unjudged:
        return False
    return record.delivered or record.is_original or not known.delivered


class _Merger:
    """Decides on every page of the source, then writes. Memory grows with the pages that differ here."""

    def __init__(self, source: PageStore, store: PageStore, watch: Watch, found: MergeCounts) -> None:
        self._source = source
        self._store = store
        self._watch = watch
        self._found = found
        #: By id of the source: our ids of pages with another id; originals that copy one of ours.
        self._ids: dict[int, int] = {}
        self._copies: dict[int, Copy] = {}
        #: New ids of pages of the source.
        self._taken: set[int] = set()
        #: Our pages that become originals.
        self._raised: set[int] = set()

    def plan(self, method: Method | None) -> None:
        """Decide on every page; with a method, compare originals with ours."""
        store, found = self._store, self._found
        for entry in self._watch(sealed_pages(self._source)):
            record, known, here = entry.record, self._find(entry.record), entry.record.id
            is_taken_over = True
            if known is None:
                found.added += 1
                if here in self._taken or store.record(here) is not None:
                    here = self._free_id(here)
            else:
                here, last_seen = known.id, store.last_seen(record.url)
                is_taken_over = is_renewed(known, last_seen, entry) and not known.is_original
                is_newer = entry.seen > last_seen or is_renewed(known, last_seen, entry)
                found.newer += is_newer
                found.known += not is_newer
            if here != record.id:
                self._ids[record.id] = here
                self._taken.add(here)
            if record.is_original and is_taken_over:
                verdict = find_manual_verdict(store, record.url)
                is_kept = verdict is not None and verdict.kind is ManualKind.KEEP
                if method and not is_kept and (copy := find_copy(method, store, record)):
                    self._copies[record.id] = copy
                elif known is not None:
                    self._raised.add(known.id)
        found.copies = len(self._copies)

    def _free_id(self, id: int) -> int:
        """Return the next id that no page of either side has, and that no copy names as its original."""
        stores = self._store, self._source
        while id in self._named or id in self._taken or any(store.record(id) for store in stores):
            id += 1
        return id

    @cached_property
    def _named(self) -> set[int]:
        """The ids that copies of either side have as their original, which may be gone."""
        records = chain(self._store.records(), (entry.record for entry in sealed_pages(self._source)))
        return {record.original for record in records if record.original != record.id}

    def _find(self, record: Record) -> Record | None:
        if (found := self._store.find(record.url)) is not None:
            return found
        # The URL does not find it if another URL has the same hash, or if it was truncated.
        same = self._store.record(record.id)
        return same if same is not None and same.url == record.url else None

    def write(self) -> None:
        """Add new pages; then renew known ones, as these may name new ones, and originals first.

        New copies of a page that becomes an original come after it: a kill must leave no copy of a copy.
        """
        store = self._store
        if self._found.added:
            generation = store.journal.begin(f"merge of {self._source.location}")
            for entry in self._watch(sealed_pages(self._source)):
                is_known = store.record(self._here(entry.record.id)) is not None
                if not is_known and self._here(entry.record.original) not in self._raised:
                    self._add(entry, generation)
            # Before the seal: a repeated merge counts pages twice rather than never, and in doubt a page passes.
            store.add_counts(self._source.counts, in_both=self._found.known + self._found.newer)
            store.journal.seal(generation, store.journal.unsealed(generation))
            store.journal.end(generation)
        for are_copies in (False, True) if self._found.known or self._found.newer else ():
            for entry in self._watch(sealed_pages(self._source)):
                if (entry.record.original != entry.record.id) is are_copies:
                    self._renew(entry)

    def _add(self, entry: PageEntry, generation: int = 0) -> None:
        # If its id is taken, it keeps its age; else the next merge would take it for older than itself.
        placed = _aged(self._place(entry.record), entry.record)
        self._store.add(placed, self._evidence(entry), generation=generation, seen=entry.seen)

    def _renew(self, entry: PageEntry) -> None:
        """Replace or update our version of a page."""
        store, theirs = self._store, entry.record
        known = store.record(self._here(theirs.id))
        if known is None:
            self._add(entry)
            return
        last_seen = store.last_seen(known.url)
        seen, record = max(entry.seen, last_seen), self._place(theirs)
        # The first page of its group, which is gone there, may have been an earlier version of it; ours has that id.
        is_own_copy = record.original == record.id and theirs.original != theirs.id
        if not is_renewed(known, last_seen, entry) or is_own_copy:
            is_older = theirs.is_delivered and known.is_delivered and theirs.age < known.age
            if seen > last_seen or is_older:
                store.touch(known, seen, renewed=_aged(known, theirs, known))
            return
        record, evidence = _aged(record, theirs, known), self._evidence(entry)
        if record == known and evidence is None:
            evidence = store.evidence(known.id)
        store.add(record, evidence, replaces=known.id, seen=seen)

    def _here(self, id: int) -> int:
        """Return our id of a page."""
        return self._ids.get(id, id)

    def _original(self, id: int) -> int:
        """Return our original for an original of the source.

        If that is a copy here, its own original counts, even if it is gone: there are no chains.
        """
        if id in self._copies:
            return self._copies[id].original
        here = self._here(id)
        record = self._store.record(here)
        return here if here in self._raised or record is None else record.original

    def _place(self, record: Record) -> Record:
        """Return the record with our ids."""
        placed = replace(record, id=self._here(record.id))
        if (copy := self._copies.get(record.id)) is not None:
            placed = replace(placed, original=copy.original, similarity=copy.comparison.similarity, delivered=True)
            has_keys = copy.is_variant
        elif record.original == record.id:
            return replace(placed, original=placed.id)
        else:
            placed = replace(placed, original=self._original(record.original))
            has_keys = placed.original == self._here(record.original)
            if record.has_led:  # by the id that its group has here
                keys = (placed.original if key == record.original else key for key in record.keys)
                placed = replace(placed, keys=tuple(keys))
        return placed if has_keys else replace(placed, keys=(), sketch=placed.sketch if placed.delivered else b"")

    def _evidence(self, entry: PageEntry) -> Evidence | None:
        """Return the evidence with our ids."""
        evidence = entry.evidence
        if (copy := self._copies.get(entry.record.id)) is not None:
            found = copy.comparison
            return replace(
                evidence or Evidence(),
                kind=found.kind.value if found.kind else "",
                like=0,
                similarity=round(found.similarity, 4),
                containment=round(found.containment, 4),
                shared=(),
            )
        return replace(evidence, like=self._here(evidence.like)) if evidence and evidence.like else evidence


def _aged(placed: Record, *versions: Record) -> Record:
    """Return the page with the age of the version that was delivered first."""
    ages = [one.age for one in versions if one.is_delivered]
    return replace(placed, since=min(ages)) if ages and min(ages) != placed.id else placed
