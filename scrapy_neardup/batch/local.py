"""Run the stages on this machine: tables on disk, a few parts in memory, all cores.

A run is a folder. ``run.json`` says what is judged, and how. ``pages`` holds PAGES in files of consecutive ranks, and
``rows`` what each part left behind, with the digest of the rows that it was given. A file is written completely or not
at all, and any mixture of files is a legal state of the rounds. So a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from itertools import chain, groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.judging import judge_part
from scrapy_neardup.batch.pages import BatchOptions, InputReader, ReadRecord, tabulate
from scrapy_neardup.batch.routing import answer, attach, needed_records
from scrapy_neardup.batch.tables import GIVEN, NEEDED, PAGES, RECORD_BITS, ROWS, Topic
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Malformed, Skipped

#: Slices of the hashes; one of all parts is in memory at once.
_SLICES = 64
#: Batches of a file of rows: one of each slice, then records, then verdicts.
_RECORDS, _VERDICTS = _SLICES, _SLICES + 1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 250_000_000, 12_000
#: Pages of a part at most: more would not save anything.
_MOST_PAGES = 50_000


@dataclass(frozen=True, slots=True)
class Part:
    """A part: its number, the rank of its first page, and the files with its pages."""

    number: int
    first: int
    files: tuple[Path, ...]
    #: What it left behind.
    rows: Path


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many processes work at once, and how many pages a part has."""

    processes: int
    pages: int

    @classmethod
    def fitting(cls, memory: int, processes: int) -> Sizes:
        """Return sizes for so many bytes of memory. Raises NearDupError if that is too little."""
        if memory < 2 * _PROCESS:
            raise NearDupError(f"--memory {memory:,} is too little. Give {2 * _PROCESS // 10**6} MB or more.")
        processes = max(1, min(processes, memory // _PROCESS - 1))
        free = memory // (processes + 1) - _PROCESS
        return cls(processes, max(1000, min(_MOST_PAGES, free // _PAGE)))


class LocalRun:
    """A run in a folder, perhaps one that was begun before.

    ``earlier``: the parts of the run before it, with the number of its last input. ``inform`` gets sentences on the
    progress.
    """

    def __init__(
        self,
        folder: Path,
        options: BatchOptions,
        inputs: Sequence[str],
        sizes: Sizes,
        *,
        previous: LocalRun | None = None,
        inform: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder = folder
        self.options = options
        self.inputs = inputs
        self.previous = previous
        self.first_input: int = previous.first_input + len(previous.inputs) if previous else 1
        self._sizes = sizes
        self._inform = inform
        self._strides = -(-sizes.processes // max(1, len(inputs)))

    @property
    def parts(self) -> list[Part]:
        """All parts, those of earlier runs first."""
        earlier = self.previous.parts if self.previous else []
        return [*earlier, *self._own_parts(len(earlier))]

    def _own_parts(self, first: int) -> list[Part]:
        groups: list[list[Path]] = []
        size = 0
        for file in sorted(self.folder.glob("pages/[0-9]*.parquet")):
            pages = pq.read_metadata(file).num_rows
            if not groups or size + pages > self._sizes.pages:
                groups.append([])
                size = 0
            groups[-1].append(file)
            size += pages
        return [
            Part(number, _first_rank(files[0]), tuple(files), self.folder / "rows" / f"{number:06}.arrow")
            for number, files in enumerate(groups, first)
        ]

    def run(self) -> None:
        """Do what is left to do. Raises NearDupError."""
        for name in ("pages", "rows"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        context = get_context("spawn")
        with ProcessPoolExecutor(self._sizes.processes, context) as pool:
            try:
                self._read(pool)
                self._judge(pool)
            except BrokenProcessPool:
                raise NearDupError(
                    "A process of the run was killed, perhaps because memory ran out. Run the command again with a "
                    "lower --memory: it goes on where it was."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    def _read(self, pool: ProcessPoolExecutor) -> None:
        tasks = [
            (number, name, stride)
            for number, name in enumerate(self.inputs, self.first_input)
            for stride in range(self._strides)
            if not self._marker(number, stride).exists()
        ]
        read = partial(_read_input, self.options, self.folder, self._sizes.pages, self._strides)
        done = 0
        for records in pool.map(read, tasks):
            done += records
            self._inform(f"{done:,} records read")

    def _marker(self, number: int, stride: int) -> Path:
        return self.folder / "pages" / f"{number:06}-{stride:03}.json"

    def _judge(self, pool: ProcessPoolExecutor) -> None:
        parts = self.parts
        own = [part for part in parts if part.rows.parent.parent == self.folder]
        common = self.options.make_method().common
        shuffle = self.folder / "shuffle"
        rounds, changed = 0, True
        while changed:
            shutil.rmtree(shuffle, ignore_errors=True)
            shuffle.mkdir()
            list(pool.map(partial(_answer_slice, shuffle, parts, common), range(_SLICES)))
            list(pool.map(partial(_send_records, shuffle, len(parts)), parts))
            found = list(pool.map(partial(_judge_part, shuffle, self.options, parts), own))
            rounds, changed = rounds + 1, any(found)
            self._inform(f"round {rounds}: {sum(found)} of {len(own)} parts judged")
        shutil.rmtree(shuffle)


# The first stage.


def _read_input(options: BatchOptions, folder: Path, pages: int, strides: int, task: tuple[int, str, int]) -> int:
    """Read every ``strides``-th group of records of an input; return how many these are."""
    number, name, stride = task
    count, skipped = 0, dict[str, int]()
    with closing(InputReader(options)) as reader:
        records = reader.read(number, name, lambda record: record // pages % strides == stride)
        for group, members in groupby(records, lambda one: (one.rank & ((1 << RECORD_BITS) - 1)) // pages):
            counted = _Counted(members)
            _write_pages(folder / "pages" / f"{number:06}-{group:09}", tabulate(counted, options), counted)
            count += counted.count
            skipped = {why: skipped.get(why, 0) + counted.skipped.get(why, 0) for why in {**skipped, **counted.skipped}}
    marker = folder / "pages" / f"{number:06}-{stride:03}.json"
    with replace_file(marker) as draft:
        draft.write_text(json.dumps({"records": count, "skipped": skipped}))
    return count


class _Counted:
    """Records, counted on their way; malformed ones are set apart."""

    def __init__(self, records: Iterable[ReadRecord]) -> None:
        self._records = records
        self.count = 0
        self.skipped: dict[str, int] = {}
        self.malformed: list[Malformed] = []

    def __iter__(self) -> Iterator[ReadRecord]:
        for record in self._records:
            entry = record.entry
            if isinstance(entry, Malformed):
                self.malformed.append(entry)
            elif isinstance(entry, Skipped):
                self.skipped[entry.why] = self.skipped.get(entry.why, 0) + 1
            else:
                self.count += 1
            yield record


def _write_pages(path: Path, batches: Iterable[pa.RecordBatch], counted: _Counted) -> None:
    batches = iter(batches)
    first = next(batches, None)
    if first is not None:
        with (
            replace_file(path.with_suffix(".parquet")) as draft,
            pq.ParquetWriter(draft, PAGES, compression="zstd") as writer,
        ):
            for batch in chain([first], batches):
                writer.write_batch(batch)
    if counted.malformed:
        with replace_file(path.with_suffix(".rejects")) as draft, draft.open("w", encoding="utf-8") as file:
            for one in counted.malformed:
                record = one.raw.decode("utf-8", "backslashreplace")
                line = {"place": one.place, "why": one.why, "record": record}
                file.write(json.dumps(line) + "\n")


def _first_rank(file: Path) -> int:
    rank: int = pq.ParquetFile(file).read_row_group(0, ["rank"])["rank"][0].as_py()
    return rank


# Rounds. Files of the shuffle have a batch for each part that gets it.


def _answer_slice(shuffle: Path, parts: Sequence[Part], common: int, slice: int) -> None:
    """Answer what parts ask for with hashes of one slice."""
    rows = pa.Table.from_batches([_batch(part.rows, slice) for part in parts if part.rows.exists()], ROWS)
    given = answer(rows, common)
    counts = given.filter(pc.is_in(given["kind"], pa.array([Topic.COUNT, Topic.BITS], pa.uint8())))
    _write_by(shuffle / f"counts-{slice:03}", counts, counts["part"].to_numpy(), len(parts))
    needed = needed_records(given)
    firsts = np.array([part.first for part in parts], np.uint64)
    sources = np.searchsorted(firsts, needed["source"].to_numpy(), "right") - 1
    _write_by(shuffle / f"needed-{slice:03}", needed, sources, len(parts))


def _send_records(shuffle: Path, count: int, part: Part) -> None:
    """Send the records of a part to the parts that need them."""
    needed = pa.Table.from_batches([_batch(file, part.number) for file in sorted(shuffle.glob("needed-*"))], NEEDED)
    needed = needed.group_by(["part", "source"]).aggregate([])
    sent = GIVEN.empty_table()
    if len(needed):
        sent = attach(pa.Table.from_batches([_batch(part.rows, _RECORDS)]), needed)
    _write_by(shuffle / f"records-{part.number:06}", sent, sent["part"].to_numpy(), count)


def _judge_part(shuffle: Path, options: BatchOptions, parts: Sequence[Part], part: Part) -> bool:
    """Judge a part unless it was judged with the same given rows; return whether it was judged."""
    files = [*shuffle.glob("counts-*"), *(shuffle / f"records-{one.number:06}" for one in parts[: part.number])]
    given = pa.Table.from_batches([_batch(file, part.number) for file in files], GIVEN)
    given = given.sort_by([(name, "ascending") for name in ("kind", "hash", "source")]).combine_chunks()
    digest = _digest(given)
    if part.rows.exists() and _digest_of(part.rows) == digest:
        return False
    batches = (batch for file in part.files for batch in pq.ParquetFile(file).iter_batches(1000))
    rows = judge_part(options, part.number, batches, given)
    slices = (rows["hash"].to_numpy() * _ODD >> np.uint64(64 - _SLICES.bit_length() + 1)).astype(np.int64)
    kinds = rows["kind"].to_numpy()
    slices[kinds == Topic.RECORD] = _RECORDS
    slices[kinds == Topic.VERDICT] = _VERDICTS
    _write_by(part.rows, rows, slices, _VERDICTS + 1, digest)
    return True


def _digest(given: pa.Table) -> str:
    digest = blake2b(digest_size=16)
    for column in given.columns:
        for value in column.chunks:
            for buffer in value.buffers():
                digest.update(buffer or b"")
    return digest.hexdigest()


def _digest_of(rows: Path) -> str:
    with pa.memory_map(str(rows)) as file:
        found: bytes = pa.ipc.open_file(file).schema.metadata[b"given"]
        return found.decode()


def _write_by(path: Path, table: pa.Table, groups: Any, count: int, digest: str = "") -> None:
    """Write a batch for each of ``count`` groups; ``groups`` has the group of each row."""
    order = np.argsort(groups, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    schema = table.schema.with_metadata({"given": digest})
    with replace_file(path) as draft, pa.ipc.new_file(str(draft), schema, options=_COMPRESSED) as writer:
        for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            batches = table.slice(low, high - low).replace_schema_metadata(schema.metadata).to_batches()
            writer.write_batch(batches[0] if batches else pa.RecordBatch.from_pylist([], schema))


def _batch(path: Path, number: int) -> pa.RecordBatch:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_file(file).get_batch(number).replace_schema_metadata(None)


def verdict_rows(part: Part) -> pa.RecordBatch:
    """Return the verdicts of a part, as ROWS in the order of their ranks."""
    return _batch(part.rows, _VERDICTS)


def record_rows(part: Part) -> pa.RecordBatch:
    """Return the records of a part, as ROWS in the order of the pages that wrote them."""
    return _batch(part.rows, _RECORDS)
