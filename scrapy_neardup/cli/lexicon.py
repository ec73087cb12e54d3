"""``scrapy neardup lexicon``: count word frequencies in pages."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy_neardup.cli.command import DOCUMENTS, FORCE, command, config_of, number, option
from scrapy_neardup.cli.feeds import read_documents
from scrapy_neardup.cli.output import check_new_file, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.text.lexicon import LexiconBuilder
from scrapy_neardup.text.normalize import converter_name, normalize
from scrapy_neardup.text.tokens import words


@command(
    "lexicon",
    DOCUMENTS,
    option("-o", "--output", type=Path, required=True, metavar="LEXICON", help="the file to write"),
    option(
        "--at-least",
        type=number(1),
        default=2,
        metavar="N",
        help="leave out words in fewer documents; most are misspellings (default: 2)",
    ),
    option(
        "--simplified",
        action="store_true",
        help="count traditional Chinese as simplified, for methods with the parameter simplified",
    ),
    FORCE,
    examples="""\
use:
  The built-in table of word frequencies is Chinese. For another language, or a field with special words, count a
  lexicon on some thousand pages. Then name its file in the parameter 'lexicon' of cosine, idf_terms, imatch or simhash.
  A state refuses another lexicon than its own. So count once, and keep the file.

    scrapy neardup lexicon crawl.jsonl.gz -o lexicon.tsv
    scrapy neardup evaluate corpora/news --method imatch:lexicon=lexicon.tsv

    NEARDUP_METHOD = "imatch"
    NEARDUP_PARAMETERS = {"lexicon": "lexicon.tsv"}
""",
)
def count_words(arguments: argparse.Namespace) -> int:
    """Write the lexicon, and print how many words it has."""
    output: Path = arguments.output
    if not output.parent.is_dir():
        raise NearDupError(f"The folder {output.parent} does not exist. Make it, or name another file with -o.")
    if output.is_file() and any(file.exists() and file.samefile(output) for file in arguments.file):
        raise NearDupError(f"{output} is also an input. Name another file with -o.")
    check_new_file(output, force=arguments.force)
    if arguments.simplified:
        converter_name()  # raises if there is no converter
    builder = LexiconBuilder()
    for document in read_documents("lexicon", config_of(arguments), *arguments.file):
        text = normalize(f"{document.page.title}\n{document.page.text}", simplified=arguments.simplified)
        builder.add(words(text, singles=True))
    kept = builder.write(output, at_least=arguments.at_least)
    write(f"{output}: {kept:,} words that occur in {arguments.at_least} or more of {builder.documents:,} documents\n")
    return 0
