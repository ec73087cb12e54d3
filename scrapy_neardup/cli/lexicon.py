"""``scrapy neardup lexicon``: count word frequencies in pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy_neardup.cli.options import add_documents
from scrapy_neardup.cli.output import check_new_file, progress, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.documents import read_documents
from scrapy_neardup.text.lexicon import LexiconBuilder
from scrapy_neardup.text.normalize import converter_name, normalize
from scrapy_neardup.text.tokens import words

NAME = "lexicon"
HELP = "Count word frequencies in pages, for the methods that weigh words."
EXAMPLES = """\
use:
  The built-in table of word frequencies is Chinese. For another language, or a field with special words, count a
  lexicon on some thousand pages. Then name its file in the parameter 'lexicon' of cosine, idf_terms, imatch or simhash.
  A state refuses another lexicon than its own. So count once, and keep the file.

    scrapy neardup lexicon crawl.jsonl.gz -o lexicon.tsv
    scrapy neardup evaluate corpora/news --method imatch:lexicon=lexicon.tsv

    NEARDUP_METHOD = "imatch"
    NEARDUP_PARAMETERS = {"lexicon": "lexicon.tsv"}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_documents(parser)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="LEXICON", help="the file to write")
    parser.add_argument(
        "--at-least",
        type=_positive,
        default=2,
        metavar="N",
        help="leave out words in fewer documents; most are misspellings (default: 2)",
    )
    parser.add_argument(
        "--simplified",
        action="store_true",
        help="count traditional Chinese as simplified, for methods with the parameter simplified",
    )
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Write the lexicon, and print how many words it has."""
    output: Path = arguments.output
    _check_output(output, arguments.file, force=arguments.force)
    if arguments.simplified:
        converter_name()  # raises if there is no converter
    builder = LexiconBuilder()
    for document in progress(read_documents(*arguments.file)):
        text = normalize(f"{document.title}\n{document.text}", simplified=arguments.simplified)
        builder.add(words(text, singles=True))
    kept = builder.write(output, at_least=arguments.at_least)
    write(f"{output}: {kept:,} words that occur in {arguments.at_least} or more of {builder.documents:,} documents\n")
    return 0


def _check_output(output: Path, files: list[Path], *, force: bool) -> None:
    """Raise NearDupError if the file cannot be written, before the words are counted."""
    if not output.parent.is_dir():
        raise NearDupError(f"The folder {output.parent} does not exist. Make it, or name another file with -o.")
    if output.is_file() and any(file.exists() and file.samefile(output) for file in files):
        raise NearDupError(f"{output} is also an input. Name another file with -o.")
    check_new_file(output, force=force)


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of 1 or more")
    return int(text)
