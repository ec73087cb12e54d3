"""Run the stages on this machine: tables on disk, one process that judges, and others that read.

Parts are judged in their order. A judged part never changes, and a file is there completely or not at all. So a killed
run goes on where it was.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from scrapy_neardup.batch.counts import Hashes
from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.part import PartPages, PartStore, judge_part
from scrapy_neardup.batch.rows import NO_ROWS, Asked, Given, HashRows, Topic, answer, is_among, join_rows, sorted_set
from scrapy_neardup.batch.runs import ArchivePart, BatchOptions, BatchRun, count_pages
from scrapy_neardup.errors import NearDupError

#: How readers start. A fork need not import anything; other systems have none, or an unsafe one.
_CONTEXT = get_context("fork" if sys.platform == "linux" else "spawn")
#: Bytes that a process takes, and bytes for each page of a part that it judges.
_PROCESS, _PAGE = 200_000_000, 7_000
#: Pages of a part, at least.
_LEAST_PAGES = 1000


def plan(memory: int, processes: int) -> tuple[int, int]:
    """Return how many processes can read within so many bytes, and how many pages a part then has.

    One process more judges, and waits for the readers while they are slower. Raises NearDupError if the memory is too
    little.
    """
    if memory < 3 * _PROCESS:
        raise NearDupError(f"--memory is too little. Give {3 * _PROCESS // 10**6}MB or more.")
    readers = max(1, min(processes, memory // _PROCESS - 2))
    free = memory - readers * _PROCESS
    return readers, max(_LEAST_PAGES, (free - _PROCESS) // _PAGE)


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
        pages, earlier = 0, [*(run.previous.parts if run.previous else ())]
        with closing(self._files()) as files:
            for part in run.group(files):
                self._judge(part, earlier)
                earlier.append(part)
                pages += sum(map(count_pages, part.files))
                self._inform(f"{pages:,} pages judged")
        (run.folder / "complete").touch()

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
    """Judge a part, unless that was done; all earlier parts are judged.

    If its pages ask something unforeseen, and an earlier part knows an answer, it is judged again.
    """
    if part.rows.exists():
        return
    pages, ask = PartPages(options, part), partial(_answers, earlier, options.make_method().common)
    asked, given = pages.asked, ask(pages.asked)
    more: Asked = {Topic.FORM: pages.asked_of_forms(given)}
    while (answers := ask(more)) and (asked is pages.asked or any(len(rows.hashes) for rows in answers.values())):
        asked = {topic: sorted_set(np.append(hashes, more.get(topic, hashes[:0]))) for topic, hashes in asked.items()}
        given = {topic: join_rows((rows, answers.get(topic, NO_ROWS))) for topic, rows in given.items()}
        store = PartStore(options, pages, given, _records(given, earlier))
        judge_part(options, part, store)
        more = {topic: hashes[~is_among(hashes, asked[topic])] for topic, hashes in store.asked().items()}
    part.write(store.rows_to_leave(), store.judged())


def _answers(parts: Sequence[ArchivePart], common: int, asked: Asked) -> dict[Topic, HashRows]:
    """Return the answers of these parts to the questions of the next one."""
    return {
        topic: answer(topic, join_rows([NO_ROWS, *_matching(topic, hashes, parts)]), common)
        for topic, hashes in asked.items()
    }


def _matching(topic: Topic, asked: Hashes, parts: Sequence[ArchivePart]) -> Iterator[HashRows]:
    for part in parts if len(asked) else ():
        rows = part.rows_of(topic)
        yield rows.take(is_among(rows.hashes, asked))


def _records(given: Given, parts: Sequence[ArchivePart]) -> Iterator[tuple[int, bytes]]:
    """Yield the ids and packed records that answers name, the older ones first."""
    named = (one for topic in (Topic.KEY, Topic.URL) for one in given[topic][1:])
    ranks = sorted_set(np.concatenate([*named]))
    ranks = ranks[ranks > 0]
    places = np.searchsorted([one.first for one in parts], ranks, "right") - 1
    for place in np.unique(places):
        yield from parts[place].records(ranks[places == place])
