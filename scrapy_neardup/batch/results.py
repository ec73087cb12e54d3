"""The results of a run: verdicts, the records that are kept, and a state with which a crawl goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.local import rows_of
from scrapy_neardup.batch.pages import StoredPage, decode, rank_of, record_batch, stored_pages
from scrapy_neardup.batch.part import EVERYWHERE, FORM, FORMED, HERE, unpack_verdict
from scrapy_neardup.batch.routing import Topic
from scrapy_neardup.batch.runs import ArchivePart, BatchRun
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.files.writers import Writer
from scrapy_neardup.judge.copies import count_sentences
from scrapy_neardup.judge.records import output_fields
from scrapy_neardup.model import Verdict
from scrapy_neardup.state.evidence import Keep, evidence
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Record

#: The verdicts of a run. ``input`` and ``record`` (from 0) say where a page stood; the rest is as in a tag, without the
#: time.
VERDICTS = pa.schema(
    [
        ("input", pa.string()),
        ("record", pa.uint32()),
        *((name, pa.string()) for name in ("url", "verdict", "kind", "reason", "reader")),
        *((name, pa.string()) for name in ("similar_id", "original", "like")),
        ("similarity", pa.float64()),
        ("containment", pa.float64()),
        ("shared", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """A page of a run with its verdict. ``counted``: flags, see ``part``. Ids are ranks."""

    stored: StoredPage
    verdict: Verdict
    counted: int


def judged_records(parts: Iterable[ArchivePart]) -> Iterator[JudgedRecord]:
    """Return the pages of parts and their verdicts."""
    for part in parts:
        rows = rows_of(part, Topic.VERDICT)
        verdicts = zip(rows["source"].to_pylist(), rows["payload"].to_pylist(), rows["count"].to_pylist(), strict=True)
        for stored in chain.from_iterable(map(stored_pages, part.batches())):
            rank, packed, counted = next(verdicts)
            assert rank == stored.rank
            page = stored.page
            yield JudgedRecord(stored, unpack_verdict(rank, page.url, page.reader, packed), counted)


def write_verdicts(run: BatchRun, path: Path, see: Callable[[Verdict], None] = lambda verdict: None) -> None:
    """Write VERDICTS to a parquet file; ``see`` gets each verdict."""
    with replace_file(path) as draft, pq.ParquetWriter(draft, VERDICTS, compression="zstd") as writer:
        for part in run.own_parts:
            packed = chain.from_iterable(rows_of(part, Topic.VERDICT)["payload"].chunks)
            for batch in part.batches(("rank", "url", "reader"), 10_000):
                rows = list[tuple[Any, ...]]()
                columns = (batch.column(name).to_pylist() for name in ("rank", "url", "reader"))
                for rank, url, reader in zip(*columns, strict=True):
                    verdict = unpack_verdict(rank, decode(url), decode(reader), next(packed).as_py())
                    see(verdict)
                    rows.append(_row(run, rank, verdict))
                writer.write_batch(record_batch(rows, VERDICTS))


def _row(run: BatchRun, rank: int, verdict: Verdict) -> tuple[Any, ...]:
    """Return the values of a row of VERDICTS."""
    tag = verdict.as_tag()
    tag["input"], tag["record"] = run.place_of(rank)
    tag["url"], tag["shared"] = _valid(verdict.url), [_valid(one) for one in tag["shared"]]
    names = {name: _valid(tag[name]) for name in ("original", "like") if tag[name]}
    tag |= names
    return tuple([tag[name] for name in VERDICTS.names])


def _valid(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def write_kept(run: BatchRun, out: Writer, passes: Callable[[Verdict], bool]) -> int:
    """Write the records whose verdict passes, as ``dedup`` does; return how many. The inputs are read once more."""
    written = 0
    judged = judged_records(run.own_parts)
    one = next(judged, None)
    for input, name in enumerate(run.inputs, run.first_input):
        for rank, entry in _entries(input, name, run.options.format):
            if one is None or one.stored.rank != rank:
                raise NearDupError(f"{name} has changed since it was read. Remove {run.folder}, and run again.")
            if passes(one.verdict):
                out.write(output_fields(entry, one.stored.page), None, entry.line)
                written += 1
            one = next(judged, None)
    return written


def _entries(input: int, name: str, format: str) -> Iterator[tuple[int, Entry]]:
    try:
        for number, entry in enumerate(read_input(name, format)):
            if isinstance(entry, Entry):
                yield rank_of(input, number), entry
    except NearDupError:  # the run has it among its rejects
        return


def export_state(run: BatchRun, store: PageStore, keep: Keep) -> int:
    """Write all pages of a run and of those before it to an empty state; return how many. They are sealed at the end.

    Counts are those of a crawl, of fixed size. Pages of a later crawl are judged by them.
    """
    generation = store.begin(f"batch {run.folder}")
    ids = _Ids(run.parts, store.new_id())
    for part in run.parts:
        rows = rows_of(part, Topic.RECORD)
        columns = (rows[name].to_pylist() for name in ("source", "hash", "count", "payload"))
        written = {rank: about for rank, *about in zip(*columns, strict=True)}
        for judged in judged_records([part]):
            if judged.stored.rank in written:
                _export(judged, written[judged.stored.rank], ids, store, generation, keep)
            _count(judged, store)
    store.seal(generation, store.unsealed(generation))
    store.end(generation)
    return store.pages


class _Ids:
    """The ids of pages in a state, in the order of their ranks."""

    def __init__(self, parts: Sequence[ArchivePart], first: int) -> None:
        self._ranks = np.concatenate(
            [rows_of(part, Topic.RECORD)["source"].to_numpy() for part in parts] or [np.zeros(0)]
        )
        self._first = first

    def of(self, rank: int) -> int:
        """Return the id for a rank; 0 for none."""
        return self._first + (int(np.searchsorted(self._ranks, rank)) << 16) if rank else 0


def _export(
    judged: JudgedRecord, about: Sequence[Any], ids: _Ids, store: PageStore, generation: int, keep: Keep
) -> None:
    rank, replaces, packed = about
    record = Record.unpack(rank, packed)
    moved = replace(record, id=ids.of(rank), original=ids.of(record.original), since=ids.of(record.since))
    if rank != judged.stored.rank:  # a page that was dropped again renews its record
        known = store.record(moved.id)
        if known is not None:
            store.touch(known, renewed=moved)
        return
    verdict, match = judged.verdict, judged.verdict.match
    if match is not None:
        match = replace(match, id=ids.of(match.id))
    is_copy = record.original != record.id
    kept = evidence(judged.stored.page, verdict.likeness, match, copy=is_copy, keep=keep)
    store.add(moved, kept, generation=generation, replaces=ids.of(replaces))


def _count(judged: JudgedRecord, store: PageStore) -> None:
    page, made, counted = judged.stored.page, judged.stored.fingerprint, judged.counted
    if counted & FORMED:
        store.note_form(page.site, in_form=bool(counted & FORM))
    if counted & HERE and made is not None:
        count_sentences(store, page.url, page.site, made, everywhere=bool(counted & EVERYWHERE))
