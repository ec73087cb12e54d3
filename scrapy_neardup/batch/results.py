"""The results of a run: verdicts, the records that are kept, and a state with which a crawl goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.pages import stored_pages
from scrapy_neardup.batch.rows import is_among, make_column, make_table, numbers
from scrapy_neardup.batch.runs import (
    EVERYWHERE,
    FORM,
    FORMED,
    HERE,
    TAG,
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
from scrapy_neardup.model import Fingerprint, Kind, Match, Outcome, Page, Verdict
from scrapy_neardup.state.boilerplate import Sentences
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep, Record, evidence

#: The verdicts of a run. ``input`` and ``record`` (from 0) say where a page stood.
VERDICTS = pa.schema([("input", pa.string()), ("record", pa.uint32()), ("url", pa.string()), *TAG])
#: The tag of a page like no other, but for its reader and its id.
_UNIQUE = make_table([["unique"], *[[None]] * 8, [[]]], TAG)
_NULL, _NONE = pa.scalar(None, pa.string()), VERDICTS.empty_table()


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
    judged = {row["rank"]: row for row in part.results().to_pylist()}
    for batch in part.batches():
        columns = stored_pages(batch), *(batch[name].to_pylist() for name in ("rank", "keys", "sketch"))
        for (page, *_), rank, keys, sketch, sentences in zip(*columns, batch["sentences"], strict=True):
            members: Sentences = numbers(sentences.values)
            row = judged.get(rank)
            if row is None:
                verdict = Verdict(Outcome.UNIQUE, page.url, rank, reader=page.reader)
                flags = FORMED | (HERE | EVERYWHERE) * (len(members) > 0)
                yield ArchivedPage(rank, page, verdict, members, flags, 0, new_record(rank, page.url, keys, sketch))
            else:
                record = None if row["record"] is None else Record.unpack(row["id"], row["record"])
                yield ArchivedPage(rank, page, _verdict(page, row), members, row["flags"], row["replaces"], record)


def _verdict(page: Page, row: dict[str, Any]) -> Verdict:
    """Return a verdict of JUDGED. Its match has no time."""
    url, match = row["original"] or row["like"], None
    if row["match"]:
        match = Match(row["match"], url, 0.0, row["similarity"], row["containment"], tuple(row["shared"]))
    kind, outcome = row["kind"] and Kind(row["kind"]), Outcome(row["verdict"])
    return Verdict(outcome, page.url, row["rank"], match, row["reason"] or "", kind, row["reader"] or "")


def write_verdicts(run: BatchRun, path: Path) -> Iterable[Counter[str]]:
    """Write VERDICTS to a parquet file; return the number of each verdict, of each kind and of each reason."""
    names = make_column(run.inputs, pa.string())
    counts = {name: Counter[str]() for name in ("verdict", "kind", "reason")}
    with replace_file(path) as draft, pq.ParquetWriter(draft, VERDICTS, compression="zstd") as writer:
        for part in run.own_parts:
            judged = part.results()
            known = numbers(judged["rank"])
            tags, tables = pa.concat_tables([judged.select(TAG.names), _UNIQUE]).combine_chunks(), [_NONE]
            for batch in part.batches(("rank", "url", "reader")):
                ranks, reader = numbers(batch["rank"]), _text(batch["reader"])
                is_known = is_among(ranks, known)
                found = tags.take(pa.array(np.where(is_known, np.searchsorted(known, ranks), len(known))))
                ids = pa.array([f"{rank:016x}" for rank in ranks.tolist()], pa.string())
                own = {"reader": pc.if_else(pc.equal(reader, ""), _NULL, reader), "similar_id": ids}
                for name, values in own.items():
                    column = pc.if_else(pa.array(is_known), found[name], values)
                    found = found.set_column(TAG.get_field_index(name), name, column)
                inputs, records = run.places_of(ranks)
                places = names.take(pa.array(inputs)), pa.array(records.astype(np.uint32)), _text(batch["url"])
                tables.append(pa.table([*places, *found.columns], VERDICTS))
            verdicts = pa.concat_tables(tables)
            writer.write_table(verdicts)
            for name, counted in counts.items():
                found = verdicts[name].drop_null().value_counts()
                counted.update(dict(zip(*(found.field(at).to_pylist() for at in (0, 1)), strict=True)))
    return counts.values()


def _text(packed: pa.Array) -> pa.Array:
    """Return strings of PAGES; lone surrogates are escaped."""
    try:
        return packed.cast(pa.string())
    except pa.ArrowInvalid:
        return make_column([*map(decode, packed.to_pylist())], pa.string())


def write_kept(run: BatchRun, out: Writer, passes: Callable[[Verdict], bool]) -> int:
    """Write the records that pass, as ``dedup`` does; return how many. The inputs are read once more.

    Raises NearDupError if they hold other records by now.
    """
    written = 0
    for entry, judged in zip_longest(_entries(run), chain.from_iterable(map(judged_pages, run.own_parts))):
        if entry is None or judged is None or entry[0] != judged.rank:
            rank = entry[0] if entry else judged.rank
            name = run.inputs[run.places_of(rank)[0]]
            raise NearDupError(f"{name} has changed since it was read. Remove {run.folder}, and run again.")
        if passes(judged.verdict):
            out.write(output_fields(entry[1], judged.page), None, entry[1].line)
            written += 1
    return written


def _entries(run: BatchRun) -> Iterator[tuple[int, Entry]]:
    for input, name in enumerate(run.inputs, run.first_input):
        with suppress(NearDupError):  # the run has it among its rejects
            for number, entry in enumerate(read_input(name)):
                if isinstance(entry, Entry):
                    yield rank_of(input, number), entry


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
