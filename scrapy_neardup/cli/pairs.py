"""``scrapy neardup pairs``: compute every pair of similar documents of a feed exactly."""

from __future__ import annotations

import argparse

from scrapy_neardup.cli.command import command, config_of, option
from scrapy_neardup.cli.feeds import read_documents
from scrapy_neardup.cli.output import format_count, progress, warn
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.files.writers import find_output_format, open_output
from scrapy_neardup.lab.documents import open_spool
from scrapy_neardup.lab.exact import CONTAINMENT, JACCARD, find_similar_pairs, open_gram_file
from scrapy_neardup.lab.pairs import compare_documents


@command(
    "pairs",
    option("feed", metavar="FEED", help="a file or folder, or - for standard input (JSON lines)"),
    option("-o", dest="output", default="-", metavar="OUT", help="(default: standard output)"),
    *(
        option(f"--{name}", type=float, default=default, metavar="SHARE", help="(default: %(default)s)")
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
        open_gram_file() as sets,
    ):
        for document in documents:
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
