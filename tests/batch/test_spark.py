"""Spark gives the results of the local runner, with all partitions in the order that Spark likes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_neardup.batch.local import verdict_rows
from scrapy_neardup.batch.runs import BatchRun
from scrapy_neardup.batch.spark import SparkRunner
from tests.batch import InlineRunner, judge_in_order, make_run, verdicts_of, write_records
from tests.batch.test_equality import drawn

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="Java is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of sockets that py4j leaves open
]


@pytest.fixture(autouse=True)
def few_slices() -> None:
    """Processes of Spark have all slices."""


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """The one session of all tests, on two cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    opened = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield
    opened.stop()


def judge_on_spark(folder: Path, name: str, pages: int) -> BatchRun:
    run = make_run(folder, [name], pages)
    SparkRunner(run, 2).run()
    return run


@pytest.mark.parametrize("parts", [2, 7, *(pytest.param(parts, marks=pytest.mark.soak) for parts in (1, 64))])
@pytest.mark.timeout(900)
def test_results_are_those_of_the_local_runner(parts: int, tmp_path: Path) -> None:
    records = drawn(5)
    name = write_records(tmp_path / "pages.jsonl", records)
    pages = -(-len(records) // parts)
    local = make_run(tmp_path / "local", [name], pages)
    InlineRunner(local).run()
    run = judge_on_spark(tmp_path / "spark", name, pages)
    for one, other in zip(run.parts, local.parts, strict=True):
        assert one.rows.read_bytes() == other.rows.read_bytes()
        assert verdict_rows(one).num_rows
    assert verdicts_of(run) == judge_in_order([name])


def test_a_later_run_goes_on(tmp_path: Path) -> None:
    records = drawn(6)
    names = [write_records(tmp_path / f"{at}.jsonl", records[at : at + 33]) for at in (0, 33)]
    first = judge_on_spark(tmp_path / "first", names[0], 20)
    second = make_run(tmp_path / "second", [names[1]], 20, first)
    SparkRunner(second, 2).run()
    assert verdicts_of(second) == judge_in_order(names)
