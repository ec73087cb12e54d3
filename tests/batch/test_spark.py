"""Spark gives the results of the local runner, with all partitions in the order that Spark likes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.batch.runners import SparkRunner
from tests.batch import InlineRunner, judge_in_order, make_run, verdicts_of, write_records
from tests.batch.test_equality import drawn

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (shutil.which("java") or "JAVA_HOME" in os.environ), reason="Java is not installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of sockets that py4j leaves open
]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """The one session of all tests, on two cores."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    # Java spends longer on optimising its code than so short a test on running it.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    opened = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    yield
    opened.stop()


def check(folder: Path, records: list[dict[str, Any]], parts: int) -> None:
    name, pages = write_records(folder / "pages.jsonl", records), -(-len(records) // parts)
    local, run = (make_run(folder / runner, [name], pages) for runner in ("local", "spark"))
    InlineRunner(local).run()
    SparkRunner(run, 2).run()
    for one, other in zip(run.parts, local.parts, strict=True):
        assert one.rows.read_bytes() == other.rows.read_bytes()
    assert verdicts_of(run) == judge_in_order([name])


def test_results_are_those_of_the_local_runner(tmp_path: Path) -> None:
    check(tmp_path, drawn(5, 24), 3)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("parts", [1, 2, 7, 64])
def test_they_are_for_every_number_of_parts(parts: int, tmp_path: Path) -> None:
    check(tmp_path, drawn(6), parts)


def test_a_later_run_goes_on(tmp_path: Path) -> None:
    records = drawn(7, 24)
    names = [write_records(tmp_path / f"{at}.jsonl", records[at : at + 12]) for at in (0, 12)]
    first = make_run(tmp_path / "first", names[:1], 12)
    InlineRunner(first).run()  # the folder is that of Spark, see above
    second = make_run(tmp_path / "second", names[1:], 12, first)
    SparkRunner(second, 2).run()
    assert verdicts_of(second) == judge_in_order(names)
