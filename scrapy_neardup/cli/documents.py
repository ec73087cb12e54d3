"""The documents of a feed, and ``scrapy neardup pairs`` and ``lexicon``: their figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from scrapy_neardup.cli.command import DOCUMENTS, FORCE, command, config_of, flag, number, option
from scrapy_neardup.cli.output import check_new_file, format_count, progress, warn, write
from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.files import STDIN
from scrapy_neardup.files.writers import find_output_format, open_output
from scrapy_neardup.lab.documents import Document, DocumentReader, open_rows, open_spool
from scrapy_neardup.lab.exact import CONTAINMENT, JACCARD, GramFile, find_similar_pairs
from scrapy_neardup.lab.pairs import compare_documents
from scrapy_neardup.settings import Config
from scrapy_neardup.text.lexicon import LexiconBuilder
from scrapy_neardup.text.normalize import converter_name, normalize
from scrapy_neardup.text.tokens import words
from scrapy_neardup.untrusted import one_line


def read_documents(command: str, config: Config, *names: str | Path) -> Iterator[Document]:
    """Yield the documents of files, read as a crawl with these settings would.

    Records without a document are a warning at the end. Raises NearDupError if there is no document.
    """
    count = 0
    with config.open_source(hashes_items=False) as source:
        reader = DocumentReader(source)
        for document in progress(reader.read(*names), what="documents read"):
            count += 1
            yield document
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
    "pairs",
    option("feed FEED", "a file or folder, or - for standard input (JSON lines)"),
    option("-o OUT", "(default: standard output)", dest="output", default="-"),
    *(
        option(f"--{name} SHARE", "(default: %(default)s)", type=float, default=default)
        for name, default in (("jaccard", JACCARD), ("containment", CONTAINMENT))
    ),
    examples=f"""\
pairs:
  Two documents are a pair if their Jaccard similarity is {JACCARD} or more, or if {CONTAINMENT} or more of
  the shorter one is in the longer one. Both figures compare the sets of character 5-grams of letters and digits, after
  normalisation (width, case, invisible characters). They are exact: no method or sketch takes part.

  {{"a": "a17", "b": "b93", "jaccard": 0.8312, "containment": 0.9127, "title": 0.4, "title_same": false,
   "same_site": true}}
  a came first. title says how alike the titles are (pairs of letters). It is null without a title or a URL.

input:
  Any input of `scrapy neardup dedup`. A document is known by its id, else its URL, else its line. If several have one
  name, the first counts. NEARDUP_FIELDS names fields that differ, here or in the project.

examples:
  scrapy neardup pairs crawl.jsonl -o pairs.jsonl
  scrapy neardup pairs crawl.csv -o pairs.csv --jaccard 0.7
  scrapy neardup evaluate crawl.jsonl --pairs pairs.jsonl --method all
""",
)
def compute_pairs(arguments: argparse.Namespace) -> int:
    """Write the pairs, the most similar first."""
    for name in ("jaccard", "containment"):
        share = getattr(arguments, name)
        if not 0.05 <= share <= 1:
            raise SettingsError(
                f"--{name} is {share:g}. Give a share from 0.05 to 1: below that almost all texts are pairs."
            )
    format = find_output_format(arguments.output)
    with (
        open_spool(read_documents("pairs", config_of(arguments), arguments.feed)) as documents,
        open_rows(GramFile) as sets,
    ):
        for document in progress(documents, len(documents), "texts cut"):
            sets.add(document.page.text)
        found = sorted(
            find_similar_pairs(sets, arguments.jaccard, arguments.containment, watch=progress),
            key=lambda one: (-one.jaccard, -one.containment, one.a, one.b),
        )
        with open_output(arguments.output, format, "") as out:
            for one in found:
                out.write(compare_documents(one, documents[one.a], documents[one.b]).row(), None)
        warn(f"pairs: {format_count(len(found), 'pair')} among {format_count(len(documents), 'document')}.")
    return 0


@command(
    "lexicon",
    DOCUMENTS,
    option("-o, --output LEXICON", "the file to write", type=Path, required=True),
    option(
        "--at-least N",
        "leave out words in fewer documents; most are misspellings (default: 2)",
        type=number(1),
        default=2,
    ),
    flag("--simplified", "count traditional Chinese as simplified, for methods with the parameter simplified"),
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
