"""Spark gives the results of the local runner, with all partitions in the order that Spark likes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrapy_neardup.batch.spark import SparkRunner
from tests.batch import judge_in_order, make_run, verdicts_of, write_records
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


@pytest.mark.parametrize("parts", [1, 7])
def test_spark_reads_what_the_local_runner_reads(parts: int, tmp_path: Path) -> None:
    records = drawn(5, 24)
    names = [write_records(tmp_path / f"{at}.jsonl", records[at : at + 12]) for at in (0, 12)]
    first = make_run(tmp_path / "first", names[:1], -(-12 // parts))
    SparkRunner(first, 2).run()
    second = make_run(tmp_path / "second", names[1:], 12, first)
    SparkRunner(second, 2).run()
    assert verdicts_of(second) == judge_in_order(names)
