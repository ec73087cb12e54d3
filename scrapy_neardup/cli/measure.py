"""``scrapy neardup evaluate``: compare methods with labels."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy_neardup.cli.command import JSON_LINES, command, option
from scrapy_neardup.cli.output import as_json, format_count, format_table, progress, to_line, warn, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN
from scrapy_neardup.inspect.evaluation import Label, evaluate, read_labels
from scrapy_neardup.inspect.sources import read_documents
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.methods.cascade.parameters import METHOD, PROFILES
from scrapy_neardup.model import Page
from scrapy_neardup.settings import Config
from scrapy_neardup.untrusted import one_line

#: A comma before another parameter; other commas belong to a value.
_NEXT = re.compile(r",(?=\s*\w+\s*=)")
#: Wrong verdicts to print.
_SHOWN = 20


@command(
    option("corpus CORPUS", "documents: a file of any format or a folder, in crawl order"),
    option("--pairs FILE", "pairs that a person labelled", type=Path, required=True),
    option("--id FIELD", 'the field that names a document (default: id; "": its URL)', default="id"),
    option(
        "--method NAME[:PARAMETER=VALUE,…]",
        f"one of {', '.join(METHODS)}, or all; may be repeated (default: cascade, by NEARDUP_PROFILE)",
        action="append",
    ),
    JSON_LINES,
    examples="""\
labels:
  {"a": id of the earlier, "b": id of the later, "drop": "yes", "no" or "unsure"} per line, or a table. Would a
  publisher who wants each article once drop the later page? 'judgements --json' prints such lines.

examples:
  scrapy neardup judgements --json > labels.jsonl
  scrapy neardup evaluate crawl.jsonl --id "" --pairs labels.jsonl --method all
  scrapy neardup evaluate crawl.jsonl --id "" --pairs labels.jsonl --method cascade:base=0.5 --method cascade:base=0.6
""",
)
def evaluate_command(arguments: argparse.Namespace, config: Config) -> int:
    """Print the scores, and the pairs with a wrong verdict; return 1 if some of several methods failed."""
    default: _Spec = (METHOD, METHOD, dict(PROFILES[config.profile]))
    specs = list(_parse_methods(arguments.method)) if arguments.method else [default]
    documents = _read_documents(config, arguments.corpus, arguments.id)
    labels = read_labels(arguments.pairs, {page.url: place for place, page in enumerate(documents)})
    return _report(documents, labels, specs, arguments)


def _read_documents(config: Config, file: str, id_field: str) -> list[Page]:
    """Return the documents of a file, read as a crawl with these settings would.

    Records without a document are a warning at the end. Raises NearDupError if there is no document.
    """
    left_out = Counter[str]()
    with config.open_source(hashes_items=False) as source:
        documents = list(progress(read_documents(file, source, left_out, id_field), what="documents read"))
    if left_out:
        why = ", ".join(f"{number:,} {one_line(reason)}" for reason, number in left_out.most_common())
        warn(f"evaluate: left out: {why}.")
    if not documents:
        where = "standard input" if file == STDIN else file
        raise NearDupError(
            f"{where} contains no document with a text. Check that it is the right file. If the text has another "
            "field, name it in NEARDUP_FIELDS."
        )
    return documents


#: A method as on the command line, its name and its parameters.
_Spec = tuple[str, str, dict[str, Any]]


def _parse_methods(texts: list[str]) -> Iterator[_Spec]:
    """Yield the methods. Raises NearDupError if a method cannot be made, except for ``all``."""
    for text in texts:
        name, parameters = parse_method(text)
        if name != "all":
            make_method(name, parameters)
        for one in METHODS if name == "all" else [name]:
            yield text.replace(name, one, 1), one, parameters


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of a method from ``NAME`` or ``NAME:PARAMETER=VALUE,…``. Values may hold commas.

    A value that is not JSON is a string.

    >>> parse_method("cascade:base=0.7,lexicon=news.txt")
    ('cascade', {'base': 0.7, 'lexicon': 'news.txt'})
    """
    name, _, rest = text.partition(":")
    parameters: dict[str, Any] = {}
    for part in _NEXT.split(rest) if rest else ():
        parameter, equals, value = (one.strip() for one in part.partition("="))
        if not equals or not parameter.isidentifier():
            raise SettingsError(f"{part!r} is no parameter. Write NAME=VALUE, for example base=0.8.")
        try:
            parameters[parameter] = json.loads(value)
        except (ValueError, RecursionError):
            parameters[parameter] = value
    return name.strip(), parameters


def _report(documents: list[Page], labels: list[Label], specs: list[_Spec], arguments: argparse.Namespace) -> int:
    """Evaluate the methods, and print; return 1 if one failed. The error of the only method is raised."""
    rows, notes, failed = list[list[str]](), list[str](), 0
    for text, method, parameters in specs:
        try:
            score = evaluate(make_method(method, parameters), documents, labels, progress)
            dropped, kept = f"{score.dropped_wrongly}/{score.different}", f"{score.kept_wrongly}/{score.copies}"
            agreement = f"{score.pairs - len(score.wrong)}/{score.pairs}"
            rows.append([text, agreement, dropped, kept, f"{score.ms_per_page:.2f}", f"{score.bytes_per_page:.0f}"])
            if len(specs) == 1:
                notes += _wrong_lines(score.wrong)
            wrong = [{"a": one.a, "b": one.b, "drop": "yes" if one.is_copy else "no"} for one in score.wrong]
            found = {**asdict(score), "wrong": wrong}
        except NearDupError as error:
            if len(specs) == 1:
                raise
            failed = 1
            notes.append(f"{text}: {error}\n")
            found = {"method": method, "parameters": parameters, "error": str(error)}
        if arguments.json:
            write(as_json(found, indent=None) + "\n")
    if not arguments.json:
        unsure = sum(one.is_copy is None for one in labels)
        sure = format_count(len(labels) - unsure, "labelled pair") + (f", {unsure:,} unsure" if unsure else "")
        columns = ("method", "agreement", "dropped wrongly", "kept wrongly", "ms/page", "bytes/page")
        table = format_table(columns, rows)
        write(f"{format_count(len(documents), 'document')}, {sure}\n\n{table}\n\n{''.join(notes)}")
    return failed


def _wrong_lines(wrong: list[Label]) -> Iterator[str]:
    for one in wrong[:_SHOWN]:
        yield f"{'kept' if one.is_copy else 'dropped'} wrongly: {to_line(one.b)} after {to_line(one.a)}\n"
    if len(wrong) > _SHOWN:
        yield f"and {len(wrong) - _SHOWN:,} more; --json prints them all\n"
