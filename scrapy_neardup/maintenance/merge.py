"""Add the pages of other states to a state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum

from scrapy_neardup.judge.manual_verdicts import ManualVerdict, ManualVerdicts
from scrapy_neardup.maintenance.export import (
    Copy,
    Filed,
    Source,
    Watch,
    find_copy,
    take_judgements,
)
from scrapy_neardup.methods import Method
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

# ----------------------------------------------------------------------------------------------------------------------
# What is to become of each page of a source, decided before anything is written.


class Fate(Enum):
    """What becomes of a page."""

    #: Nobody here knows its URL: it is added.
    NEW = "new"
    #: It is known, and what is known stays.
    KNOWN = "known"
    #: The same, but it was delivered there earlier.
    OLDER = "older"
    #: The same, but it was last seen there.
    SEEN_LATER = "seen later"
    #: It takes the place of what is known.
    RENEWED = "renewed"


@dataclass(slots=True)
class Plan:
    """How many pages have which fate; and by the ids that they have in the source, what differs.

    ``ids``: the id here of a page that has another there. ``copies``: originals there that are copies of an original
    here. ``raised``: ids here of pages that were no originals and become some. It grows with these alone.
    """

    pages: Counter[Fate] = field(default_factory=Counter)
    ids: dict[int, int] = field(default_factory=dict)
    copies: dict[int, Copy] = field(default_factory=dict)
    raised: set[int] = field(default_factory=set)

    def here(self, id: int) -> int:
        """The id here of a page of the source."""
        return self.ids.get(id, id)

    def original(self, id: int, store: PageStore) -> int:
        """The original here of what has a page of the source for its original.

        Where that is known here as a copy, it is the original of that: there are no chains.
        """
        if id in self.copies:
            return self.copies[id].original
        here = self.here(id)
        record = store.record(here)
        if here in self.raised or record is None or store.record(record.original) is None:
            return here
        return record.original


def make_plan(source: Source, store: PageStore, method: Method | None, watch: Watch = iter) -> Plan:
    """Decide on every page; with a method, originals are compared with those in the store."""
    plan = Plan()
    judgements = ManualVerdicts(store)
    taken: set[int] = set()
    for filed in watch(source.pages()):
        record = filed.record
        known = known_as(record, store)
        what = fate(filed, known, store.last_seen(record.url))
        plan.pages[what] += 1
        here = known.id if known else _free(record.id, store, taken)
        if here != record.id:
            plan.ids[record.id] = here
            taken.add(here)
        if not record.is_original or what not in (Fate.NEW, Fate.RENEWED) or (known and known.is_original):
            continue
        said = judgements.of(record.url)
        is_kept = said is not None and said.said is ManualVerdict.KEEP
        if method and not is_kept and (copy := find_copy(method, store, record)):
            plan.copies[record.id] = copy
        elif known:
            plan.raised.add(known.id)
    return plan


def known_as(record: Record, store: PageStore) -> Record | None:
    """The page of the store that has the URL."""
    if (found := store.find(record.url)) is not None:
        return found
    # Where another URL has the same hash, or one was cut for its length, it is not found by the URL.
    same = store.record(record.id)
    return same if same is not None and same.url == record.url else None


def fate(filed: Filed, known: Record | None, last_seen: int) -> Fate:
    """What becomes of a page of which ``known`` is known here, that was seen at ``last_seen`` for the last time.

    It is as if the page had been crawled here when it was last seen there. So an original keeps its place if it has
    become a copy since, for others may stand on it; so does a copy that was delivered, beside one that was not; and a
    page that could not be judged takes no place of one that was.
    """
    record = filed.record
    if known is None:
        return Fate.NEW
    if is_unjudged(known) and not is_unjudged(record):
        return Fate.RENEWED
    if filed.seen <= last_seen:
        was_earlier = record.is_delivered and known.is_delivered and record.age < known.age
        return Fate.OLDER if was_earlier else Fate.KNOWN
    if known.is_original > record.is_original or is_unjudged(record) > is_unjudged(known):
        return Fate.SEEN_LATER
    if known.delivered and not (record.delivered or record.is_original):
        return Fate.SEEN_LATER
    return Fate.RENEWED


def is_unjudged(record: Record) -> bool:
    """Whether a page could not be judged: it is nobody's original, and nobody's copy."""
    return record.original == record.id and record.similarity == 0


def _free(id: int, store: PageStore, taken: set[int]) -> int:
    """The id, or the next one that no other page has."""
    while id in taken or store.record(id) is not None:
        id += 1
    return id


# ----------------------------------------------------------------------------------------------------------------------
# A state takes in the pages of another.
#
# Pages are united by URL, as if those of the other state had been crawled here when they were last seen there:
#
# * A page that nobody here knows is added, with the time when it was first seen for its id; if another page has that
#   id, with the next free one. What names it is changed with it.
# * Of a page that both know, the version that was last seen later stays; it keeps the id that it has here.
#   An original stays one, for its copies stand on it; if it has become a copy since, only the time is taken.
# * An original that the method calls a copy of one of this state's becomes its copy, and its own copies go with it.
#   They are witnesses no longer, or a group could drift. Originals of the same state are not compared: they have been.
# * A page that stands for its group there stands for it here; but if the original there is a copy of one here, the
#   group has here the page that stands for that.
# * What was delivered there stays delivered: a page that is a copy here has its sketch still, and is unchanged when it
#   comes again with the same text.
#
# * Of two judgements on one page the newer one stays. A page that is kept by hand becomes nobody's copy.
#
# So a second merge of the same pages finds all of them known, and changes nothing.


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did with the pages of a source.

    ``added``: nobody here knew them; ``known``: stayed as they were; ``newer``: were last seen there, or could only be
    judged there. ``copies``: originals there that are copies of an original here. ``judgements``: what was said there
    by hand and taken; ``against``: of how many pages both sides had said different things.
    """

    added: int
    known: int
    newer: int
    copies: int
    judgements: int = 0
    against: int = 0


def merge(source: Source, store: PageStore, method: Method | None = None, watch: Watch = iter) -> Merged:
    """Take all pages of a source of the same recipe into a store; with a method, copies across the two are found.

    What is added counts when all is there: if a merge is stopped, the next opening takes it back. Pages that are newer
    there may have been renewed by then; the same merge once more does the rest. Memory grows with the pages that get
    another id or become copies, and no others.
    """
    method = method.with_hashes(store.hashes) if method else None
    judgements, against = take_judgements(source.judgements, store)
    plan = make_plan(source, store, method, watch)
    pages = plan.pages
    newer = pages[Fate.SEEN_LATER] + pages[Fate.RENEWED]
    if pages[Fate.NEW] or pages[Fate.OLDER] or newer:
        _write(source, store, plan, watch)
    if pages[Fate.NEW]:
        store.add_counts(source.counts, in_both=pages[Fate.KNOWN] + pages[Fate.OLDER] + newer)
    return Merged(pages[Fate.NEW], pages[Fate.KNOWN] + pages[Fate.OLDER], newer, len(plan.copies), judgements, against)


def _write(source: Source, store: PageStore, plan: Plan, watch: Watch) -> None:
    generation = store.begin(f"merge of {source.name}")
    later: set[bool] = set()
    for filed in watch(source.pages()):
        record = filed.record
        known = store.record(plan.here(record.id))
        what = fate(filed, known, store.last_seen(record.url))
        if what is Fate.NEW:
            # Where its id is taken, it keeps its age; else the next merge would take it for older than itself.
            placed = _aged(_placed(record, plan, store), record)
            store.add(placed, _evidence_here(filed, plan), generation=generation, seen=filed.seen)
        elif what in (Fate.OLDER, Fate.SEEN_LATER) and known:
            store.touch(known, max(filed.seen, store.last_seen(known.url)), renewed=_aged(known, record, known))
        elif what is Fate.RENEWED and known:
            if _names_another(filed):
                later.add(record.original != record.id)
            else:
                _renew(filed, known, plan, store)
    store.seal(generation, store.unsealed(generation))
    store.end(generation)
    # They name pages that a kill might have taken back until now; originals first, as copies may name them.
    for are_copies in sorted(later):
        for filed in watch(source.pages()):
            known = store.record(plan.here(filed.record.id))
            if known is None or (filed.record.original != filed.record.id) is not are_copies:
                continue
            if fate(filed, known, store.last_seen(known.url)) is Fate.RENEWED:
                _renew(filed, known, plan, store)


def _names_another(filed: Filed) -> bool:
    """Whether a page is told of by means of another one: its original, or one that it is like."""
    return filed.record.original != filed.record.id or bool(filed.evidence and filed.evidence.like)


def _renew(filed: Filed, known: Record, plan: Plan, store: PageStore) -> None:
    """Put the other state's version of a page in the place of ours."""
    record, told = _placed(filed.record, plan, store), _evidence_here(filed, plan)
    seen = max(filed.seen, store.last_seen(known.url))
    if record.original == record.id and filed.record.original != filed.record.id:  # its original is this page itself
        store.touch(known, seen, renewed=_aged(known, filed.record, known))
        return
    record = _aged(record, filed.record, known)
    if record == known and told is None:
        told = store.evidence(known.id)
    store.add(record, told, replaces=known.id, seen=seen)


def _aged(placed: Record, *versions: Record) -> Record:
    """Return the page with the age of the version that was delivered first."""
    ages = [one.age for one in versions if one.is_delivered]
    return replace(placed, since=min(ages)) if ages and min(ages) != placed.id else placed


def _placed(record: Record, plan: Plan, store: PageStore) -> Record:
    """The record of a page with the ids and the original that it has here."""
    placed = replace(record, id=plan.here(record.id))
    if (copy := plan.copies.get(record.id)) is not None:
        placed = replace(placed, original=copy.original, similarity=copy.comparison.similarity, delivered=True)
        speaks = copy.is_witness
    elif record.original == record.id:
        return replace(placed, original=placed.id)
    else:
        placed = replace(placed, original=plan.original(record.original, store))
        speaks = placed.original == plan.here(record.original)
        if record.leads:  # by the id that its group has here
            keys = (placed.original if key == record.original else key for key in record.keys)
            placed = replace(placed, keys=tuple(keys))
    return placed if speaks else replace(placed, keys=(), sketch=placed.sketch if placed.delivered else b"")


def _evidence_here(filed: Filed, plan: Plan) -> Evidence | None:
    """What can be told of a page, as far as it is true here."""
    told = filed.evidence
    if (copy := plan.copies.get(filed.record.id)) is not None:
        found = copy.comparison
        return replace(
            told or Evidence(),
            likeness=found.likeness.value if found.likeness else "",
            like=0,
            similarity=round(found.similarity, 4),
            containment=round(found.containment, 4),
            shared=(),
        )
    return replace(told, like=plan.here(told.like)) if told and told.like else told
