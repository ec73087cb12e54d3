"""Read the inputs of a run on Spark, with the results of ``local`` byte for byte.

All executors must reach the folder of the run under the same name: they write the pages there, and Spark moves no data.
Ranks, never ids of Spark, say which page comes first. So partitions, executors and repeated tasks change no result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy_neardup.batch.local import LocalRunner
from scrapy_neardup.batch.pages import read_stretch
from scrapy_neardup.errors import NearDupError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkRunner(LocalRunner):
    """Reads in tasks of Spark, and judges here. The session is the active one, or a new one."""

    def _files(self) -> Generator[Path]:
        run, reading = self._run, self._run.stretches()
        if reading:
            with _open_session() as session:
                tasks = session.sparkContext.parallelize(reading, len(reading))
                self._inform(f"{tasks.map(partial(read_stretch, run)).sum():,} records read")
        yield from run.files()


@contextmanager
def _open_session() -> Iterator[SparkSession]:
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError:
        raise NearDupError("Spark needs pyspark. Run: pip install 'scrapy-neardup[spark]'") from None
    active = SparkSession.getActiveSession()
    try:
        session = active or SparkSession.builder.appName("scrapy-neardup").getOrCreate()
    except PySparkRuntimeError as error:
        raise NearDupError(
            f"Spark does not start: {error}. It needs Java 17 or 21, on Debian: apt install "
            "openjdk-17-jre-headless. Or leave out --runner."
        ) from None
    context = session.sparkContext
    if (context.master or "").startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable  # else the python3 of the PATH, perhaps without this package
    try:
        yield session
    finally:
        if active is None:
            session.stop()
