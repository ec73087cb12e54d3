"""``scrapy neardup collisions``: count the collisions of classic string hashes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from scrapy_neardup.cli.command import DOCUMENTS, command, config_of, json_option, option
from scrapy_neardup.cli.feeds import read_documents
from scrapy_neardup.cli.output import format_table, write
from scrapy_neardup.lab.collisions import Collisions, count_collisions


@command(
    "collisions",
    DOCUMENTS,
    option("--bits", type=int, choices=(32, 64), default=32, help="length of the hashes (default: 32)"),
    json_option("print one JSON object per line"),
    examples="""\
columns:
  strings      different texts (letters and digits only), and different words in them
  values       different hash values
  collisions   strings minus values
  expected     collisions of an ideal hash with as many bits
  ms           total time of hashing

examples:
  scrapy neardup collisions corpora/news
  scrapy neardup collisions crawl.jsonl.gz --bits 64 --json
""",
)
def compare_hashes(arguments: argparse.Namespace) -> int:
    """Print a line for each hash on texts and on words."""
    documents = read_documents("collisions", config_of(arguments), *arguments.file)
    found = count_collisions((document.page for document in documents), arguments.bits)
    if arguments.json:
        write("".join(json.dumps({**asdict(one), "bits": arguments.bits}) + "\n" for one in found))
    else:
        headers = ("of", "hash", "strings", "values", "collisions", "expected", "ms")
        write(f"{arguments.bits} bits\n\n{format_table(headers, map(_row, found), words=2)}\n")
    return 0


def _row(one: Collisions) -> tuple[str, ...]:
    counts = (f"{number:,}" for number in (one.strings, one.values, one.collisions))
    return one.of, one.hash, *counts, f"{one.expected:.3g}", f"{one.milliseconds:,.0f}"
