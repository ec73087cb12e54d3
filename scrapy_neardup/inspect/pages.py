"""The knowledge of a state on a page (verdict, evidence, group, why it passed), and its dropped pages."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from scrapy_neardup.inspect import kind_and_title, utc_time
from scrapy_neardup.judge.lists import Drop, ManualKind, find_manual_verdict
from scrapy_neardup.maintenance.scan import Watch, of_host, unwatched
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.model import Outcome
from scrapy_neardup.state.layout import drops_prefix, last_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record


def inspect_pages(
    store: PageStore, records: Sequence[Record], limit: int = 20, watch: Watch = unwatched
) -> list[dict[str, Any]]:
    """Describe pages of the state, with the verdict of crawl time on their last version. Reads all records once.

    ``original``: the original of a copy; for an original, the better page that superseded it. ``like``: the earlier
    page of an excerpt, or of a page with the same title. ``delivered``: whether its item came through. ``judged``: the
    manual verdict. ``group``: the newest ``limit`` of the ``group_size`` pages (0: all). ``near_miss``: the page that
    an original was nearly a copy of, and why it passed.
    """
    newest: dict[int, deque[int]] = {one.original: deque(maxlen=limit or None) for one in records if one.similarity > 0}
    sizes: Counter[int] = Counter()
    if newest:
        for record in watch(store.records(), store.pages):
            if record.original in newest:
                sizes[record.original] += 1
                newest[record.original].append(record.id)
    return [_inspect(store, one, sizes[one.original] or 1, newest.get(one.original, deque())) for one in records]


def _inspect(store: PageStore, record: Record, size: int, newest: deque[int]) -> dict[str, Any]:
    evidence, by_hand = store.evidence(record.id), find_manual_verdict(store, record.url)
    kind, title = kind_and_title(evidence)
    standing, is_copy = representative_of(store, record), record.original != record.id
    original = standing if standing and standing.id != record.id and record.similarity > 0 else None
    like = store.record(evidence.like) if evidence and evidence.like else None
    verdict = Outcome.UNIQUE if record.is_original else Outcome.UNJUDGED
    if is_copy:
        verdict = Outcome.BETTER if record.has_led else Outcome.DUPLICATE
    manual = by_hand and {"said": by_hand.kind.value, "other": by_hand.other or None, "when": utc_time(by_hand.when)}
    return {
        "url": record.url,
        "found": True,
        "verdict": verdict,
        "kind": kind,
        "first_seen": utc_time(record.first_seen),
        "last_seen": utc_time(store.last_seen(record.url)),
        "original": _related(store, original) if original else None,
        "original_is_gone": is_copy and standing is None,
        "superseded": original is not None and (record.has_led or not is_copy),
        "like": _related(store, like) if like else None,
        "similarity": (evidence and evidence.similarity) or (round(record.similarity, 4) if is_copy else None) or None,
        "containment": (evidence.containment or None) if evidence else None,
        "title": title,
        "characters": evidence.letters if evidence else None,
        "shared": evidence.shared if evidence else (),
        "evidence": evidence is not None,
        "variant": record.is_variant,
        "delivered": not is_copy or record.delivered,
        "judged": manual,
        "similar_id": f"{record.original:016x}" if verdict is not Outcome.UNJUDGED else None,
        "group_size": size,
        "group": [_related(store, member) for id in reversed(newest) if (member := store.record(id))],
        "near_miss": inspect_near_miss(store, record),
        "sealed": not store.journal.is_unsealed(record.id),
    }


def inspect_near_miss(store: PageStore, record: Record) -> dict[str, str] | None:
    """Return the page that a page of the state was nearly a copy of, and why it passed; None without one."""
    evidence = store.evidence(record.id)
    return {"url": evidence.near_miss, "why": evidence.near_why} if evidence and evidence.near_miss else None


def _related(store: PageStore, record: Record) -> dict[str, Any]:
    """Return another page of the state. Copies have a similarity and a kind. ``judged``: the manual verdict."""
    evidence, verdict = store.evidence(record.id), find_manual_verdict(store, record.url)
    (kind, title), is_copy = kind_and_title(evidence), record.original != record.id
    return {
        "url": record.url,
        "title": title,
        "first_seen": utc_time(record.first_seen),
        "similarity": round((evidence and evidence.similarity) or record.similarity, 4) if is_copy else None,
        "kind": kind if is_copy else None,
        "judged": verdict.kind.value if verdict else None,
    }


def list_dropped(
    store: PageStore, generation: int = 0, since: float = 0.0, site: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the drops since a time, of one crawl or of all (0), of one host or of all, as the state knows them now.

    ``original``: None if it was forgotten. ``crawl``: the one that dropped the page. ``judged``: the manual verdict.
    Pages that were forgotten, or that a person kept and that came again, need no look. Raises StoreDamaged.
    """
    is_wanted = of_host(site) if site is not None else None
    crawls = {crawl.generation: crawl.who for crawl in CRAWLS.read(store)}
    for drop in drops_of(store, generation):
        record = _at(store, drop.page)
        if drop.id < since * 1e9 or record is None or (is_wanted is not None and not is_wanted(record)):
            continue
        by_hand, original = find_manual_verdict(store, record.url), _at(store, drop.original)
        if by_hand is not None and by_hand.kind is ManualKind.KEEP and record.original == record.id > drop.id:
            continue
        yield {
            "url": record.url,
            "title": kind_and_title(store.evidence(record.id))[1],
            "original": original.url if original else None,
            "kind": drop.kind or None,
            "similarity": round(drop.similarity, 4),
            "when": utc_time(drop.id / 1e9),
            "crawl": crawls.get(drop.generation),
            "begun": utc_time(drop.generation / 1e9),
            "judged": by_hand.kind.value if by_hand else None,
        }


def originals_of(store: PageStore, records: Sequence[Record]) -> list[Record | None]:
    """Return the original of each record, or the original of its last drop; None if unknown."""
    last: dict[int, int] = {}
    if any(record.original == record.id for record in records):
        last = {drop.page: drop.original for drop in drops_of(store)}
    return [
        store.record(record.original)
        if record.original != record.id
        else _at(store, last.get(last_id(url_key(record.url, store.hashes)), 0))
        for record in records
    ]


def drops_of(store: PageStore, generation: int = 0) -> Iterator[Drop]:
    """Yield the drops of a crawl in their order; without ``generation`` of all crawls."""
    return store.unpacked(drops_prefix(generation) if generation else b"d", Drop.of_row)


def _at(store: PageStore, url: int) -> Record | None:
    """Return the page at a hash of a URL."""
    seen = store.kv.get(b"u" + url.to_bytes(8, "big"))
    return store.record(unpack_seen(seen)[0] if seen else 0)
