"""``scrapy neardup dedup``: the verdicts of a crawl on what is already on disk."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

from scrapy_neardup.commands.dedup_state import state_for
from scrapy_neardup.commands.opening import add_strict, config_of
from scrapy_neardup.commands.output import method_spec, progress, write
from scrapy_neardup.commands.rejects import Rejects, opened_rejects
from scrapy_neardup.commands.superseded import Superseded
from scrapy_neardup.commands.tally import Tally
from scrapy_neardup.commands.wording import as_json, counted
from scrapy_neardup.commands.workers import preparing, reading
from scrapy_neardup.config import AUTO, DEFAULT_FIELDS, Config, many_workers, read_keep_policy
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import FORMATS, Entry, InputRecord, Malformed, Skipped, read_input
from scrapy_neardup.judging.ahead import NOTHING, Ahead, ReadAhead
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.preference import KeepPolicy, Preference, make_preference
from scrapy_neardup.judging.preparer import Preparing
from scrapy_neardup.judging.reader import Readers
from scrapy_neardup.judging.records import Batch, Judged
from scrapy_neardup.judging.shared_now import judging_now
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import one_line
from scrapy_neardup.outputs import WRITERS, Writer, opened_output, output_format
from scrapy_neardup.report.words import Words
from scrapy_neardup.stores import STORES, Keep, Store

NAME = "dedup"
HELP = "Drop or tag near-duplicates in files: feeds, sheets, Parquet, folders of HTML, web archives."
#: Pages for which no workers are started that nobody asked for.
_FEW = 100
#: The same of texts, in characters: reading so many takes as long as to start a process.
_FEW_CHARACTERS = 2_000_000
EXAMPLES = """\
inputs:
  feed.jsonl, .jl       JSON lines; also .json (an array), .csv, .tsv, .xml (Scrapy's feeds)
  sheet.xlsx            each sheet with a row of names on top            (extra: files)
  table.parquet                                                          (extra: parquet)
  pages/                a folder of HTML files, with all folders in it
  crawl.warc.gz, .wacz  HTML responses with status 200                   (extra: files)
  -                     standard input: JSON lines, or what --format says
  .gz, .bz2, .xz and .zst are unpacked (.zst: extra files).

  Records are judged one after the other, in the order of the inputs, each against all before it: the first one of a
  group stays. A record is known by its id if it has one, else by its URL, else by its place. Two records of one name
  are two versions of a page, and never copies of each other: give ids that are unique in all inputs, or none (--id "").

which one stays:
  --keep-policy (or NEARDUP_KEEP_POLICY) says that a later one may take its place: "longest", the one with the longest
  article, by a tenth at least; "canonical", the one that an earlier one names as its original; or hosts, best first,
  with commas between them. Hosts are those of the records' names, so where they have ids too it takes --id "". Records
  then wait in a temporary file until all are judged, and superseded ones are not written; with --tag all are, as they
  come, and the better ones say what they supersede. What an earlier run has written stays as it is.

output:
  OUT gets the records that are no copies; with --tag all of them, each with its verdict in the field "neardup":
    {"verdict": "duplicate", "kind": "near", "original": "a17", "similarity": 0.93, "shared": ["…"], …}
  Its name says the format: .jsonl, .json, .csv, .tsv, .xml, .xlsx, .parquet, also packed. JSON lines stay as they
  stand, and the tag is put in. HTML and archives give url or path, title, keywords, description and text.
  In CSV and TSV a title such as =SUM(A1) is written as it is, and a spreadsheet would run it: --spreadsheet puts a '
  before it, here and in the columns of the verdict. In .xlsx it is a text anyway.
  It takes its place, and the state counts the pages, once all has been read; after an error neither has changed.

  Malformed records go to --rejects, each with its place and what is wrong; the exit code is 1 then.

the state:
  Without --store it ends with the command: some 40 MB in memory, and what is more in a temporary folder; with --store
  memory: all of it is in memory. With one that lasts, records are judged against all pages that it holds, and a crawl
  that uses it will know them. A crawl knows pages by their URL: use --id "" where records have both.

examples:
  scrapy neardup dedup feed.jsonl -o clean.jsonl
  scrapy neardup dedup monday.csv tuesday.csv -o tagged.jsonl.gz --tag
  zcat feed.gz | scrapy neardup dedup - --text body --id article_id > clean.jsonl
  scrapy neardup dedup archive.warc.gz pages/ -o articles.parquet
  scrapy neardup dedup old.jsonl -o kept.jsonl --id "" --store leveldb:///var/crawls/state
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("input", nargs="+", metavar="INPUT", help="a file or folder, or - for standard input")
    parser.add_argument("-o", dest="output", default="-", metavar="OUT", help="(default: standard output)")
    parser.add_argument("--tag", action="store_true", help="write every record, with its verdict")
    parser.add_argument("--store", metavar="URL", help=f"a state: {STORES.forms()}")
    parser.add_argument(
        "--method",
        metavar="NAME[:PARAMETER=VALUE,…]",
        help=f"one of {', '.join(METHODS)} (default: the project's, else cascade)",
    )
    add_strict(parser)
    parser.add_argument(
        "--keep-policy", metavar="POLICY", help="which copy stays: first, longest, canonical, or hosts (default: first)"
    )
    parser.add_argument("--rejects", metavar="FILE", help="where malformed records go (default: OUT.rejects.jsonl)")
    parser.add_argument("--format", choices=FORMATS, default="", help="that of the inputs (default: by their names)")
    parser.add_argument("--output-format", choices=WRITERS, default="", help="(default: by the name of OUT)")
    parser.add_argument("--spreadsheet", action="store_true", help="CSV, TSV: formulas as texts, by a ' before them")
    parser.add_argument(
        "--workers",
        metavar="N",
        help="read pages of HTML and texts in N processes, or auto: by the cores there are (default: NEARDUP_WORKERS)",
    )
    parser.add_argument("--json", action="store_true", help="tell the numbers as a JSON object")
    names = parser.add_argument_group("fields", "What holds what, where the names differ from these.")
    names.add_argument("--id", default="id", metavar="FIELD", help='(default: id; "": records are known by their URL)')
    for part, name in DEFAULT_FIELDS.items():
        names.add_argument(f"--{part}", metavar="FIELD", help=f"(default: {name or 'none'}, or as in NEARDUP_FIELDS)")


def run(arguments: argparse.Namespace) -> int:
    """Judge all records and write those that are wanted; 1 if any was malformed, else 0."""
    config = config_of(arguments)
    if arguments.workers:
        config = replace(config, workers=many_workers("--workers", arguments.workers))
    if arguments.method:
        name, parameters = method_spec(arguments.method)
        method, config = make_method(name, parameters), replace(config, method=name, parameters=parameters)
    else:
        method = config.make_method()
    format = output_format(arguments.output, arguments.output_format)
    _check_places(arguments.input, arguments.output)
    fields = {part: getattr(arguments, part) or name for part, name in config.fields.items()}
    policy = _keep_policy(arguments.keep_policy) if arguments.keep_policy else config.keep_policy
    preference = make_preference(policy)
    tally = Tally()
    apart = config.make_apart()
    with (
        state_for(arguments.store, method, config) as store,
        closing(apart) if apart else nullcontext(),
        reading(store, config) as pages,
        preparing(store, config) as texts,
    ):
        detector = _detector(method, store, config, arguments, preference)
        with (
            closing(judging_now(detector, config.wait)) as now,
            opened_output(arguments.output, format, config.tag_field, for_spreadsheet=arguments.spreadsheet) as out,
            opened_rejects(arguments.rejects, arguments.output) as rejects,  # in its place before the output is
        ):
            batch = Batch(
                now,
                fields=fields,
                id_field=arguments.id,
                max_html=config.max_html,
                extractor=page_extractor(config),
                max_text=config.max_text,
                apart=apart.read if apart else None,
            )
            entries = progress(_entries(arguments.input, arguments.format), what="records")
            found = _read_ahead(entries, batch, pages, texts, config)
            passed = _judge_all(found, batch, detector.passes, rejects, tally)
            _write_all(passed, out, tally, tag=arguments.tag, preference=preference)
        if store.lasts:
            detector.seal()  # only now: the records that are not sealed are those of an output that was not written
            detector.end()
    _advise(tally, fields, 0 if arguments.spreadsheet else out.formulas)
    _tell(tally, rejects, arguments, Words(config.lang or "en"))
    return 1 if rejects.count else 0


def _detector(
    method: Method, store: Store, config: Config, arguments: argparse.Namespace, preference: Preference | None
) -> Detector:
    return Detector(
        method,
        store,
        min_letters=config.min_letters,
        who=f"{NAME} {' '.join(arguments.input)}",
        also_copies=config.also_copies,
        passes=_passes(config, tag=arguments.tag),
        keep=config.keep if arguments.store else Keep.NOTHING,
        preference=preference,
    )


def _read_ahead(
    entries: Iterable[InputRecord], batch: Batch, pages: Readers | None, texts: Preparing | None, config: Config
) -> Iterator[tuple[InputRecord, ReadAhead]]:
    """The records, each with what processes have read of it while others were judged."""
    if not (pages or texts):
        return ((entry, NOTHING) for entry in entries)
    few, few_characters = (_FEW, _FEW_CHARACTERS) if config.workers == AUTO else (0, 0)
    return Ahead(batch.coming, pages, texts, after=few, after_characters=few_characters).read(entries)


def _judge_all(
    entries: Iterator[tuple[InputRecord, ReadAhead]],
    batch: Batch,
    passes: Callable[[Verdict], bool],
    rejects: Rejects,
    tally: Tally,
) -> Iterator[tuple[Judged, Entry]]:
    """The records that pass, as they come."""
    for entry, found in entries:
        if isinstance(entry, Malformed):
            rejects.take(entry)
            continue
        if isinstance(entry, Skipped):
            tally.skipped[entry.why] += 1
            continue
        judged = batch.judge(entry, found)
        tally.add(judged.verdict, entry.fields)
        if passes(judged.verdict):
            yield judged, entry


def _write_all(
    passed: Iterator[tuple[Judged, Entry]], out: Writer, tally: Tally, *, tag: bool, preference: Preference | None
) -> None:
    """Write them as they come; where a later one may take the place of an earlier one, when all have come."""
    if tag or preference is None:
        for judged, entry in passed:
            _write(judged, entry.line, entry.place, out, tally, tag=tag)
        return
    with Superseded() as waiting:
        for judged, entry in passed:
            waiting.add(judged, entry)
        for one in waiting:
            _write(one.judged, one.line, one.place, out, tally, tag=tag)


def _write(judged: Judged, line: bytes, place: str, out: Writer, tally: Tally, *, tag: bool) -> None:
    try:
        out.write(judged.fields, judged.verdict.as_tag() if tag else None, line)
    except NearDupError as error:
        raise NearDupError(f"{place}: {error}") from None
    tally.written += 1


def _keep_policy(given: str) -> KeepPolicy:
    """What --keep-policy says; hosts may have commas between them."""
    hosts = given.split(",") if "." in given and not given.lstrip().startswith("[") else None
    return read_keep_policy("--keep-policy", hosts or given)


def _passes(config: Config, *, tag: bool) -> Callable[[Verdict], bool]:
    """Whether a record with a verdict is written."""
    return lambda verdict: tag or config.passes(verdict)


def _entries(names: list[str], format: str) -> Iterator[InputRecord]:
    for name in names:
        yield from read_input(name, format)


def _check_places(inputs: list[str], output: str) -> None:
    """Raise NearDupError if the output would take the place of an input, of which it is but a part."""
    for name in inputs:
        there = "-" not in (name, output) and Path(output).exists() and Path(name).exists()
        if there and Path(name).samefile(output):
            raise NearDupError(f"{output} is an input too, and would be replaced; name another file with -o.")


def _advise(tally: Tally, fields: Mapping[str, str], formulas: int) -> None:
    """What to do about records without a text, and about so many formulas."""
    if tally.without_content:
        sys.stderr.write(
            f"{NAME}: no record has a field {fields['text']!r} or {fields['html']!r}, so none was judged. The first "
            f"one has: {one_line(', '.join(tally.first)) or 'nothing'}. Say with --text or --html which it is.\n"
        )
    if formulas:
        sys.stderr.write(
            f"{NAME}: {counted(formulas, 'cell')} of the table would be run as formulas by a spreadsheet, as they "
            "begin with =, +, - or @. Before you open it in one, write it with --spreadsheet, or as .xlsx.\n"
        )


def _tell(tally: Tally, rejects: Rejects, arguments: argparse.Namespace, words: Words) -> None:
    """The numbers; on standard error if standard output has the records."""
    say = sys.stderr.write if arguments.output == "-" else write
    if arguments.json:
        say(as_json({**tally.as_data(), **rejects.as_data()}, indent=None) + "\n")
        return
    place = words("closing.standard_output") if arguments.output == "-" else arguments.output
    say("\n".join([*tally.as_lines(place, words), *rejects.as_lines()]) + "\n")
