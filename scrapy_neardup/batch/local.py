"""Run the stages on this machine: tables on disk, one process that judges, and others that read.

Parts are judged in their order, so most are judged once. If the pages of a part ask something unforeseen, and an
earlier part knows an answer, the part is judged again.

The rows of a part hold the digest of its answers. So a run may hold any mixture of old and new files, and a killed run
goes on where it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from hashlib import blake2b
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa

from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.part import PartPages, judge_part
from scrapy_neardup.batch.rows import Asked, answer_on, distinct, is_among, make_rows, matching, named_ranks, numbers
from scrapy_neardup.batch.runs import ArchivePart, BatchOptions, BatchRun, count_pages
from scrapy_neardup.errors import NearDupError

#: How readers start. A fork of this process, which has threads, could wait for ever. So a server is forked, which has
#: imported all, and reads nothing.
_CONTEXT = get_context("forkserver" if sys.platform == "linux" else "spawn")
if sys.platform == "linux":
    _CONTEXT.set_forkserver_preload([__name__, "scrapy.cmdline"])  # readers import the program of the command, too
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 200_000_000, 7_000
#: Pages of a part, at least.
_LEAST_PAGES = 1000


def plan(memory: int, processes: int, judges: int = 1) -> tuple[int, int]:
    """Return how many processes can read within so many bytes, and how many pages a part then has.

    One process more judges, and waits for the readers while they are slower. ``judges``: how many parts are judged at
    once. Raises NearDupError if the memory is too little.
    """
    if memory < 3 * _PROCESS:
        raise NearDupError(f"--memory is too little. Give {3 * _PROCESS // 10**6}MB or more.")
    readers = max(1, min(processes, memory // _PROCESS - 2))
    free = memory - readers * _PROCESS
    return readers, max(_LEAST_PAGES, (free // judges - _PROCESS) // _PAGE)


class LocalRunner:
    """Completes a run on this machine."""

    def __init__(self, run: BatchRun, readers: int, inform: Callable[[str], None] = lambda text: None) -> None:
        """``readers``: processes that read; this one judges. ``inform`` gets sentences on the progress."""
        self._run = run
        self._readers = readers
        self._inform = inform

    def run(self) -> None:
        """Complete the run. Raises NearDupError."""
        run = self._run
        if run.is_complete:
            return
        for name in ("pages", "rows"):
            (run.folder / name).mkdir(exist_ok=True)
        self._complete()
        (run.folder / "complete").touch()

    def _complete(self) -> None:
        run, pages = self._run, 0
        earlier = [*(run.previous.parts if run.previous else ())]
        with closing(self._files()) as files:
            for part in run.group(files):
                self._judge(part, earlier)
                earlier.append(part)
                pages += sum(map(count_pages, part.files))
                self._inform(f"{pages:,} pages judged")

    def _files(self) -> Generator[Path]:
        """Yield the files of pages in their order. Each comes when it is written."""
        run = self._run
        with ProcessPoolExecutor(self._readers, _CONTEXT, _begin_reader) as pool:
            try:
                reading = {one: pool.submit(read_stretch, run, one) for one in run.stretches()}
                for number in range(run.first_input, run.first_input + len(run.inputs)):
                    yield from self._files_of(number, [task for one, task in reading.items() if one.input == number])
            except BrokenProcessPool:
                raise NearDupError(
                    "A process of the run was killed, perhaps because memory ran out. Run the command again with a "
                    "lower --memory: it goes on where it was."
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    def _files_of(self, input: int, reading: Sequence[Future[int]]) -> Iterator[Path]:
        group = 0
        while True:
            is_read = all(task.done() for task in reading)
            path = self._run.pages_file(input, group)
            if path.exists():
                yield path
                group += 1
            elif is_read:
                records = sum(task.result() for task in reading)
                self._inform(f"{records:,} records of {self._run.inputs[input - self._run.first_input]} read")
                return
            else:
                for task in wait(reading, 0.05, FIRST_EXCEPTION).done:
                    task.result()

    def _judge(self, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
        judge_after(self._run.options, part, earlier)


def _begin_reader() -> None:
    """Let this reader run where the process that judges, which is alone, leaves a core free; and end with it.

    A killed run cannot end its readers, and these would wait for work for ever.
    """
    if sys.platform != "win32":
        os.nice(5)
    Thread(target=_end_with, args=(parent_process(),), daemon=True).start()


def _end_with(judge: Any) -> None:
    judge.join()
    os._exit(1)


def judge_after(options: BatchOptions, part: ArchivePart, earlier: Sequence[ArchivePart]) -> None:
    """Judge a part; all earlier ones are judged."""
    common, pages = options.make_method().common, None
    if part.rows.exists():  # if nothing has changed, its pages are not read again
        asked = part.asked()
        given = _answers(asked, earlier, common)
    else:
        pages = PartPages(options, part)
        asked = pages.asked
        given = _answers(asked, earlier, common)
        given = pa.concat_tables([given, _answers(pages.asked_of_forms(given), earlier, common)])
    while judge_if_new(options, part, given, earlier, pages):
        before, asked = asked, part.asked()
        others = {topic: hashes[~is_among(hashes, before[topic])] for topic, hashes in asked.items()}
        more = _answers(others, earlier, common)
        if not len(more):
            return
        given = pa.concat_tables([given, more])


def judge_if_new(
    options: BatchOptions,
    part: ArchivePart,
    given: pa.Table,
    parts: Sequence[ArchivePart],
    pages: PartPages | None = None,
) -> bool:
    """Judge a part unless it was judged with the same answers, in any order; return whether it was judged.

    ``parts``: all parts before it.
    """
    given = distinct(given)  # two questions may have one answer
    ranks, firsts = named_ranks(given), [one.first for one in parts]
    places = np.searchsorted(firsts, ranks, "right") - 1
    records = [one for place in np.unique(places) for one in parts[place].records(ranks[places == place])]
    digest = blake2b(digest_size=16)
    for column in given.columns:
        digest.update(numbers(column).data)
    for id, packed in records:
        digest.update(id.to_bytes(8, "big") + packed)
    if part.given() == digest.hexdigest():
        return False
    judged = judge_part(options, part, pages or PartPages(options, part), given, records)
    part.write(digest.hexdigest(), *judged)
    return True


def _answers(asked: Asked, parts: Sequence[ArchivePart], common: int) -> pa.Table:
    """Return the answers of these parts to the questions of the next one."""
    answers = list[pa.Table]()
    for topic, hashes in asked.items():
        rows = [matching(part.rows_of(topic), hashes) for part in parts if len(hashes)]
        rows.append(make_rows(topic, len(parts), hashes))
        answers.append(answer_on(topic, pa.concat_tables(rows), common, len(parts)))
    return pa.concat_tables(answers)
