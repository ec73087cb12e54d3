"""``scrapy neardup dedup``: drop or tag near-duplicates in files."""

from __future__ import annotations

import argparse
import pickle
import tempfile
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.command import (
    METHOD,
    RECORD_FIELDS,
    STORE,
    command,
    config_of,
    fields_of,
    flag,
    format_option,
    method_of,
    name_method,
    option,
)
from scrapy_neardup.cli.opening import open_or_make_state
from scrapy_neardup.cli.output import as_json, check_outputs, format_count, progress, warn, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import InputRecord, Malformed, Skipped, read_input, writers
from scrapy_neardup.files.writers import WRITERS, find_output_format, open_output
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Preference, make_preference
from scrapy_neardup.judge.recipes import need_lasting_method, state_recipe, take_over
from scrapy_neardup.judge.records import Batch, Judged, make_immediate_judge
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.page.extraction import Answer
from scrapy_neardup.report.words import Words
from scrapy_neardup.settings import AUTO, Config, many_workers, read_keep_policy
from scrapy_neardup.state.evidence import Keep
from scrapy_neardup.state.exact_counts import ExactCounts
from scrapy_neardup.state.opening import close_store, open_store, open_temporary
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.urls import STORES, parse_url
from scrapy_neardup.untrusted import one_line
from scrapy_neardup.workers.pool import read_ahead

#: With NEARDUP_WORKERS = "auto", workers start only after so many pages.
_FEW = 100


@command(
    "dedup",
    option("input INPUT", "a file or folder, or - for standard input", nargs="+"),
    option("-o OUT", "(default: standard output)", dest="output", default="-"),
    flag("--tag", "write every record, with its verdict"),
    option("--store URL", f"a state: {STORES.forms()}"),
    METHOD,
    option(
        "--counts KIND", "boilerplate counts: fixed or exact; see below (default: fixed)", choices=("fixed", "exact")
    ),
    option("--keep-policy POLICY", "which record stays: first, longest, canonical, or hosts (default: first)"),
    option("--rejects FILE", "file for malformed records (default: OUT.rejects.jsonl)"),
    format_option("the inputs"),
    option("--output-format", "(default: by the suffix of OUT)", choices=WRITERS, default=""),
    flag("--spreadsheet", "CSV: put a ' before cells that are formulas, and write what Excel needs"),
    option("--workers N", "read HTML in N worker processes; auto: one per core (default: NEARDUP_WORKERS)"),
    flag("--json", "print the counts as one JSON object"),
    RECORD_FIELDS,
    examples="""\
the rules:
  The first of similar records stays, as in a crawl. A record is known by its id, else by its URL, else by its place; of
  two with one name the later is a version of the earlier. Crawls know pages by URL: with --store, use --id "".

  The output and the state change only after all input is read. --counts exact counts boilerplate without a bound: it
  reads every record, takes some 4 KB of memory for each, and works without --store and --keep-policy.

examples:
  scrapy neardup dedup feed.jsonl -o clean.jsonl
  scrapy neardup dedup monday.csv archive.warc.gz pages/ -o tagged.jsonl.gz --tag
  zcat feed.gz | scrapy neardup dedup - --text body --id article_id > clean.jsonl
  scrapy neardup dedup old.jsonl -o kept.jsonl --id "" --store leveldb:///var/crawls/state
""",
)
def deduplicate(arguments: argparse.Namespace) -> int:
    """Judge all records, and write those that pass; return 1 if a record was malformed."""
    config, method = _configure(arguments)
    format = find_output_format(arguments.output, arguments.output_format)
    rejects = Rejects(arguments.rejects, arguments.output)
    check_outputs(arguments.input, arguments.output, rejects.path)
    fields = fields_of(arguments, config)
    preference = make_preference(config.keep_policy)
    is_exact = arguments.counts == "exact"
    if is_exact:
        _check_exact(arguments.store, preference)
    tally = Tally()
    with _open_state(arguments.store, method, config) as store, ExitStack() as stack:
        if page_pool := config.make_page_pool():
            stack.enter_context(closing(page_pool))
        policy = replace(
            config.make_policy(),
            passes=lambda verdict: arguments.tag or config.passes(verdict),
            keep=config.keep if arguments.store else Keep.NOTHING,
            preference=preference,
        )
        if is_exact:
            store.use_exact_counts(ExactCounts())
        detector = Detector(method, store, who=f"dedup {' '.join(arguments.input)}", policy=policy)
        with (
            closing(make_immediate_judge(detector, config.wait)) as judge,
            open_output(arguments.output, format, config.tag_field, for_spreadsheet=arguments.spreadsheet) as out,
            rejects,  # closed before the output is
        ):
            bodies = None if is_exact else detector.bodies
            source = config.open_source(fields, bodies=bodies, hashes_items=store.is_shared)
            batch = Batch(judge, stack.enter_context(source), arguments.id)
            records = (record for name in arguments.input for record in read_input(name, arguments.format))
            read: Iterable[tuple[InputRecord, Answer | None]]
            read = ((record, None) for record in progress(records, what="records"))
            if page_pool is not None:
                few = _FEW if config.workers == AUTO else 0
                read = read_ahead(progress(records, what="records"), batch.coming, page_pool, first_pages=few)
            passed = _judge(read, batch, detector.policy.passes, rejects, tally)
            if preference is not None and not arguments.tag:
                passed = leave_out_superseded(passed)
            for judged, line, place in passed:
                try:
                    out.write(judged.fields, judged.verdict.as_tag() if arguments.tag else None, line)
                except NearDupError as error:
                    raise NearDupError(f"{place}: {error}") from None
                tally.written += 1
        if store.is_persistent:
            detector.seal()  # only now, because without an output its records must be rolled back
            detector.end()
    _advise(tally, fields, 0 if arguments.spreadsheet else out.formulas)
    words = Words(config.lang or "en")
    if arguments.output == "-":  # standard output has the records
        warn(describe_outcome(tally, rejects, words("closing.standard_output"), arguments, words))
    else:
        write(f"{describe_outcome(tally, rejects, arguments.output, arguments, words)}\n")
    return 1 if rejects.count else 0


def _configure(arguments: argparse.Namespace) -> tuple[Config, Method]:
    """Return the settings as the options change them, and the method."""
    config = config_of(arguments)
    if arguments.workers:
        config = replace(config, workers=many_workers("--workers", arguments.workers))
    if text := arguments.keep_policy:
        hosts = text.split(",") if "." in text and not text.lstrip().startswith("[") else text
        config = replace(config, keep_policy=read_keep_policy("--keep-policy", hosts))
    return name_method(arguments, config), method_of(arguments, config)


def _check_exact(store: str | None, preference: Preference | None) -> None:
    """Raise SettingsError if exact counts do not work with a state or a policy."""
    if store and parse_url(store, STORE)[0].is_persistent:
        raise SettingsError(
            f"--counts exact works without a state, because exact counts are never written. Leave out {STORE}, or use "
            "--counts fixed."
        )
    if preference is not None:
        raise SettingsError(
            "--counts exact keeps the first record of each group. Leave out --keep-policy (and NEARDUP_KEEP_POLICY), "
            "or use --counts fixed."
        )


@contextmanager
def _open_state(asked: str | None, method: Method, config: Config) -> Iterator[PageStore]:
    """Open or make the state that the user named, else one that ends with the command."""
    if asked and parse_url(asked, STORE)[0].is_persistent:
        need_lasting_method(method, asked)
        recipe = state_recipe(method, config.make_extractor())
        with open_or_make_state(asked, recipe, config.secret) as store:
            take_over(store, recipe, config.deciding(method), warn=warn, inform=warn)
            yield store
        return
    recipe = method.recipe()  # without the extractor, whose check takes 0.25 seconds
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        if asked or method.memory_only:
            store = open_store(asked or "memory:", recipe, STORE, config.secret)
        else:
            store = open_temporary(Path(folder), recipe, config.secret)
        try:
            yield store
        finally:
            close_store(store)


def _judge(
    read: Iterable[tuple[InputRecord, Answer | None]],
    batch: Batch,
    passes: Callable[[Verdict], bool],
    rejects: Rejects,
    tally: Tally,
) -> Iterator[PassedRecord]:
    """Yield the records that pass."""
    for entry, answer in read:
        if isinstance(entry, Malformed):
            rejects.add(entry)
            continue
        if isinstance(entry, Skipped):
            tally.skipped[entry.why] += 1
            continue
        judged = batch.judge(entry, answer)
        tally.add(judged.verdict, entry.fields)
        if passes(judged.verdict):
            yield PassedRecord(judged, entry.line, entry.place)


def _advise(tally: Tally, fields: Mapping[str, str], formulas: int) -> None:
    """Warn if no record has a text, probably under another name, and if a spreadsheet would run cells."""
    if 0 < tally.records == tally.reasons["no_content"]:
        warn(
            f"dedup: no record has the field {fields['text']!r} or {fields['html']!r}, so none is judged. The first "
            f"record has: {one_line(', '.join(tally.first)) or 'nothing'}. Name its field with --text or --html."
        )
    if formulas:
        warn(
            f"dedup: a spreadsheet would run {format_count(formulas, 'cell')} that begin with =, + - or @ as "
            "formulas. Before you open the table in one, write it with --spreadsheet."
        )


# Counts, malformed records, superseded records

#: Malformed records that are printed; the file has them all.
_SHOWN = 10


@dataclass(slots=True)
class Tally:
    """Counts records by verdict, by kind of likeness, by reason if unjudged.

    ``skipped``: records of archives that are no pages. ``first``: the fields of the first record.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    written: int = 0
    first: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """The number of records, without malformed and skipped ones."""
        return self.verdicts.total()

    def add(self, verdict: Verdict, fields: Iterable[str] = ()) -> None:
        """Count a record with these fields."""
        self.first = self.first or tuple(fields)
        self.verdicts[verdict.kind.value] += 1
        if verdict.likeness is not None:
            self.kinds[verdict.likeness.value] += 1
        if verdict.reason:
            self.reasons[verdict.reason] += 1

    def as_data(self) -> dict[str, Any]:
        """Return the counts for JSON."""
        return {
            "records": self.records,
            "verdicts": {kind.value: self.verdicts[kind.value] for kind in Kind},
            "kinds": dict(self.kinds),
            "unjudged": dict(self.reasons),
            "skipped": dict(self.skipped),
            "written": self.written,
        }

    def as_lines(self, place: str, words: Words) -> Iterator[str]:
        """Yield the counts as text; ``place`` is the output."""
        rare = (Kind.MINOR_UPDATE, Kind.BETTER)
        kinds = (kind.value for kind in Kind if kind not in rare or self.verdicts[kind.value])
        verdicts = words("comma").join(words(f"verdict.{kind}", self.verdicts[kind]) for kind in kinds)
        yield words("closing.dedup", self.records, verdicts=verdicts, written=f"{self.written:,}", place=place)
        for what, counts in (("kinds", self.kinds), ("unjudged", self.reasons), ("skipped", self.skipped)):
            if counts:
                named = words("closing.named", what=words(f"closing.{what}"))
                yield f"  {named}{', '.join(f'{count:,} {one_line(name)}' for name, count in counts.most_common())}"


class Rejects(ExitStack):
    """Malformed records in a file of JSON lines, ``{"place": …, "why": …, "record": …}``.

    The first one makes the file: the one that the user named, else one next to the output. Bytes that are not UTF-8
    become escapes.
    """

    def __init__(self, asked: str | None, output: str) -> None:
        super().__init__()
        self.path = Path(asked) if asked else None if output == "-" else Path(f"{output}.rejects.jsonl")
        self.count = 0
        self._file: IO[bytes] | None = None
        self._shown: list[str] = []

    def add(self, malformed: Malformed) -> None:
        """Write a record; raises NearDupError if there is no file for it."""
        if self.path is None:
            raise NearDupError(
                f"{malformed.place}: {malformed.why}. To skip such records, name a file for them with --rejects."
            )
        if self._file is None:
            self._file = self.enter_context(self.enter_context(replace_file(self.path)).open("wb"))
        record = malformed.raw.decode("utf-8", "backslashreplace")
        self._file.write(writers.as_json({"place": malformed.place, "why": malformed.why, "record": record}) + b"\n")
        self.count += 1
        if self.count <= _SHOWN:
            self._shown.append(f"{one_line(malformed.place)}: {one_line(malformed.why)}")

    def as_data(self) -> dict[str, Any]:
        """Return number and file for JSON."""
        return {"malformed": self.count, "rejects": str(self.path) if self.count else None}

    def as_lines(self) -> Iterator[str]:
        """Yield the number and the first records as text; nothing if there are none."""
        if self.count:
            yield f"{format_count(self.count, 'malformed record')} written to {self.path}:"
            yield from (f"  {line}" for line in self._shown)
            if self.count > _SHOWN:
                yield f"  and {self.count - _SHOWN:,} more"


def describe_outcome(tally: Tally, rejects: Rejects, place: str, arguments: argparse.Namespace, words: Words) -> str:
    """Return all counts as text, or with ``--json`` as one object; ``place`` is the output."""
    if arguments.json:
        return as_json({**tally.as_data(), **rejects.as_data()}, indent=None)
    return "\n".join([*tally.as_lines(place, words), *rejects.as_lines()])


class PassedRecord(NamedTuple):
    """A record that passes, with its line and its place in the input."""

    judged: Judged
    line: bytes
    place: str


def leave_out_superseded(passed: Iterable[PassedRecord]) -> Iterator[PassedRecord]:
    """Yield the records that no later one supersedes, in order.

    They wait in a temporary file until all are judged, with 16 bytes of each in memory. Pages of earlier runs stay.
    """
    ids, numbers = array("Q"), array("Q")  # ids ascend
    superseded: set[int] = set()
    #: Group -> ids of the records that stand for it. A group without an entry has the record that named it.
    standing: dict[int, list[int]] = {}
    count = 0
    with tempfile.TemporaryFile() as file:
        for record in passed:
            pickle.dump(record, file)
            verdict = record.judged.verdict
            if verdict.id:
                ids.append(verdict.id)
                numbers.append(count)
            count += 1
            if not verdict.group:
                continue
            stand = standing.setdefault(verdict.group, [verdict.group])
            if verdict.kind is Kind.BETTER:
                for id in stand:
                    at = bisect_left(ids, id)
                    if at < len(ids) and ids[at] == id:
                        superseded.add(numbers[at])
                stand.clear()
            stand.append(verdict.id)
        file.seek(0)
        for number in range(count):
            waiting: PassedRecord = pickle.load(file)  # noqa: S301  # written above, to a file without a name
            if number not in superseded:
                yield waiting
