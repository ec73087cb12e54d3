"""Tests of archives in batch: ``judge_in_order`` is the reference, ``judge_in_parts`` the batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from scrapy_neardup.batch.counts import ExactCounts
from scrapy_neardup.batch.results import judged_pages
from scrapy_neardup.batch.runners import LocalRunner
from scrapy_neardup.batch.runs import BatchOptions, BatchRun
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.records import Batch
from scrapy_neardup.model import Verdict
from scrapy_neardup.page.source import PageSource
from scrapy_neardup.settings import DEFAULT_FIELDS, Config
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.recipe import Secret
from scrapy_neardup.state.record import Keep

T = TypeVar("T")
OPTIONS = BatchOptions(Config(), Secret(b"batch" * 5), dict(DEFAULT_FIELDS))


class Killed(Exception):
    """The run is interrupted."""


class InlineRunner(LocalRunner, Executor):
    """Runs all tasks in this process; it is killed at the task ``ends``."""

    def __init__(self, run: BatchRun, ends: int = 0) -> None:
        super().__init__(run, 0)
        self._ends = ends
        self.tasks = 0

    def _open_pool(self) -> Executor:
        return self

    def submit(self, task: Callable[..., T], /, *arguments: Any, **others: Any) -> Future[T]:
        self.tasks += 1
        if self.tasks == self._ends:
            raise Killed
        done = Future[T]()
        try:
            done.set_result(task(*arguments))
        except Exception as error:
            done.set_exception(error)
        return done


def write_records(path: Path, records: Iterable[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return str(path)


def plain(verdict: Verdict) -> dict[str, Any]:
    """A verdict without what depends on the time."""
    tag = verdict.as_tag()
    return {name: value for name, value in tag.items() if name not in ("similar_id", "first_seen")}


def judge_in_order(
    inputs: Sequence[str], options: BatchOptions = OPTIONS, counts: ExactCounts | None = None, records: Any = None
) -> list[dict[str, Any]]:
    """The verdicts of ``dedup --counts exact``, which fill the ``counts`` and the list of ``records``."""
    config, method = options.config, options.make_method()
    store = memory_state(method.recipe(), options.secret)
    store.use_exact_counts((counts or ExactCounts()).on_site)
    policy = replace(config.make_policy(), keep=Keep.NOTHING)
    detector = Detector(method, store, who="test", policy=policy)
    source = PageSource(options.fields, config.make_reader(), hashes_items=False)
    batch = Batch(detector, partial(detector.judge_now, sealed=False), source, options.id_field)
    entries = (entry for name in inputs for entry in read_input(name) if isinstance(entry, Entry))
    verdicts = [plain(batch.judge(entry).verdict) for entry in entries]
    if records is not None:
        records += store.records()
    return verdicts


def make_run(folder: Path, inputs: Sequence[str], pages: int, previous: BatchRun | None = None) -> BatchRun:
    return BatchRun(folder, OPTIONS, inputs, previous, pages=pages, strides=2)


def completed(folder: Path, inputs: Sequence[str], pages: int, previous: BatchRun | None = None) -> BatchRun:
    run = make_run(folder, inputs, pages, previous)
    InlineRunner(run).run()
    return run


def verdicts_of(run: BatchRun) -> list[dict[str, Any]]:
    return [plain(one.verdict) for part in run.parts for one in judged_pages(part)]


def judge_in_parts(folder: Path, inputs: Sequence[str], pages: int) -> list[dict[str, Any]]:
    """The verdicts of batch with so many pages a part."""
    return verdicts_of(completed(folder, inputs, pages))
