"""Run the stages on this machine: tables on disk, a few parts in memory, all cores.

Any mixture of files of a run is a legal state of the rounds, because the rows of a part hold the digest of what it was
given. So a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import partial
from hashlib import blake2b
from itertools import chain, groupby, pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.judging import KnownJudgement, judge_part
from scrapy_neardup.batch.pages import BatchOptions, InputReader, ReadRecord, tabulate
from scrapy_neardup.batch.routing import answer, attach, needed_records
from scrapy_neardup.batch.runs import ArchivePart, BatchRun
from scrapy_neardup.batch.tables import GIVEN, NEEDED, PAGES, ROWS, Topic, place_of
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Malformed, Skipped

T = TypeVar("T")
R = TypeVar("R")
#: Slices of the hashes; one of all parts is in memory at once.
_SLICES = 64
#: Batches of a file of rows: one of each slice, then records, then verdicts.
_RECORDS, _VERDICTS = _SLICES, _SLICES + 1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 300_000_000, 24_000
#: Pages of a part: more would not save anything, and fewer make many parts.
_MOST_PAGES, _LEAST_PAGES = 50_000, 1000


def plan(memory: int, processes: int) -> tuple[int, int]:
    """Return how many processes fit into so many bytes, and how many pages a part then has.

    Raises NearDupError if that is too little.
    """
    if memory < 2 * _PROCESS:
        raise NearDupError(f"--memory is too little. Give {2 * _PROCESS // 10**6}MB or more.")
    processes = max(1, min(processes, memory // _PROCESS - 1))
    free = memory // (processes + 1) - _PROCESS
    return processes, max(_LEAST_PAGES, min(_MOST_PAGES, free // _PAGE))


class LocalRunner:
    """Does what is left to do of a run, in processes of this machine."""

    def __init__(self, run: BatchRun, processes: int, inform: Callable[[str], None] = lambda text: None) -> None:
        """``inform`` gets sentences on the progress."""
        self._run = run
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None
        self._inform = inform

    def run(self) -> None:
        """Complete the run. Raises NearDupError."""
        run = self._run
        if run.is_complete:
            return
        for name in ("pages", "rows"):
            (run.folder / name).mkdir(exist_ok=True)
        with self._open():
            self._read()
            parts, own = run.parts, run.own_parts
            rounds, judged = 0, -1
            while judged:
                rounds, judged = rounds + 1, self._round(parts, own)
                self._inform(f"round {rounds}: {judged} of {len(own)} parts judged")
        for file in (run.folder / "rows").glob("*.memory"):
            file.unlink()
        (run.folder / "complete").touch()

    @contextmanager
    def _open(self) -> Iterator[None]:
        if self._processes == 1:
            yield
            return
        with ProcessPoolExecutor(self._processes, get_context("spawn")) as self._pool:
            try:
                yield
            except BrokenProcessPool:
                raise NearDupError(
                    "A process of the run was killed, perhaps because memory ran out. Run the command again with a "
                    "lower --memory: it goes on where it was."
                ) from None
            finally:
                self._pool.shutdown(cancel_futures=True)

    def _map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Return the results of a function, which other processes call; with one process, this one."""
        return map(function, tasks) if self._pool is None else self._pool.map(function, tasks)

    def _read(self) -> None:
        run, done = self._run, 0
        tasks = [
            (number, name, stride)
            for number, name in enumerate(run.inputs, run.first_input)
            for stride in range(run.strides)
            if not _marker(run.folder, number, stride).exists()
        ]
        for records in self._map(partial(_read_input, run.options, run.folder, run.pages, run.strides), tasks):
            done += records
            self._inform(f"{done:,} records read")

    def _round(self, parts: Sequence[ArchivePart], own: Sequence[ArchivePart]) -> int:
        """Give the parts of this run what all parts left behind; return how many were judged."""
        shuffle, options = self._run.folder / "shuffle", self._run.options
        shutil.rmtree(shuffle, ignore_errors=True)
        shuffle.mkdir()
        list(self._map(partial(_answer_slice, shuffle, parts, options.make_method().common), range(_SLICES)))
        list(self._map(partial(_send_records, shuffle, len(parts)), parts))
        judged = sum(self._map(partial(_judge, shuffle, options), own))
        shutil.rmtree(shuffle)
        return judged


def _marker(folder: Path, number: int, stride: int) -> Path:
    return folder / "pages" / f"{number:06}-{stride:03}.json"


# The first stage.


def _read_input(options: BatchOptions, folder: Path, pages: int, strides: int, task: tuple[int, str, int]) -> int:
    """Read every ``strides``-th group of records of an input; return how many these are."""
    number, name, stride = task
    count, skipped = 0, Counter[str]()
    with closing(InputReader(options)) as reader:
        records = reader.read(number, name, lambda record: record // pages % strides == stride)
        for group, members in groupby(records, lambda one: place_of(one.rank)[1] // pages):
            counted = _Counted(members)
            _write_pages(folder / "pages" / f"{number:06}-{group:09}", tabulate(counted, options), counted)
            count += counted.count
            skipped += counted.skipped
    with replace_file(_marker(folder, number, stride)) as draft:
        draft.write_text(json.dumps({"records": count, "skipped": skipped}))
    return count


class _Counted:
    """Records, counted on their way; malformed ones are set apart."""

    def __init__(self, records: Iterable[ReadRecord]) -> None:
        self._records = records
        self.count = 0
        self.skipped = Counter[str]()
        self.malformed: list[Malformed] = []

    def __iter__(self) -> Iterator[ReadRecord]:
        for record in self._records:
            entry = record.entry
            if isinstance(entry, Malformed):
                self.malformed.append(entry)
            elif isinstance(entry, Skipped):
                self.skipped[entry.why] += 1
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
                file.write(json.dumps([one.source, one.number, one.unit, one.why, one.raw.hex()]) + "\n")


# Rounds. Files of the shuffle have a batch for each part that gets it.


def _answer_slice(shuffle: Path, parts: Sequence[ArchivePart], common: int, slice: int) -> None:
    """Answer what parts ask for with hashes of one slice."""
    given = answer(_table_of((part.rows for part in parts), slice, ROWS), common)
    counts = given.filter(pc.is_in(given["kind"], pa.array([Topic.COUNT, Topic.BITS], pa.uint8())))
    needed = needed_records(given)
    for name, rows, groups in (
        ("counts", counts, counts["part"].to_numpy()),
        ("needed", needed, source_parts(needed, parts)),
    ):
        _write_by(shuffle / f"{name}-{slice:03}", rows, groups, len(parts))


def source_parts(needed: pa.Table, parts: Sequence[ArchivePart]) -> Any:
    """Return the numbers of the parts that hold the NEEDED records."""
    firsts = np.array([part.first for part in parts], np.uint64)
    return np.searchsorted(firsts, needed["source"].to_numpy(), "right") - 1


def _send_records(shuffle: Path, count: int, part: ArchivePart) -> None:
    """Send the records of a part to the parts that need them."""
    needed = _table_of(shuffle.glob("needed-*"), part.number, NEEDED).group_by(NEEDED.names).aggregate([])
    if len(needed):
        sent = attach(record_rows(part), needed)
        _write_by(shuffle / f"records-{part.number:06}", sent, sent["part"].to_numpy(), count)


def _judge(shuffle: Path, options: BatchOptions, part: ArchivePart) -> bool:
    files = [*shuffle.glob("counts-*"), *shuffle.glob("records-*")]
    return rejudge(options, part, _table_of(files, part.number, GIVEN))


def rejudge(options: BatchOptions, part: ArchivePart, given: pa.Table) -> bool:
    """Judge a part unless it was judged with the same GIVEN rows, in any order; return whether it was judged."""
    given = given.sort_by([(name, "ascending") for name in ("kind", "hash", "source")]).combine_chunks()
    digest = _digest(given)
    if part.rows.exists() and _digest_of(part.rows) == digest:
        return False
    batches = (batch for file in part.files for batch in pq.ParquetFile(file).iter_batches(1000))
    remembered = part.rows.with_suffix(".memory")
    memory: dict[int, KnownJudgement] = {}
    if remembered.exists():
        memory = pickle.loads(remembered.read_bytes())  # noqa: S301  # this run wrote it
    rows = judge_part(options, part.number, batches, given, memory)
    with replace_file(remembered) as draft:
        draft.write_bytes(pickle.dumps(memory, pickle.HIGHEST_PROTOCOL))
    slices = (rows["hash"].to_numpy() * _ODD >> np.uint64(64 - _SLICES.bit_length() + 1)).astype(np.int64)
    kinds = rows["kind"].to_numpy()
    slices[kinds == Topic.RECORD] = _RECORDS
    slices[kinds == Topic.VERDICT] = _VERDICTS
    with replace_file(part.rows) as draft:
        _write_by(draft, rows, slices, _VERDICTS + 1, digest)
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
    """Write a batch for each of ``count`` groups; ``groups`` has the group of each row. No file, if there is no row."""
    if not (len(table) or digest):
        return
    order = np.argsort(groups, kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    ends = np.searchsorted(groups[order], np.arange(count + 1)).tolist()
    schema = table.schema.with_metadata({"given": digest})
    empty = pa.RecordBatch.from_pylist([], schema)
    with pa.ipc.new_file(str(path), schema, options=_COMPRESSED) as writer:
        for low, high in pairwise(ends):
            rows = table.slice(low, high - low).to_batches()
            writer.write_batch(rows[0].replace_schema_metadata(schema.metadata) if rows else empty)


def _table_of(files: Iterable[Path], number: int, schema: pa.Schema) -> pa.Table:
    """Return the batches with this number of all files that exist."""
    batches = list[pa.RecordBatch]()
    for path in files:
        if path.exists():
            with pa.OSFile(str(path)) as file:
                batches.append(pa.ipc.open_file(file).get_batch(number).replace_schema_metadata(None))
    return pa.Table.from_batches(batches, schema)


def asked_rows(part: ArchivePart) -> pa.Table:
    """Return what a part asks and leaves behind, as ROWS without records and verdicts."""
    return pa.concat_tables(_table_of([part.rows], slice, ROWS) for slice in range(_SLICES))


def verdict_rows(part: ArchivePart) -> pa.Table:
    """Return the verdicts of a part, as ROWS in the order of their ranks."""
    return _table_of([part.rows], _VERDICTS, ROWS)


def record_rows(part: ArchivePart) -> pa.Table:
    """Return the records of a part, as ROWS in the order of the pages that wrote them."""
    return _table_of([part.rows], _RECORDS, ROWS)


def skipped_records(run: BatchRun) -> Counter[str]:
    """Return how many records of archives are no pages, by reason."""
    markers = (json.loads(file.read_text()) for file in run.folder.glob("pages/[0-9]*.json"))
    return sum((Counter(marker["skipped"]) for marker in markers), Counter[str]())


def malformed_records(run: BatchRun) -> Iterator[Malformed]:
    """Return the malformed records in the order of the inputs."""
    for file in sorted(run.folder.glob("pages/[0-9]*.rejects")):
        for line in file.read_text(encoding="utf-8").splitlines():
            source, number, unit, why, raw = json.loads(line)
            yield Malformed(source, number, unit, why, bytes.fromhex(raw))
