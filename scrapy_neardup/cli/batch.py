"""``scrapy neardup batch``: judge archives that are larger than the memory of a machine."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from glob import glob
from pathlib import Path

from scrapy_neardup.cli.command import STORE, add_fields, command, fields_of, flag, option
from scrapy_neardup.cli.dedup import Results, advise
from scrapy_neardup.cli.opening import open_or_make_state
from scrapy_neardup.cli.output import check_outputs, warn, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN
from scrapy_neardup.files.entry import import_library
from scrapy_neardup.files.writers import find_output_format, open_output
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.settings import Config
from scrapy_neardup.state.urls import STORES, parse_url


@command(
    option("input INPUT", "a file, a folder, or a pattern in quotes", nargs="+"),
    option("-o, --output FILE", "the verdicts, as Parquet", required=True),
    option("--kept FILE", "the records that are not copies"),
    option(f"{STORE} URL", f"an empty state that gets all pages: {STORES.forms(persistent=True)}"),
    option("--rejects FILE", "file for malformed records (default: FILE.rejects.jsonl)"),
    option("--run FOLDER", "the folder of the run (default: FILE.run)"),
    option("--previous FOLDER", "go on with the pages of this run"),
    option("--runner RUNNER", "local or spark (default: local)", choices=("local", "spark"), default="local"),
    option("--memory SIZE", "memory of all processes together (default: 2GB)", default="2GB"),
    flag("--json", "print the counts as one JSON object"),
    add_fields,
    examples="""\
verdicts:
  They are those of 'dedup --counts exact' on the same inputs in the same order, whatever the memory, the cores and the
  runner. Each copy names its original, which is kept. FILE has a row for each page: input, record (from 0), url, and
  the parts of a verdict. Inputs are all that 'dedup' reads, but for standard input. Needs the extra: parquet.

the run:
  One process judges, and others read: one for each core, or NEARDUP_WORKERS processes. The folder of the run is two to
  four times as large as the texts. If the command is interrupted or killed, the same command goes on where it was.
  Keep the folder to judge later pages against these with --previous; else remove it.

examples:
  scrapy neardup batch 'crawl/*.warc.gz' -o verdicts.parquet --kept kept.parquet
  scrapy neardup batch 'may/*.jsonl.gz' -o may.parquet --run may.run --memory 8GB
  scrapy neardup batch 'june/*.jsonl.gz' -o june.parquet --previous may.run
  scrapy neardup batch 's3/*.warc.gz' -o verdicts.parquet --runner spark
""",
)
def batch_command(arguments: argparse.Namespace, config: Config) -> int:
    """Judge all records, and write the results; return 1 if a record was malformed."""
    import_library("pyarrow", "parquet", "This command")
    from scrapy_neardup.batch.pages import malformed_records, skipped_records
    from scrapy_neardup.batch.results import export_state, write_kept, write_verdicts
    from scrapy_neardup.batch.runners import LocalRunner, SparkRunner
    from scrapy_neardup.batch.runs import BatchOptions, BatchRun

    _check(config, arguments.output, arguments.store)
    inputs, memory = _find_inputs(arguments.input), _parse_memory(arguments.memory)
    output, results = Path(arguments.output), Results(arguments.rejects, arguments.output)
    check_outputs(inputs, output, arguments.kept, results.rejects)
    kept_format = find_output_format(arguments.kept) if arguments.kept else ""
    fields = fields_of(arguments, config.fields)
    options = BatchOptions(config, config.secret, fields, arguments.id)
    runner = SparkRunner if arguments.runner == "spark" else LocalRunner
    processes = config.workers if isinstance(config.workers, int) and config.workers else os.cpu_count() or 1
    readers, pages = runner.plan(memory, processes)
    previous = BatchRun.load(Path(arguments.previous), options) if arguments.previous else None
    folder = Path(arguments.run or f"{output}.run")
    run = BatchRun(folder, options, inputs, previous, pages=pages, strides=-(-readers // len(inputs)))
    runner(run, readers, warn).run()
    results.skipped = skipped_records(run)
    results.verdicts, results.kinds, results.reasons = write_verdicts(run, output)
    with results:
        for malformed in malformed_records(run):
            results.reject(malformed)
    results.written = results.verdicts.total()
    if arguments.kept:
        with open_output(arguments.kept, kept_format, config.tag_field) as out:
            results.written = write_kept(run, out, config.passes)
    if arguments.store:
        recipe = state_recipe(config.make_method(), config.make_extractor())
        with open_or_make_state(arguments.store, recipe, run.options.secret) as store:
            export_state(run, store, config.keep)
    advise(results, fields)
    write(f"{results.describe(arguments.kept or arguments.output, config, is_json=arguments.json)}\n")
    return 1 if results.malformed else 0


def _check(config: Config, output: str, store: str | None) -> None:
    """Raise SettingsError for what batch cannot do."""
    if not output.lower().endswith(".parquet"):
        raise SettingsError(f"-o is {output!r}, but batch writes verdicts only as Parquet. Name a file FILE.parquet.")
    if not config.make_policy().prefers_first:
        raise SettingsError('batch keeps the first page of each group. Set NEARDUP_KEEP_POLICY to "first".')
    if config.make_method().memory_only:
        raise SettingsError(f"The method {config.method} works only in memory, so batch cannot use it. Name another.")
    if store and parse_url(store, STORE)[0].scheme not in STORES:
        raise SettingsError(f"{STORE} of batch is a state in files: {STORES.forms(persistent=True)}.")


def _parse_memory(text: str) -> int:
    read = re.fullmatch(r"(\d+(?:\.\d+)?) *([KMGT]?)B?", text.strip().upper())
    if read is None:
        raise SettingsError(f"--memory is {text!r}. Give a size, such as 8GB or 800MB.")
    return round(float(read[1]) * 1024.0 ** " KMGT".index(read[2] or " "))


def _find_inputs(names: Sequence[str]) -> list[str]:
    """Return the inputs; the files of a pattern come in the order of their names. Raises NearDupError."""
    found = list[str]()
    for name in names:
        if name == STDIN:
            raise NearDupError("batch reads its inputs twice, so none is standard input. Name files.")
        matches = [name] if Path(name).exists() else sorted(glob(name, recursive=True))  # noqa: PTH207  # Path takes no absolute pattern
        if not matches:
            raise NearDupError(f"{name} does not exist, and is no pattern of files that do. Name files or folders.")
        found += matches
    return found
