"""The groups of a state: each original with its copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from scrapy_neardup.inspect import HIDDEN, utc_time
from scrapy_neardup.inspect.pages import ORIGINAL, SUPERSEDED
from scrapy_neardup.judge.manual_verdicts import find_manual_verdict
from scrapy_neardup.state.pages import PageStore, newest_replacement


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A page of a group. ``judged``: the manual verdict. ``role``: original, superseded, or empty for a copy."""

    url: str
    first_seen: str | None
    similarity: float
    kind: str | None
    title: str | None
    judged: str | None
    role: str = field(metadata=HIDDEN)


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """A group: the page that stands for it, None if it is gone, and its pages by the time they were first seen."""

    similar_id: str
    size: int
    original: str | None
    first_seen: str | None
    pages: tuple[GroupMember, ...]


def inspect_group(store: PageStore, id: int, ids: list[int], limit: int | None = None) -> KnownGroup:
    """Describe a group by its id and the ids of its pages. ``limit``: how many pages to name; None: all."""
    original = newest_replacement(store, id) or store.record(id)
    return KnownGroup(
        f"{id:016x}",
        len(ids),
        original.url if original else None,
        utc_time(original.first_seen) if original else None,
        tuple(_members(store, id, ids[:limit], original.id if original else 0)),
    )


def _members(store: PageStore, group: int, ids: list[int], original: int) -> Iterator[GroupMember]:
    for id in ids:
        record, evidence = store.record(id), store.evidence(id)
        assert record is not None  # its id comes from a scan of the same snapshot
        is_copy = record.original != record.id
        similarity = evidence.similarity if is_copy and evidence else 0.0
        verdict = find_manual_verdict(store, record.url)
        yield GroupMember(
            url=record.url,
            first_seen=utc_time(record.first_seen),
            similarity=round(similarity or record.similarity, 4),
            kind=(evidence.likeness or None) if is_copy and evidence else None,
            title=(evidence.title or None) if evidence else None,
            judged=verdict.kind.value if verdict else None,
            role=ORIGINAL if id == original else SUPERSEDED if id == group else "",
        )
