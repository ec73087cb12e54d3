"""The dropped pages of a state, with their originals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scrapy_neardup.judge.drops import Drop
from scrapy_neardup.judge.manual_verdicts import ManualKind, ManualVerdict, find_manual_verdict
from scrapy_neardup.state.layout import drops_prefix, last_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped page as the state knows it now.

    ``record``, ``original``: None if it was forgotten or rolled back. ``title``: empty if it was not kept. ``said``:
    the manual verdict on the page.
    """

    drop: Drop
    record: Record | None
    original: Record | None
    title: str
    said: ManualVerdict | None

    @property
    def when(self) -> float:
        """Seconds since 1970."""
        return self.drop.id / 1e9

    @property
    def came_since(self) -> bool:
        """Whether a person kept the page, and it passed in a later crawl."""
        kept = self.said is not None and self.said.kind is ManualKind.KEEP
        record = self.record
        return kept and record is not None and record.original == record.id > self.drop.id


def dropped(store: PageStore, generation: int = 0) -> Iterator[Dropped]:
    """Yield the drops of a crawl in their order; without ``generation`` those of all crawls.

    Raises StoreDamaged.
    """
    for drop in _drops(store, generation):
        record = _at(store, drop.page)
        told = store.evidence(record.id) if record is not None else None
        said = find_manual_verdict(store, record.url) if record is not None else None
        yield Dropped(drop, record, _at(store, drop.original), told.title if told else "", said)


def originals_of(store: PageStore, records: Sequence[Record]) -> list[Record | None]:
    """Return the page that each record was dropped for: its original, or the original of its last drop; None if
    unknown.
    """
    last: dict[int, int] = {}
    if any(record.original == record.id for record in records):
        last = {drop.page: drop.original for drop in _drops(store)}
    found = []
    for record in records:
        page = last_id(url_key(record.url, store.hashes))
        found.append(store.record(record.original) if record.original != record.id else _at(store, last.get(page, 0)))
    return found


def _drops(store: PageStore, generation: int = 0) -> Iterator[Drop]:
    return store.unpacked(drops_prefix(generation) if generation else b"d", Drop.of_row)


def _at(store: PageStore, url: int) -> Record | None:
    """Return the page at a hash of a URL."""
    seen = store.value(b"u" + url.to_bytes(8, "big"))
    return store.record(unpack_seen(seen)[0] if seen else 0)
