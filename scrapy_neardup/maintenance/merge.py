"""Add the pages of other states to a state.

Pages are united by URL, as if we had crawled them when the source saw them last. A new page is added with its first
sight as id; if that id is taken, with the next free one, and its references follow. Of a known page the version seen
later stays, under our id. An original stays one, because its copies depend on it. An original of the source that
copies one of ours becomes its copy, together with its own copies; they are no variants any more, or a group could
drift. A page that stands for its group there stands for it here, unless its original is a copy of ours. A delivered
page stays delivered, so it is unchanged when it comes again. Of two manual verdicts the newer one stays; a page kept
by hand becomes no copy. So a second merge of the same pages changes nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_neardup.judge.manual_verdicts import ManualKind, find_manual_verdict
from scrapy_neardup.judge.matching import Searcher
from scrapy_neardup.maintenance.export import Source, Watch, take_verdicts
from scrapy_neardup.maintenance.lines import PageEntry
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class MergeCounts:
    """The result of a merge.

    ``added``: new here. ``known``: unchanged. ``newer``: seen later there, or judged only there. ``copies``: originals
    that copy one of ours. ``judgements``: manual verdicts taken; ``against``: pages on which both sides disagreed.
    """

    added: int
    known: int
    newer: int
    copies: int
    judgements: int = 0
    against: int = 0


def merge(source: Source, store: PageStore, method: Method | None = None, watch: Watch = iter) -> MergeCounts:
    """Add all pages of a source with our recipe; with a method, find copies across the two.

    Pages are sealed at the end, so an interrupted merge is rolled back at the next opening. Pages that are newer there
    may have been renewed; the same merge again completes it. Memory grows with pages that change id or become copies.
    """
    verdicts, against = take_verdicts(source.verdicts, store)
    merger = _Merger(source, store, watch)
    merger.plan(method.with_hashes(store.hashes) if method else None)
    fates = merger.fates
    added, known = fates[Fate.NEW], fates[Fate.KNOWN] + fates[Fate.OLDER]
    newer = fates[Fate.SEEN_LATER] + fates[Fate.RENEWED]
    if added or newer or fates[Fate.OLDER]:
        merger.write()
    if added:
        store.add_counts(source.counts, in_both=known + newer)
    return MergeCounts(added, known, newer, len(merger.copies), verdicts, against)


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
    found = Searcher(method, store).search(page.url, Fingerprint(page.keys, page.sketch)).nearest
    if found is None or not found.comparison.duplicate:
        return None
    differs = found.comparison.similarity < method.variant_below
    return Copy(found.original.group, found.comparison, differs and found.compared.is_original)


class Fate(Enum):
    """What happens to a page of the source."""

    #: Its URL is new: it is added.
    NEW = "new"
    #: It is known, and our version stays.
    KNOWN = "known"
    #: Our version stays, but the source had delivered it earlier.
    OLDER = "older"
    #: Our version stays, but the source saw it later.
    SEEN_LATER = "seen later"
    #: It replaces our version.
    RENEWED = "renewed"


def fate_of(entry: PageEntry, known: Record | None, last_seen: int) -> Fate:
    """Return the fate of a page of which we know ``known``, last seen at ``last_seen``.

    As if we had crawled it then. An original stays one, because others depend on it; so does a delivered copy beside
    one that was dropped. An unjudged page never replaces a judged one.
    """
    record = entry.record
    if known is None:
        return Fate.NEW
    if known.is_unjudged and not record.is_unjudged:
        return Fate.RENEWED
    if entry.seen <= last_seen:
        was_earlier = record.is_delivered and known.is_delivered and record.age < known.age
        return Fate.OLDER if was_earlier else Fate.KNOWN
    if known.is_original > record.is_original or record.is_unjudged > known.is_unjudged:
        return Fate.SEEN_LATER
    if known.delivered and not (record.delivered or record.is_original):
        return Fate.SEEN_LATER
    return Fate.RENEWED


class _Merger:
    """Decides on every page of the source, then writes. Memory grows with the pages that differ here."""

    def __init__(self, source: Source, store: PageStore, watch: Watch) -> None:
        self._source = source
        self._store = store
        self._watch = watch
        #: The fates of all pages, counted.
        self.fates: Counter[Fate] = Counter()
        #: By id of the source: our ids of pages with another id; originals that copy one of ours.
        self._ids: dict[int, int] = {}
        self.copies: dict[int, Copy] = {}
        #: Our pages that become originals.
        self._raised: set[int] = set()

    def plan(self, method: Method | None) -> None:
        """Decide on every page; with a method, compare originals with ours."""
        store, taken = self._store, set[int]()
        for entry in self._watch(self._source.pages()):
            record = entry.record
            known = self._find(record)
            fate = fate_of(entry, known, store.last_seen(record.url))
            self.fates[fate] += 1
            here = known.id if known else record.id
            while known is None and (here in taken or store.record(here) is not None):
                here += 1
            if here != record.id:
                self._ids[record.id] = here
                taken.add(here)
            if not record.is_original or fate not in (Fate.NEW, Fate.RENEWED) or (known and known.is_original):
                continue
            verdict = find_manual_verdict(store, record.url)
            is_kept = verdict is not None and verdict.kind is ManualKind.KEEP
            if method and not is_kept and (copy := find_copy(method, store, record)):
                self.copies[record.id] = copy
            elif known:
                self._raised.add(known.id)

    def _find(self, record: Record) -> Record | None:
        """Return our page with the URL."""
        if (found := self._store.find(record.url)) is not None:
            return found
        # The URL does not find it if another URL has the same hash, or if it was truncated.
        same = self._store.record(record.id)
        return same if same is not None and same.url == record.url else None

    def write(self) -> None:
        """Add new pages, and renew known ones."""
        store = self._store
        generation = store.begin(f"merge of {self._source.name}")
        later: set[bool] = set()
        for entry in self._watch(self._source.pages()):
            record = entry.record
            known = store.record(self._here(record.id))
            fate = fate_of(entry, known, store.last_seen(record.url))
            if fate is Fate.NEW:
                # If its id is taken, it keeps its age; else the next merge would take it for older than itself.
                placed = _aged(self._place(record), record)
                store.add(placed, self._evidence(entry), generation=generation, seen=entry.seen)
            elif fate in (Fate.OLDER, Fate.SEEN_LATER) and known:
                store.touch(known, max(entry.seen, store.last_seen(known.url)), renewed=_aged(known, record, known))
            elif fate is Fate.RENEWED and known:
                if record.original != record.id or (entry.evidence and entry.evidence.like):
                    later.add(record.original != record.id)
                else:
                    self._renew(entry, known)
        store.seal(generation, store.unsealed(generation))
        store.end(generation)
        # They name pages that a kill could have rolled back until now; originals first, as copies may name them.
        for are_copies in sorted(later):
            for entry in self._watch(self._source.pages()):
                known = store.record(self._here(entry.record.id))
                if known is None or (entry.record.original != entry.record.id) is not are_copies:
                    continue
                if fate_of(entry, known, store.last_seen(known.url)) is Fate.RENEWED:
                    self._renew(entry, known)

    def _renew(self, entry: PageEntry, known: Record) -> None:
        """Replace our version of a page."""
        record, evidence = self._place(entry.record), self._evidence(entry)
        seen = max(entry.seen, self._store.last_seen(known.url))
        if record.original == record.id and entry.record.original != entry.record.id:
            # Its original is this page itself.
            self._store.touch(known, seen, renewed=_aged(known, entry.record, known))
            return
        record = _aged(record, entry.record, known)
        if record == known and evidence is None:
            evidence = self._store.evidence(known.id)
        self._store.add(record, evidence, replaces=known.id, seen=seen)

    def _here(self, id: int) -> int:
        """Return our id of a page."""
        return self._ids.get(id, id)

    def _original(self, id: int) -> int:
        """Return our original for an original of the source.

        If that is a copy here, its own original counts: there are no chains.
        """
        if id in self.copies:
            return self.copies[id].original
        here = self._here(id)
        record = self._store.record(here)
        if here in self._raised or record is None or self._store.record(record.original) is None:
            return here
        return record.original

    def _place(self, record: Record) -> Record:
        """Return the record with our ids."""
        placed = replace(record, id=self._here(record.id))
        if (copy := self.copies.get(record.id)) is not None:
            placed = replace(placed, original=copy.original, similarity=copy.comparison.similarity, delivered=True)
            has_keys = copy.is_variant
        elif record.original == record.id:
            return replace(placed, original=placed.id)
        else:
            placed = replace(placed, original=self._original(record.original))
            has_keys = placed.original == self._here(record.original)
            if record.leads:  # by the id that its group has here
                keys = (placed.original if key == record.original else key for key in record.keys)
                placed = replace(placed, keys=tuple(keys))
        return placed if has_keys else replace(placed, keys=(), sketch=placed.sketch if placed.delivered else b"")

    def _evidence(self, entry: PageEntry) -> Evidence | None:
        """Return the evidence with our ids."""
        evidence = entry.evidence
        if (copy := self.copies.get(entry.record.id)) is not None:
            found = copy.comparison
            return replace(
                evidence or Evidence(),
                likeness=found.likeness.value if found.likeness else "",
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
