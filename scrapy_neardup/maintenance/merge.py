"""Add the pages of other states to a state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum

from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdicts
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


@dataclass(slots=True)
class Plan:
    """Fates of all pages, counted, and the differences by id of the source.

    ``ids``: our ids of pages with another id. ``copies``: originals that copy one of ours. ``raised``: our pages that
    become originals. Memory grows with these alone.
    """

    pages: Counter[Fate] = field(default_factory=Counter)
    ids: dict[int, int] = field(default_factory=dict)
    copies: dict[int, Copy] = field(default_factory=dict)
    raised: set[int] = field(default_factory=set)

    def here(self, id: int) -> int:
        """Return our id of a page."""
        return self.ids.get(id, id)

    def original(self, id: int, store: PageStore) -> int:
        """Return our original for an original of the source.

        If that is a copy here, its own original counts: there are no chains.
        """
        if id in self.copies:
            return self.copies[id].original
        here = self.here(id)
        record = store.record(here)
        if here in self.raised or record is None or store.record(record.original) is None:
            return here
        return record.original


def make_plan(source: Source, store: PageStore, method: Method | None, watch: Watch = iter) -> Plan:
    """Decide on every page; with a method, compare originals with ours."""
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
        is_kept = said is not None and said.kind is ManualKind.KEEP
        if method and not is_kept and (copy := find_copy(method, store, record)):
            plan.copies[record.id] = copy
        elif known:
            plan.raised.add(known.id)
    return plan


def known_as(record: Record, store: PageStore) -> Record | None:
    """Return our page with the URL."""
    if (found := store.find(record.url)) is not None:
        return found
    # The URL does not find it if another URL has the same hash, or if it was truncated.
    same = store.record(record.id)
    return same if same is not None and same.url == record.url else None


def fate(filed: Filed, known: Record | None, last_seen: int) -> Fate:
    """Return the fate of a page last seen at ``last_seen``, of which we know ``known``.

    As if we had crawled it then. An original stays one, because others depend on it; so does a delivered copy beside
    one that was dropped. An unjudged page never replaces a judged one.
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
    """Whether a page could not be judged."""
    return record.original == record.id and record.similarity == 0


def _free(id: int, store: PageStore, taken: set[int]) -> int:
    """Return the id, or the next free one."""
    while id in taken or store.record(id) is not None:
        id += 1
    return id


# Pages are united by URL, as if we had crawled them when the source saw them last. A new page is added with its first
# sight as id; if that id is taken, with the next free one, and its references follow. Of a known page the version seen
# later stays, under our id. An original stays one, because its copies depend on it. An original of the source that
# copies one of ours becomes its copy, together with its own copies; they are no witnesses any more, or a group could
# drift. A page that stands for its group there stands for it here, unless its original is a copy of ours. A delivered
# page stays delivered, so it is unchanged when it comes again. Of two manual verdicts the newer one stays; a page kept
# by hand becomes no copy. So a second merge of the same pages changes nothing.


@dataclass(frozen=True, slots=True)
class Merged:
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


def merge(source: Source, store: PageStore, method: Method | None = None, watch: Watch = iter) -> Merged:
    """Add all pages of a source with our recipe; with a method, find copies across the two.

    Pages are sealed at the end, so an interrupted merge is rolled back at the next opening. Pages that are newer there
    may have been renewed; the same merge again completes it. Memory grows with pages that change id or become copies.
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
            # If its id is taken, it keeps its age; else the next merge would take it for older than itself.
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
    # They name pages that a kill could have rolled back until now; originals first, as copies may name them.
    for are_copies in sorted(later):
        for filed in watch(source.pages()):
            known = store.record(plan.here(filed.record.id))
            if known is None or (filed.record.original != filed.record.id) is not are_copies:
                continue
            if fate(filed, known, store.last_seen(known.url)) is Fate.RENEWED:
                _renew(filed, known, plan, store)


def _names_another(filed: Filed) -> bool:
    """Whether a page refers to another one: its original, or one that it resembles."""
    return filed.record.original != filed.record.id or bool(filed.evidence and filed.evidence.like)


def _renew(filed: Filed, known: Record, plan: Plan, store: PageStore) -> None:
    """Replace our version of a page."""
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
    """Return the record with our ids."""
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
    """Return the evidence with our ids."""
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
