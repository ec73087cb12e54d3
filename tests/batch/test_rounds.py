"""Judging in rounds, as Spark does it, without Spark: ``test_spark`` does the same with it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from scrapy_neardup.batch import runners
from scrapy_neardup.batch.judging import find_shared
from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.batch.rows import numbers
from scrapy_neardup.batch.runs import BatchRun
from tests.batch import OPTIONS, judge_in_order, make_run, verdicts_of, write_records
from tests.batch.test_equality import CASES


def judge_in_rounds(run: BatchRun, shuffles: int, seed: int) -> list[int]:
    """Judge all parts at once until nothing changes; return how many were judged in each round."""
    chance = random.Random(seed)
    for folder in ("pages", "rows"):
        (run.folder / folder).mkdir()
    for stretch in run.stretches():
        read_stretch(run, stretch)
    parts, first, judged = run.parts, run.own_parts[0].number, list[int]()
    while not judged or judged[-1]:
        every = pa.record_batch([pa.array(range(len(parts)))], ["id"])
        rows = pa.Table.from_batches(runners._load(OPTIONS, parts, iter([every])))
        rows = rows.take(pa.array(chance.sample(range(len(rows)), len(rows))))
        of = numbers(rows["hash"]) % shuffles
        common, given = OPTIONS.make_method().common, list[pa.RecordBatch]()
        for one in range(shuffles):
            asked = rows.take(pa.array(np.flatnonzero(of == one))).to_batches()
            given += runners._answer(common, first, iter(asked))
        chance.shuffle(given)
        judged.append(sum(batch.column(0)[0].as_py() for batch in runners._judge_parts(OPTIONS, parts, iter(given))))
    for part in run.own_parts:
        find_shared(OPTIONS, part)
    return judged


@pytest.mark.parametrize("case", CASES)
def test_verdicts_are_those_of_one_sequence(case: str, tmp_path: Path) -> None:
    name = write_records(tmp_path / "pages.jsonl", CASES[case])
    run = make_run(tmp_path / "run", [name], -(-len(CASES[case]) // 7))
    judged = judge_in_rounds(run, 3, seed=7)
    assert judged[0] == len(run.parts)
    assert len(judged) <= len(run.parts) + 1
    assert verdicts_of(run) == judge_in_order([name])


def test_a_later_run_judges_its_own_parts(tmp_path: Path) -> None:
    records = CASES["drawn"]
    names = [write_records(tmp_path / f"{at}.jsonl", records[at : at + 33]) for at in (0, 33)]
    run: BatchRun | None = None
    for at, name in enumerate(names):
        run = make_run(tmp_path / f"run{at}", [name], 8, run)
        assert judge_in_rounds(run, 2, at)[0] == len(run.own_parts)
    assert run is not None
    assert verdicts_of(run) == judge_in_order(names)
