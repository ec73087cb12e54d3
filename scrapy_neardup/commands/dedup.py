"""``scrapy neardup dedup``: the verdicts of a crawl on what is already on disk."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from scrapy_neardup.commands.making import OPTION, opened_or_made
from scrapy_neardup.commands.opening import add_strict, config_of, warn
from scrapy_neardup.commands.output import method_spec, progress, write
from scrapy_neardup.commands.rejects import Rejects, opened_rejects
from scrapy_neardup.commands.superseded import Superseded
from scrapy_neardup.commands.tally import Tally
from scrapy_neardup.commands.wording import as_json, counted
from scrapy_neardup.config import AUTO, DEFAULT_FIELDS, Config, many_workers, read_keep_policy
from scrapy_neardup.crawl.state import page_extractor
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.inputs import FORMATS, Entry, InputRecord, Malformed, Skipped, read_input
from scrapy_neardup.judging.ahead import NOTHING, Ahead, ReadAhead
from scrapy_neardup.judging.detector import Detector
from scrapy_neardup.judging.preference import KeepPolicy, Preference, make_preference
from scrapy_neardup.judging.preparer import Preparing, TextTerms
from scrapy_neardup.judging.recipe import check_tools, state_recipe, take_over
from scrapy_neardup.judging.records import Batch, Judged
from scrapy_neardup.judging.shared_now import judging_now
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.model import Verdict
from scrapy_neardup.oneline import one_line
from scrapy_neardup.outputs import WRITERS, Writer, opened_output, output_format
from scrapy_neardup.page.cores import workers_by_machine
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.report.words import Words
from scrapy_neardup.stores import STORES, Keep, MemoryStore, Store, close_store, open_store, open_temporary, parse_url

NAME = "dedup"
HELP = "Drop or tag near-duplicates in files: feeds, sheets, Parquet, folders of HTML, web archives."
#: Pages for which no workers are started that nobody asked for.
_FEW = 100
#: The same of texts, in characters: reading so many takes as long as to start a process.
_FEW_CHARACTERS = 2_000_000
#: Seconds after which a thread that has an answer for a process, or from it, is let in while this one judges. With
#: Python's own five milliseconds, a process would wait for its next texts as long as it takes for them.
_SWITCH = 0.0005
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
    spec = method_spec(arguments.method) if arguments.method else (config.method, config.parameters)
    method = make_method(*spec) if arguments.method else config.make_method()
    format = output_format(arguments.output, arguments.output_format)
    _check_places(arguments.input, arguments.output)
    fields = {part: getattr(arguments, part) or name for part, name in config.fields.items()}
    policy = _keep_policy(arguments.keep_policy) if arguments.keep_policy else config.keep_policy
    preference = make_preference(policy)
    tally = Tally()
    apart, pool = config.make_apart(), config.make_workers()
    with (
        _state(arguments.store, method, config) as store,
        closing(apart) if apart else nullcontext(),
        closing(pool) if pool else nullcontext(),
        _preparing(spec, store, config) as texts,
    ):
        detector = Detector(
            method,
            store,
            min_letters=config.min_letters,
            who=f"{NAME} {' '.join(arguments.input)}",
            also_copies=config.also_copies,
            passes=_passes(config, tag=arguments.tag),
            keep=config.keep if arguments.store else Keep.NOTHING,
            preference=preference,
        )
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
            few = (_FEW, _FEW_CHARACTERS) if config.workers == AUTO else (0, 0)
            ahead = Ahead(batch.coming, pool, texts, after=few[0], after_characters=few[1]) if pool or texts else None
            found = ahead.read(entries) if ahead else ((entry, NOTHING) for entry in entries)
            passed = _judge_all(found, batch, detector.passes, rejects, tally)
            _write_all(passed, out, tally, tag=arguments.tag, preference=preference)
        if store.lasts:
            detector.seal()  # only now: the records that are not sealed are those of an output that was not written
            detector.end()
    if tally.without_content:
        sys.stderr.write(
            f"{NAME}: no record has a field {fields['text']!r} or {fields['html']!r}, so none was judged. The first "
            f"one has: {one_line(', '.join(tally.first)) or 'nothing'}. Say with --text or --html which it is.\n"
        )
    if out.formulas and not arguments.spreadsheet:
        sys.stderr.write(
            f"{NAME}: {counted(out.formulas, 'cell')} of the table would be run as formulas by a spreadsheet, as they "
            "begin with =, +, - or @. Before you open it in one, write it with --spreadsheet, or as .xlsx.\n"
        )
    _tell(tally, rejects, arguments, Words(config.lang or "en"))
    return 1 if rejects.count else 0


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


@contextmanager
def _preparing(spec: tuple[str, Mapping[str, Any]], store: Store, config: Config) -> Iterator[Preparing | None]:
    """What fingerprints texts ahead; None where they are fingerprinted one after the other."""
    many = text_workers(workers_by_machine()) if config.workers == AUTO else int(config.workers)
    terms = TextTerms(*spec, store.hashes, config.worker_seconds)
    if not many or store.is_shared or not terms.can_be_sent:
        yield None
        return
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH)
    try:
        with closing(Pool(terms, many, "neardup-text")) as pool:
            yield Preparing(pool)
    finally:
        sys.setswitchinterval(before)


def text_workers(many: int) -> int:
    """How many processes fingerprint texts where so many would read HTML, and nobody has said it.

    It and this one are to have a core each. More would wait, as judging is the slower part.

    >>> [text_workers(many) for many in range(5)]
    [0, 0, 1, 1, 1]
    """
    return min(many // 2, 1)


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


@contextmanager
def _state(asked: str | None, method: Method, config: Config) -> Iterator[Store]:
    """The state that was asked for, made if it is not there; else one that goes with the command."""
    if asked and parse_url(asked, OPTION)[0].lasts:
        recipe = state_recipe(method, page_extractor(config))
        with opened_or_made(asked, recipe, config.secret, options=config.store_options) as store:
            check_tools(store, strict=config.strict, say=warn)
            if changed := take_over(store, recipe, config.deciding(method)):
                warn(f"The state at {store.location} {changed}.")
            yield store
        return
    recipe = method.recipe()  # whether others read alike takes a quarter of a second to tell, and nobody will ask
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        if asked or method.memory_only:
            store = open_store(asked or MemoryStore.form(), recipe, OPTION, config.secret)
        else:
            store = open_temporary(Path(folder), recipe, config.secret, config.store_options)
        try:
            yield store
        finally:
            close_store(store)


def _tell(tally: Tally, rejects: Rejects, arguments: argparse.Namespace, words: Words) -> None:
    """The numbers; on standard error if standard output has the records."""
    say = sys.stderr.write if arguments.output == "-" else write
    if arguments.json:
        say(as_json({**tally.as_data(), **rejects.as_data()}, indent=None) + "\n")
        return
    place = words("closing.standard_output") if arguments.output == "-" else arguments.output
    say("\n".join([*tally.as_lines(place, words), *rejects.as_lines()]) + "\n")
