"""``scrapy neardup robustness``: edit pages, and count how many are still recognised."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from scrapy_neardup.cli.command import (
    DOCUMENTS,
    command,
    config_of,
    flag,
    method_option,
    number,
    option,
    parse_method,
)
from scrapy_neardup.cli.inputs import read_documents
from scrapy_neardup.cli.output import as_json, format_table, progress, warn, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.curves import check_drawable, draw_curves
from scrapy_neardup.lab.edits import EDITS, find_edit, why_unavailable
from scrapy_neardup.lab.robustness import CONTROL, Point, measure_robustness, sample_documents
from scrapy_neardup.methods import METHODS, Method, make_method


@command(
    "robustness",
    DOCUMENTS,
    method_option(
        "; may be repeated (default: all that can judge the documents)", "--method, --methods", action="append"
    ),
    option("--pages N", "edit N random documents (default: 300)", type=number(2), default=300),
    option("--edits NAME,…", "(default: %(default)s)", default=",".join(EDITS)),
    option("--seed N", "another seed draws other edits (default: 1)", type=int, default=1),
    flag("--json", "print one JSON object per line"),
    option("-o FILE", "draw curves to this file: .svg, .png, .pdf", dest="curves", type=Path),
    examples=f"""\
edits:
  add, delete, replace   1 to 20% of the text: sentences of other pages, runs of characters, scattered characters
  reorder                sentences in another order
  retitle, wrap          another title; lines of another site around the text
  width, script          full-width and ASCII characters, simplified and traditional ones, each as the other

tables:
  The percentage of edited pages that are found and judged as copies. If more would be judged as copies once found, that
  percentage follows in brackets. "{CONTROL}" is the control: pairs of pages with different text. They should not be
  recognised, unless the documents include near-duplicates.

examples:
  scrapy neardup robustness corpora/news
  scrapy neardup robustness crawl.jsonl.gz --pages 1000 -o curves.svg
  scrapy neardup robustness crawl.jsonl --method cascade --method simhash:distance=6 --edits add,delete
""",
)
def edit_and_recognise(arguments: argparse.Namespace) -> int:
    """Print the shares, and draw the curves."""
    if arguments.curves is not None:
        check_drawable(arguments.curves)
    edits = list(_edits(arguments.edits))
    methods = [make_method(*parse_method(spec)) for spec in arguments.method or ()]
    methods = methods or [method for method in map(_make_default, METHODS) if method]
    read = read_documents("robustness", config_of(arguments), *arguments.file)
    documents = sample_documents(read, arguments.pages, arguments.seed)
    points = measure_robustness(
        methods,
        documents,
        edits=edits,
        seed=arguments.seed,
        progress=progress,
        on_failure=None if arguments.method else _warn_left_out,
    )
    if not points:
        raise NearDupError("No method can judge these documents. The lines above say what each method needs.")
    if arguments.json:
        write("".join(as_json(point, indent=None, wide=True) + "\n" for point in points))
    else:
        write(f"{len(documents):,} documents, seed {arguments.seed}; recognised in %\n\n")
        write("\n\n".join(_tables(points)) + "\n")
    if arguments.curves is not None:
        draw_curves(points, arguments.curves)
    return 0


def _edits(names: str) -> Iterator[str]:
    """Yield the edits that are available here; raises NearDupError for an unknown name."""
    for name in dict.fromkeys(one.strip() for one in names.split(",")):
        find_edit(name)
        if reason := why_unavailable(name):
            _warn_left_out(reason)
        else:
            yield name


def _make_default(name: str) -> Method | None:
    """Return the method with its default parameters; None, and a warning, if it is not available here."""
    try:
        return make_method(name, {})
    except NearDupError as error:
        _warn_left_out(error)
        return None


def _warn_left_out(reason: object) -> None:
    warn(f"robustness: left out: {reason}")


def _tables(points: Sequence[Point]) -> Iterator[str]:
    """Yield a table of the edits with amounts, and one of the other edits."""
    cells = {(point.method, point.edit, point.amount): _cell(point) for point in points}
    methods = list(dict.fromkeys(point.method for point in points))
    gradual = list(dict.fromkeys(point.edit for point in points if point.amount))
    others = list(dict.fromkeys(point.edit for point in points if not point.amount))
    amounts = sorted({point.amount for point in points if point.amount})
    if gradual:
        named = [(edit, method) for edit in gradual for method in methods]
        rows = [(edit, method, *(cells[method, edit, amount] for amount in amounts)) for edit, method in named]
        yield format_table(["edit", "method", *(f"{100 * amount:g}%" for amount in amounts)], rows, words=2)
    rows = [(method, *(cells[method, edit, 0.0] for edit in others)) for method in methods]
    yield format_table(["method", *others], rows)


def _cell(point: Point) -> str:
    """Return the recognised share, with the compared share in brackets if that is larger; a dash for no pages."""
    if not point.pages:
        return "–"
    share, compared = f"{point.recognised:.1%}"[:-1], f"{point.compared:.1%}"[:-1]
    return share if share == compared else f"{share} ({compared})"
