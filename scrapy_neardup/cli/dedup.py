"""``scrapy neardup dedup``: drop or tag near-duplicates in files."""

from __future__ import annotations

import argparse
import pickle
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.batch.counts import ExactCounts
from scrapy_neardup.cli.command import STORE, add_fields, command, fields_of, flag, option
from scrapy_neardup.cli.opening import open_or_make_state
from scrapy_neardup.cli.output import as_json, check_outputs, format_count, progress, warn, write
from scrapy_neardup.crawl.stats import RARE_VERDICTS
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import InputRecord, Malformed, Skipped, read_input, writers
from scrapy_neardup.files.writers import find_output_format, open_output
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.recipes import need_lasting_method, state_recipe, take_over
from scrapy_neardup.judge.records import Batch, Judged, open_judge
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Outcome, Verdict
from scrapy_neardup.page.extraction import Answer
from scrapy_neardup.report.words import Words
from scrapy_neardup.settings import AUTO, Config
from scrapy_neardup.state.opening import close_store, open_store, open_temporary
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Keep
from scrapy_neardup.state.urls import STORES, parse_url
from scrapy_neardup.untrusted import one_line
from scrapy_neardup.workers.pool import read_ahead

#: With NEARDUP_WORKERS = "auto", workers start only after so many pages.
_FEW = 100


@command(
    option("input INPUT", "a file or folder, or - for standard input", nargs="+"),
    option("-o OUT", "its suffix decides the format (default: JSON lines to standard output)", dest="output"),
    flag("--tag", "write every record, with its verdict"),
    option(f"{STORE} URL", f"a state: {STORES.forms()}"),
    option("--counts KIND", "boilerplate counts: fixed or exact; see below", choices=("fixed", "exact")),
    option("--rejects FILE", "file for malformed records (default: OUT.rejects.jsonl)"),
    flag("--spreadsheet", "CSV: put a ' before cells that are formulas, and write what Excel needs"),
    flag("--json", "print the counts as one JSON object"),
    add_fields,
    examples="""\
the rules:
  The first of similar records stays, as in a crawl; NEARDUP_KEEP_POLICY prefers another one. A record is known by its
  id, else by its URL, else by its place; of two with one name the later is a version of the earlier. Crawls know pages
  by URL: with --store, use --id "".

  --tag writes copies too. A copy that was written is unchanged when it comes again; without --tag, and in 'batch', it
  is a duplicate again.

  The output and the state change only after all input is read. NEARDUP_WORKERS reads HTML in several processes.
  --counts exact counts boilerplate without a bound, as 'batch' does: it reads every record, takes some 4 KB of memory
  for each, keeps the first of similar records, and works without --store.

examples:
  scrapy neardup dedup feed.jsonl -o clean.jsonl
  scrapy neardup dedup monday.csv archive.warc.gz pages/ -o tagged.jsonl.gz --tag
  zcat feed.gz | scrapy neardup dedup - --text body --id article_id > clean.jsonl
  scrapy neardup dedup feed.jsonl -o clean.jsonl -s NEARDUP_KEEP_POLICY=longest
  scrapy neardup dedup old.jsonl -o kept.jsonl --id "" --store leveldb:///var/crawls/state
""",
)
def dedup_command(arguments: argparse.Namespace, config: Config) -> int:
    """Judge all records, and write those that pass; return 1 if a record was malformed."""
    output: str = arguments.output or "-"
    format = find_output_format(output)
    results = Results(arguments.rejects, output)
    check_outputs(arguments.input, output, results.rejects)
    fields, method = fields_of(arguments, config.fields), config.make_method()
    policy = config.make_policy()
    is_exact = arguments.counts == "exact"
    if is_exact and (arguments.store or not policy.prefers_first):
        raise SettingsError(
            f"--counts exact works without a state, and keeps the first record. Leave out {STORE} and "
            "NEARDUP_KEEP_POLICY, or --counts exact."
        )
    with _open_state(arguments.store, method, config) as store, ExitStack() as stack:
        policy = replace(
            policy,
            passes=lambda verdict: arguments.tag or config.passes(verdict),
            keep=config.keep if arguments.store else Keep.NOTHING,
        )
        if is_exact:
            store.use_exact_counts(ExactCounts().on_site)
        detector = Detector(method, store, who=f"dedup {' '.join(arguments.input)}", policy=policy)
        bodies = None if is_exact else detector.bodies
        source = config.open_source(fields, bodies=bodies, hashes_items=store.is_shared)
        with (
            open_judge(detector, config.wait) as judge,
            open_output(output, format, config.tag_field, for_spreadsheet=arguments.spreadsheet) as out,
            results,  # closed before the output is
        ):
            batch = Batch(detector, judge, stack.enter_context(source), arguments.id)
            found = (record for name in arguments.input for record in read_input(name))
            records = progress(found, what="records")
            read: Iterable[tuple[InputRecord, Answer | None]] = ((record, None) for record in records)
            if page_pool := config.make_page_pool():
                stack.enter_context(closing(page_pool))
                few = _FEW if config.workers == AUTO else 0
                read = read_ahead(records, batch.coming, page_pool, first_pages=few)
            passed = _judge(read, batch, detector, results)
            if not policy.prefers_first and not arguments.tag:
                passed = leave_out_superseded(passed)
            for judged, line, place in passed:
                try:
                    out.write(judged.fields, judged.verdict.as_tag() if arguments.tag else None, line)
                except NearDupError as error:
                    raise NearDupError(f"{place}: {error}") from None
                results.written += 1
        if store.is_persistent:
            detector.seal()  # only now, because without an output its records must be rolled back
            detector.end()
    advise(results, fields, 0 if arguments.spreadsheet else out.formulas)
    if output == "-":  # standard output has the records
        words = Words(config.lang or "en")
        warn(results.describe(words("closing.standard_output"), config, is_json=arguments.json))
    else:
        write(f"{results.describe(output, config, is_json=arguments.json)}\n")
    return 1 if results.malformed else 0


@contextmanager
def _open_state(url: str | None, method: Method, config: Config) -> Iterator[PageStore]:
    """Open or make the state that the user named, or a temporary one."""
    if url and parse_url(url, STORE)[0].is_persistent:
        need_lasting_method(method, url)
        recipe = state_recipe(method, config.make_extractor())
        with open_or_make_state(url, recipe, config.secret) as store:
            take_over(store, recipe, config.deciding(method), warn=warn, inform=warn)
            yield store
        return
    recipe = method.recipe()  # without the extractor: its check takes 0.25 seconds
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        if url or method.memory_only:
            store = open_store(url or "memory:", recipe, STORE, config.secret)
        else:
            store = open_temporary(Path(folder), recipe, config.secret)
        try:
            yield store
        finally:
            close_store(store)


class PassedRecord(NamedTuple):
    """A record that passes, with its line and its place in the input."""

    judged: Judged
    line: bytes
    place: str


def _judge(
    read: Iterable[tuple[InputRecord, Answer | None]], batch: Batch, detector: Detector, results: Results
) -> Iterator[PassedRecord]:
    for entry, answer in read:
        if isinstance(entry, Malformed):
            results.reject(entry)
        elif isinstance(entry, Skipped):
            results.skipped[entry.why] += 1
        else:
            judged = batch.judge(entry, answer)
            results.add(judged.verdict, entry.fields)
            if detector.policy.passes(judged.verdict):
                yield PassedRecord(judged, entry.line, entry.place)


def leave_out_superseded(passed: Iterable[PassedRecord]) -> Iterator[PassedRecord]:
    """Yield the records that no later, better copy supersedes, in order. Pages of earlier runs stay.

    They wait in a temporary file until all are judged.
    """
    last_better: dict[int, int] = {}  # by group: the number of its last better record
    count = 0
    with tempfile.TemporaryFile() as file:
        for count, record in enumerate(passed, 1):
            pickle.dump(record, file)
            verdict = record.judged.verdict
            if verdict.outcome is Outcome.BETTER:
                last_better[verdict.group] = count
        file.seek(0)
        for number in range(1, count + 1):
            waiting: PassedRecord = pickle.load(file)  # noqa: S301  # written above, to a file without a name
            verdict = waiting.judged.verdict
            if number >= last_better.get(verdict.group or verdict.id, 0):  # the first page of a group gives it its id
                yield waiting


def advise(results: Results, fields: Mapping[str, str], formulas: int = 0) -> None:
    """Warn if no record has a text, probably under another name, and if a spreadsheet would run cells."""
    if 0 < results.verdicts.total() == results.reasons["no_content"]:
        first = f" The first record has: {one_line(', '.join(results.first))}." if results.first else ""
        missing = f"{fields['text']!r} or {fields['html']!r}"
        warn(f"No record has the field {missing}, so none is judged.{first} Name its field with --text or --html.")
    if formulas:
        warn(
            f"A spreadsheet would run {format_count(formulas, 'cell')} that begin with =, + - or @ as "
            "formulas. Before you open the table in one, write it with --spreadsheet."
        )


class Results(ExitStack):
    """Counts of records, and the file of malformed ones.

    ``verdicts``, ``kinds`` and ``reasons`` (of unjudged records) count judged records; ``skipped``: records of archives
    that are no pages. ``first``: the fields of the first record. ``rejects`` is the file for malformed records, as JSON
    lines ``{"place": …, "why": …, "record": …}``, by default next to the output. The first malformed record makes it.
    Bytes that are not UTF-8 become escapes.
    """

    def __init__(self, rejects: str | None, output: str) -> None:
        super().__init__()
        self.verdicts = Counter[str]()
        self.kinds = Counter[str]()
        self.reasons = Counter[str]()
        self.skipped = Counter[str]()
        self.written = self.malformed = 0
        self.first: tuple[str, ...] = ()
        self.rejects = Path(rejects) if rejects else None if output == "-" else Path(f"{output}.rejects.jsonl")
        self._file: IO[bytes] | None = None

    def add(self, verdict: Verdict, fields: Iterable[str] = ()) -> None:
        """Count a judged record with these fields."""
        self.first = self.first or tuple(fields)
        self.verdicts[verdict.outcome.value] += 1
        if verdict.kind is not None:
            self.kinds[verdict.kind.value] += 1
        if verdict.reason:
            self.reasons[verdict.reason] += 1

    def reject(self, malformed: Malformed) -> None:
        """Write a malformed record; raises NearDupError if there is no file for it."""
        if self.rejects is None:
            raise NearDupError(f"{malformed.place}: {malformed.why}. To skip such records, name a file with --rejects.")
        if self._file is None:
            self._file = self.enter_context(self.enter_context(replace_file(self.rejects)).open("wb"))
        record = malformed.raw.decode("utf-8", "backslashreplace")
        self._file.write(writers.as_json({"place": malformed.place, "why": malformed.why, "record": record}) + b"\n")
        self.malformed += 1

    def describe(self, place: str, config: Config, *, is_json: bool) -> str:
        """Return all counts as text, or as one JSON object; ``place`` is the output."""
        return as_json(self._as_data(), indent=None) if is_json else "\n".join(self._lines(place, config.lang or "en"))

    def _as_data(self) -> dict[str, Any]:
        return {
            "records": self.verdicts.total(),
            "verdicts": {outcome.value: self.verdicts[outcome.value] for outcome in Outcome},
            "kinds": dict(self.kinds),
            "unjudged": dict(self.reasons),
            "skipped": dict(self.skipped),
            "written": self.written,
            "malformed": self.malformed,
            "rejects": str(self.rejects) if self.malformed else None,
        }

    def _lines(self, place: str, language: str) -> Iterator[str]:
        words = Words(language)
        outcomes = (one.value for one in Outcome if one.value not in RARE_VERDICTS or self.verdicts[one.value])
        verdicts = words("comma").join(words(f"verdict.{one}", self.verdicts[one]) for one in outcomes)
        yield words("closing.dedup", self.verdicts.total(), verdicts=verdicts, written=f"{self.written:,}", place=place)
        for what, counts in (("kinds", self.kinds), ("unjudged", self.reasons), ("skipped", self.skipped)):
            if counts:
                named = words("closing.named", what=words(f"closing.{what}"))
                yield f"  {named}{', '.join(f'{count:,} {one_line(name)}' for name, count in counts.most_common())}"
        if self.malformed:
            yield f"{format_count(self.malformed, 'malformed record')} written to {self.rejects}, with the reason."
