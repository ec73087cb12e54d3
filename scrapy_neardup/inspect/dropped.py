"""The dropped pages of a state, with their originals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scrapy_neardup.inspect import HIDDEN, kind_and_title, utc_time
from scrapy_neardup.judge.drops import Drop
from scrapy_neardup.judge.manual_verdicts import ManualKind, find_manual_verdict
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.state.layout import drops_prefix, last_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record


@dataclass(frozen=True, slots=True)
class Dropped:
    """A dropped page as the state knows it now: its original, and the crawl that dropped it.

    ``url``, ``original``, ``record``: None if the page was forgotten or rolled back. ``judged``: the manual verdict.
    """

    url: str | None
    title: str | None
    original: str | None
    kind: str | None
    similarity: float
    when: str | None
    crawl: str | None
    begun: str | None
    judged: str | None
    drop: Drop = field(metadata=HIDDEN)
    record: Record | None = field(metadata=HIDDEN)

    @property
    def came_since(self) -> bool:
        """Whether a person kept the page, and it passed in a later crawl."""
        record, is_kept = self.record, self.judged == ManualKind.KEEP.value
        return is_kept and record is not None and record.original == record.id > self.drop.id


def dropped(store: PageStore, generation: int = 0) -> Iterator[Dropped]:
    """Yield the drops of a crawl in their order; without ``generation`` those of all crawls.

    Raises StoreDamaged.
    """
    crawls = {crawl.generation: crawl.who for crawl in CRAWLS.read(store)}
    for drop in _drops(store, generation):
        record, original = _at(store, drop.page), _at(store, drop.original)
        given = find_manual_verdict(store, record.url) if record is not None else None
        yield Dropped(
            url=record.url if record else None,
            title=kind_and_title(store.evidence(record.id))[1] if record else None,
            original=original.url if original else None,
            kind=drop.likeness or None,
            similarity=round(drop.similarity, 4),
            when=utc_time(drop.id / 1e9),
            crawl=crawls.get(drop.generation),
            begun=utc_time(drop.generation / 1e9),
            judged=given.kind.value if given else None,
            drop=drop,
            record=record,
        )


def originals_of(store: PageStore, records: Sequence[Record]) -> list[Record | None]:
    """Return the page that each record was dropped for: its original, or that of its last drop; None if unknown."""
    last: dict[int, int] = {}
    if any(record.original == record.id for record in records):
        last = {drop.page: drop.original for drop in _drops(store)}
    return [
        store.record(record.original)
        if record.original != record.id
        else _at(store, last.get(last_id(url_key(record.url, store.hashes)), 0))
        for record in records
    ]


def _drops(store: PageStore, generation: int = 0) -> Iterator[Drop]:
    return store.unpacked(drops_prefix(generation) if generation else b"d", Drop.of_row)


def _at(store: PageStore, url: int) -> Record | None:
    """Return the page at a hash of a URL."""
    seen = store.value(b"u" + url.to_bytes(8, "big"))
    return store.record(unpack_seen(seen)[0] if seen else 0)
