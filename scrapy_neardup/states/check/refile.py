"""Filing the readable rows of a damaged state into a new one."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

from scrapy_neardup.judging.judgements import Opinion
from scrapy_neardup.states.check.crosscheck import unpacked
from scrapy_neardup.states.check.salvage import Salvage
from scrapy_neardup.states.kept_rows import KEPT, KeptRows
from scrapy_neardup.states.members import Ids, column
from scrapy_neardup.states.reading import Watch, unwatched
from scrapy_neardup.stores import Evidence, Record, Store
from scrapy_neardup.stores.changes import Changes, Row
from scrapy_neardup.stores.counts import Counts
from scrapy_neardup.stores.former import KEY as FORMER
from scrapy_neardup.stores.former import former_problem, unpack_former
from scrapy_neardup.stores.layout import (
    body_key,
    evidence_key,
    last_id,
    pack_id,
    pack_seen,
    record_key,
    unpack_block,
    unpack_seen,
    url_key,
)
from scrapy_neardup.stores.postings import is_posting, pairs

#: Rows that are written in one batch.
_BATCH = 20_000
#: Lengths of the keys of pages, of URLs' values and of postings.
_ID_KEY, _SEEN, _PAIR = 9, 12, 17


@dataclass(frozen=True, slots=True)
class Refiled:
    """What was saved and what was not.

    ``broken``: records that were read, but are not whole, or have another URL than the one that names them.
    ``named``: pages that other rows name and that are not there. ``unsealed``: pages of a crawl that was killed, left
    out as an opening would have taken them back. ``replaced``: earlier versions of a URL. ``gaps``: ranges of rows that
    cannot be read.
    """

    pages: int
    evidence: int
    blocks: int
    broken: int
    named: int
    unsealed: int
    replaced: int
    gaps: int


def refile(salvage: Salvage, store: Store, watch: Watch = unwatched) -> Refiled:
    """File every readable record in an empty store, with postings and URLs made from the records."""
    filing = _Filing(salvage, store)
    filing.take_records(watch)
    evidence = filing.take_evidence(watch)
    blocks = filing.take_blocks()
    filing.take_former(watch)
    filing.take_kept()
    return Refiled(
        store.pages, evidence, blocks, filing.broken, filing.named, len(filing.unsealed), filing.replaced, salvage.gaps
    )


class _Filing:
    def __init__(self, salvage: Salvage, store: Store) -> None:
        self._salvage = salvage
        self._store = store
        self._changes = Changes()
        self._waiting = 0
        self.unsealed = {last_id(key) for key, _ in salvage.rows(b"j") if len(key) == _PAIR}
        self.broken = self.replaced = self.named = 0
        #: Pages that URLs name, by id; the hash of each URL, and when it was last seen, in seconds since 1970.
        self._ids, self._urls, self._seen = self._read_urls()

    def _read_urls(self) -> tuple[array[int], array[int], array[int]]:
        ids, urls, seconds = array("Q"), array("Q"), array("Q")
        for key, seen in self._salvage.rows(b"u"):
            if len(key) == _ID_KEY and len(seen) == _SEEN:
                id, when = unpack_seen(seen)
                ids.append(id)
                urls.append(last_id(key))
                seconds.append(when)
        order = np.argsort(column(ids))
        by_id = (array("Q", column(one)[order].tobytes()) for one in (ids, urls, seconds))
        return next(by_id), next(by_id), next(by_id)

    def take_records(self, watch: Watch) -> None:
        saved = array("Q")
        for key, packed in watch(self._rows(b"r", saved)):
            record = unpacked(key, packed)
            if record is None or self._is_of_another_url(record):
                self.broken += 1
                continue
            saved.append(record.id)
            if record.id not in self.unsealed:
                self._file(record)
        self._flush()
        self.named = len(np.setdiff1d(self._expected(), column(saved)))

    def _rows(self, prefix: bytes, taken: array[int]) -> Iterator[Row]:
        """The readable rows of pages; where there are gaps, those that other rows name are asked for one by one."""
        gaps = self._salvage.gaps
        yield from self._salvage.rows(prefix)
        if self._salvage.gaps > gaps:
            missing = np.setdiff1d(self._expected(), column(taken))
            yield from self._salvage.look_up(prefix + id.to_bytes(8, "big") for id in missing.tolist())

    def _expected(self) -> Ids:
        """Ids of pages that URLs name, and keys where there are gaps."""
        ids = column(self._ids)
        if self._salvage.gaps:
            filed = array("Q", self._filed())
            ids = np.union1d(ids, column(filed))
        return ids

    def _filed(self) -> Iterator[int]:
        for row in self._salvage.rows(b"k"):
            if is_posting(row):
                yield from (id for _, id in pairs(row))

    def _file(self, record: Record) -> None:
        url = url_key(record.url, self._store.hashes)
        if url in self._changes.puts or self._store.value(url) is not None:
            self._flush()
            earlier = self._store.find(record.url)
            if earlier is not None:  # else two URLs have one hash
                self.replaced += 1
                if earlier.id > record.id:
                    return
                self._store.forget([earlier.id])
        self._store.file_postings(record, self._changes)
        self._changes.put(record_key(record.id), record.pack(self._store.width))
        if record.is_found_by_body:
            self._changes.put(body_key(record.body), pack_id(record.id))
        self._changes.put(url, pack_seen(record.id, self._last_seen(record)))
        self._waiting += 1
        if len(self._changes.puts) >= _BATCH:
            self._flush()

    def _last_seen(self, record: Record) -> float:
        at = self._place(record.id)
        return record.first_seen if at is None else self._seen[at]

    def _is_of_another_url(self, record: Record) -> bool:
        """Whether the URL in a record is not the one that names it."""
        at = self._place(record.id)
        return at is not None and self._urls[at] != last_id(url_key(record.url, self._store.hashes))

    def _place(self, id: int) -> int | None:
        at = bisect_left(self._ids, id)
        return at if at < len(self._ids) and self._ids[at] == id else None

    def take_evidence(self, watch: Watch) -> int:
        taken = array("Q")
        for key, packed in watch(self._rows(b"e", taken), what="rows of evidence"):
            if len(key) != _ID_KEY or self._store.value(record_key(last_id(key))) is None:
                continue
            try:
                Evidence.unpack(packed)
            except ValueError:
                continue
            taken.append(last_id(key))
            self._changes.put(evidence_key(last_id(key)), packed)
            if len(self._changes.puts) >= _BATCH:
                self._flush()
        self._flush()
        return len(taken)

    def take_former(self, watch: Watch) -> None:
        """The former recipes, and the sketches by them: a page that comes again is known by these to be unchanged."""
        packed = dict(self._salvage.look_up([FORMER])).get(FORMER)
        try:
            recipes = len(unpack_former(packed)) if packed is not None else 0
        except ValueError:
            return
        if packed is None or not recipes:
            return
        self._changes.put(FORMER, packed)
        for key, sketch in watch(self._rows(b"o", array("Q")), what="former sketches"):
            record = None if former_problem(key, sketch, recipes) else self._store.record(last_id(key))
            if record is not None and record.former:
                self._changes.put(key, sketch)
                if len(self._changes.puts) >= _BATCH:
                    self._flush()
        self._flush()

    def take_blocks(self) -> int:
        counts, blocks = Counts(), 0
        for key, packed in self._salvage.rows(b"b"):
            try:
                counts.load(unpack_block(key), packed)
            except ValueError:
                continue
            self._changes.put(key, packed)
            blocks += 1
        self._flush()
        return blocks

    def take_kept(self) -> None:
        judgements = KeptRows(b"n", "judgement", partial(Opinion.of_row, hashes=self._store.hashes))
        for kept in (*KEPT, judgements):
            for key, packed in self._salvage.rows(kept.prefix):
                with suppress(ValueError):
                    kept.unpack(key, packed)
                    self._changes.put(key, packed)
        self._flush()

    def _flush(self) -> None:
        if self._changes.puts:
            self._store.write(self._changes)
        self._store.pages += self._waiting
        self._changes, self._waiting = Changes(), 0
