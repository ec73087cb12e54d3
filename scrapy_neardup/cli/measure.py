"""``scrapy neardup evaluate``: compare methods with labels."""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.command import (
    command,
    config_of,
    flag,
    format_parameters,
    method_option,
    option,
    parse_method,
)
from scrapy_neardup.cli.output import (
    as_json,
    format_count,
    format_table,
    progress,
    to_line,
    warn,
    write,
)
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.inspect import as_data
from scrapy_neardup.lab.documents import DocumentReader, Spool, open_spool
from scrapy_neardup.lab.evaluate import Score, evaluate, find_threshold
from scrapy_neardup.lab.labels import Label, read_labels
from scrapy_neardup.methods import METHODS, Method, make_method
from scrapy_neardup.methods.cascade.parameters import METHOD, PROFILES
from scrapy_neardup.model import Page, Verdict
from scrapy_neardup.settings import Config
from scrapy_neardup.untrusted import one_line


def read_documents(command: str, config: Config, *names: Path, id_field: str = "id") -> Iterator[Page]:
    """Yield the documents of files, read as a crawl with these settings would.

    ``id_field`` names a document, empty for its URL. Records without a document are a warning at the end. Raises
    NearDupError if there is no document.
    """
    count = 0
    with config.open_source(hashes_items=False) as source:
        reader = DocumentReader(source, id_field)
        for page in progress(reader.read(*names), what="documents read"):
            count += 1
            yield page
    if reader.left_out:
        why = ", ".join(f"{number:,} {one_line(reason)}" for reason, number in reader.left_out.most_common())
        warn(f"{command}: left out: {why}.")
    if not count:
        where = ", ".join("standard input" if str(name) == STDIN else str(name) for name in names)
        raise NearDupError(
            f"{where} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )


@command(
    "evaluate",
    option("corpus CORPUS", "documents: a file of any format or a folder, in crawl order", nargs="+", type=Path),
    option("--pairs FILE", "pairs that a person labelled (default: gold.jsonl beside the documents)", type=Path),
    option("--id FIELD", 'the field that names a document (default: id; "": its URL)', default="id"),
    method_option(", or all; may be repeated (default: cascade, by NEARDUP_PROFILE)", action="append"),
    flag("--sweep", "try several values of the threshold, one line each"),
    option("--verdicts FILE", "write the verdicts to this file, as JSON lines"),
    flag("--json", "print one JSON object per line"),
    examples="""\
labels:
  {"a": id of the earlier, "b": id of the later, "drop": "yes", "no" or "unsure", "label": any word} per line, or a
  table. Would a publisher who wants each article once drop the later page? 'judgements -o' writes such a file.

examples:
  scrapy neardup judgements -o labels.jsonl
  scrapy neardup evaluate crawl.jsonl --id "" --pairs labels.jsonl --method all
  scrapy neardup evaluate crawl.jsonl --id "" --pairs labels.jsonl --sweep
""",
)
def score_methods(arguments: argparse.Namespace) -> int:
    """Print the scores; return 1 if some of several methods failed."""
    config = config_of(arguments)
    default = MethodSpec(METHOD, dict(PROFILES[config.profile]))
    specs = list(_parse_methods(arguments.method)) if arguments.method else [default]
    if arguments.verdicts and (len(arguments.corpus) > 1 or len(specs) > 1 or arguments.sweep):
        raise SettingsError("--verdicts works with one method on one corpus, without --sweep. Name one of each.")
    with ExitStack() as stack:
        corpora = []
        for path in arguments.corpus:
            name, folder = path.resolve().name, path if path.is_dir() else path.parent
            documents = stack.enter_context(open_spool(read_documents("evaluate", config, path, id_field=arguments.id)))
            file = arguments.pairs or find_file(folder, "gold.jsonl") or folder / "gold.jsonl"
            corpora.append((name, documents, read_labels(file, documents.places, {name, folder.resolve().name})))
        if not any(labels for _, _, labels in corpora):
            names = " or ".join(name for name, *_ in corpora)
            raise SettingsError(f'No label is about {names}. Check "corpus" in the lines of the file.')
        return 1 if sum(_report(*corpus, specs, arguments) for corpus in corpora) else 0


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """A method that the user named."""

    name: str
    parameters: dict[str, Any]

    @property
    def text(self) -> str:
        """The method as on the command line."""
        return f"{self.name}:{format_parameters(self.parameters)}" if self.parameters else self.name


def _parse_methods(texts: list[str]) -> Iterator[MethodSpec]:
    """Yield the methods. Raises NearDupError for one that cannot be made, unless it is one of ``all``."""
    for text in texts:
        name, parameters = parse_method(text)
        if name != "all":
            make_method(name, parameters)
        yield from (MethodSpec(one, parameters) for one in (METHODS if name == "all" else [name]))


#: In a sweep, name and value of the threshold; then the score, or the error in its place.
_Result = tuple[dict[str, Any], Score | NearDupError]


def _report(
    name: str, documents: Spool, labels: list[Label], specs: list[MethodSpec], arguments: argparse.Namespace
) -> int:
    """Evaluate the methods on a corpus, and print; return how many failed. The error of the only method is raised."""
    rows, failures = [], []
    for spec in specs:
        for value, score in _evaluate(documents, labels, spec, arguments):
            if isinstance(score, NearDupError):
                if len(specs) == 1:
                    raise score
                failures.append(f"{spec.text}: {score}\n")
                figures = {"method": spec.name, "parameters": spec.parameters, "error": str(score)}
            else:
                figures = as_data(score)
                rows += list(_score_rows(" ".join([spec.text, *map(str, value.values())]), score))
            if arguments.json:
                write(as_json({"corpus": name, **value, **figures}, indent=None) + "\n")
    if not arguments.json:
        unsure = sum(one.is_copy is None for one in labels)
        pairs = format_count(len(labels) - unsure, "labelled pair") + (f", {unsure:,} unsure" if unsure else "")
        columns = ("method", "label", "agreement", "dropped wrongly", "kept wrongly", "ms/page", "bytes/page")
        table = format_table(columns, rows, words=2)
        write(f"{name}: {format_count(len(documents), 'document')}, {pairs}\n\n{table}\n\n{''.join(failures)}")
    return len(failures)


def _evaluate(
    documents: Spool, labels: list[Label], spec: MethodSpec, arguments: argparse.Namespace
) -> Iterator[_Result]:
    """Yield the score of a method, or its error; in a sweep one for each value of its threshold."""
    try:
        method = make_method(spec.name, spec.parameters)
        tried: list[tuple[dict[str, Any], Method]] = [({}, method)]
        if arguments.sweep:
            name = find_threshold(method)
            tried = [
                ({"threshold": name, "value": value}, make_method(spec.name, {**spec.parameters, name: value}))
                for value in type(method).sweep
            ]
        for value, method in tried:
            with _open_verdicts(arguments.verdicts, labels) as on_verdict:
                watch = partial(progress, total=len(documents))
                yield value, evaluate(method, documents, labels, progress=watch, on_verdict=on_verdict)
    except NearDupError as error:
        yield {}, error


@contextmanager
def _open_verdicts(path: str | None, labels: list[Label]) -> Iterator[Callable[[Page, Verdict], None]]:
    """Open a writer of verdicts, which adds the labels; it does nothing without a file."""
    if path is None:
        yield lambda page, verdict: None
        return
    by_page: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_page[label.b].append(label)
    try:
        with Path(path).open("w", encoding="utf-8") as file:

            def on_verdict(page: Page, verdict: Verdict) -> None:
                row = _verdict_row(page, verdict, by_page.get(page.url, []))
                file.write(json.dumps(row) + "\n")

            yield on_verdict
    except OSError as error:
        raise NearDupError(f"The verdicts cannot be written to {path}: {error}. Name another file.") from None


def _verdict_row(page: Page, verdict: Verdict, labels: list[Label]) -> dict[str, Any]:
    match = verdict.match if verdict.is_copy else None
    return {
        "id": page.url,
        "original": match.url if match else None,
        "verdict": verdict.kind.value,
        "kind": verdict.kind_of_likeness,
        "similarity": round(match.similarity, 3) if match else None,
        "labels": [
            {"a": one.a, "drop": one.drop, "label": one.sort, "agrees": one.agrees(dropped=verdict.is_copy)}
            for one in labels
        ],
    }


def _score_rows(method: str, score: Score) -> Iterator[list[str]]:
    """Yield a row for all pairs with the cost, and one for each label if there are several."""
    labels = score.by_label if len(score.by_label) > 1 else {}
    for name, one in {"": score.agreement, **labels}.items():
        cost = ["", ""] if name else [f"{score.ms_per_page:.2f}", f"{score.bytes_per_page:.0f}"]
        dropped, kept = f"{one.dropped_wrongly}/{one.different}", f"{one.kept_wrongly}/{one.copies}"
        yield [method, to_line(name) or "all", f"{one.agree}/{one.pairs}", dropped, kept, *cost]
