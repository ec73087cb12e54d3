"""The results of a run: verdicts, the records that are kept, and a state with which a crawl goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.pages import stored_pages
from scrapy_neardup.batch.part import unpack_verdict
from scrapy_neardup.batch.rows import make_table, numbers
from scrapy_neardup.batch.runs import (
    EVERYWHERE,
    FORM,
    FORMED,
    HERE,
    ArchivePart,
    BatchRun,
    decode,
    new_record,
    rank_of,
)
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.files.writers import Writer
from scrapy_neardup.judge.records import output_fields
from scrapy_neardup.judge.rules import count_sentences
from scrapy_neardup.model import Fingerprint, Outcome, Page, Verdict
from scrapy_neardup.state.boilerplate import Sentences
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record, evidence

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
_OF_TAG = itemgetter(*VERDICTS.names[3:])
#: The verdict on a page like no other, and its tag.
_UNIQUE = Verdict(Outcome.UNIQUE, "")
_TAG = _OF_TAG(_UNIQUE.as_tag())


class ArchivedPage(NamedTuple):
    """A page of a run with its verdict, its sentences, and what it wrote: see ``JUDGED``. Ids are ranks."""

    rank: int
    page: Page
    verdict: Verdict
    sentences: Sentences
    flags: int
    replaces: int
    record: Record | None


def judged_pages(part: ArchivePart) -> Iterator[ArchivedPage]:
    """Return the pages of a part with their verdicts."""
    judged = {rank: row for rank, *row in _rows(part.judged_pages())}
    for batch in part.batches():
        others = _rows(batch.select(["rank", "keys", "sketch"]))
        for (page, _), (rank, keys, sketch), sentences in zip(
            stored_pages(batch), others, batch["sentences"], strict=True
        ):
            members: Sentences = numbers(sentences.values)
            if rank in judged:
                flags, packed, id, replaces, written = judged[rank]
                record = None if written is None else Record.unpack(id, written)
            else:
                flags, packed, replaces = FORMED | (HERE | EVERYWHERE) * (len(members) > 0), b"", 0
                record = new_record(rank, page.url, keys, sketch)
            verdict = unpack_verdict(rank, page.url, page.reader, packed)
            yield ArchivedPage(rank, page, verdict, members, flags, replaces, record)


def _rows(batch: pa.RecordBatch | pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def write_verdicts(run: BatchRun, path: Path, see: Callable[[Verdict], None] = lambda verdict: None) -> None:
    """Write VERDICTS to a parquet file; ``see`` gets each verdict."""
    with replace_file(path) as draft, pq.ParquetWriter(draft, VERDICTS, compression="zstd") as writer:
        for part in run.own_parts:
            judged = dict(_rows(part.judged_pages().select(["rank", "verdict"])))
            for batch in part.batches(("rank", "url", "reader")):
                rows = list[tuple[Any, ...]]()
                for rank, packed_url, reader in _rows(batch):
                    url = decode(packed_url)
                    if packed := judged.get(rank):
                        verdict = unpack_verdict(rank, url, decode(reader), packed)
                        tag = _OF_TAG(verdict.as_tag())
                    else:  # as above, in a tenth of the time
                        verdict, tag = _UNIQUE, (*_TAG[:3], decode(reader) or None, f"{rank:016x}", *_TAG[5:])
                    see(verdict)
                    rows.append((*run.place_of(rank), url, *tag))
                writer.write_table(make_table(zip(*rows, strict=True), VERDICTS))


def write_kept(run: BatchRun, out: Writer, passes: Callable[[Verdict], bool]) -> int:
    """Write the records that pass, as ``dedup`` does; return how many. The inputs are read once more.

    Raises NearDupError if they hold other records by now.
    """
    written = 0
    judged = chain.from_iterable(map(judged_pages, run.own_parts))
    for input, name in enumerate(run.inputs, run.first_input):
        for rank, entry in _entries(input, name, run.options.format):
            one = next(judged, None)
            if one is None or one.rank != rank:
                raise _changed(run, name)
            if passes(one.verdict):
                out.write(output_fields(entry, one.page), None, entry.line)
                written += 1
    if (one := next(judged, None)) is not None:
        raise _changed(run, run.place_of(one.rank)[0])
    return written


def _changed(run: BatchRun, name: str) -> NearDupError:
    return NearDupError(f"{name} has changed since it was read. Remove {run.folder}, and run again.")


def _entries(input: int, name: str, format: str) -> Iterator[tuple[int, Entry]]:
    try:
        for number, entry in enumerate(read_input(name, format)):
            if isinstance(entry, Entry):
                yield rank_of(input, number), entry
    except NearDupError:  # the run has it among its rejects
        return


def export_state(run: BatchRun, store: PageStore, keep: Keep) -> int:
    """Write all pages of this and earlier runs to an empty state; return how many. They are sealed at the end.

    Later pages are judged by the counts of a crawl, so the state gets these, of fixed size. Raises NearDupError if it
    holds pages: they would be there twice.
    """
    if store.pages:
        raise NearDupError(f"{store.location} already holds {store.pages} pages. Name a new state with --store.")
    generation = store.journal.begin(f"batch {run.folder}")
    batches = (batch for part in run.parts for batch in part.batches(("rank",)))
    ranks = np.concatenate([np.zeros(0, np.int64), *(numbers(batch["rank"]) for batch in batches)])
    first = store.new_id()

    def id_of(rank: int) -> int:
        return first + (int(np.searchsorted(ranks, rank)) << 16) if rank else 0

    for judged in chain.from_iterable(map(judged_pages, run.parts)):
        if judged.record is not None:
            _export(judged, judged.record, id_of, store, generation, keep)
        page, flags = judged.page, judged.flags
        if flags & FORMED:
            store.note_form(page.site, in_form=bool(flags & FORM))
        if flags & HERE:
            made = Fingerprint((), b"", judged.sentences)
            count_sentences(store, page.url, page.site, made, everywhere=bool(flags & EVERYWHERE))
    store.journal.seal(generation, store.journal.unsealed(generation))
    store.journal.end(generation)
    return store.pages


def _export(
    judged: ArchivedPage, record: Record, id_of: Callable[[int], int], store: PageStore, generation: int, keep: Keep
) -> None:
    moved = replace(record, id=id_of(record.id), original=id_of(record.original), since=id_of(record.since))
    if record.id != judged.rank:  # a page that was dropped again renews its record
        known = store.record(moved.id)
        if known is not None:
            store.touch(known, renewed=moved)
        return
    verdict, match = judged.verdict, judged.verdict.match
    if match is not None:
        match = replace(match, id=id_of(match.id))
    is_copy = record.original != record.id
    kept = evidence(judged.page, verdict.kind, match, copy=is_copy, keep=keep)
    store.add(moved, kept, generation=generation, replaces=id_of(judged.replaces))
