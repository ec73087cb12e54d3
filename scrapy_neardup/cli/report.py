"""``scrapy neardup report``: write a report on a state as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy_neardup.cli.command import STATE, command, config_of, flag, number, option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import as_json, progress, save, write, write_html
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import check_template, render_report
from scrapy_neardup.report.words import LANGUAGES, Words

_STDOUT = "-"


@command(
    "report",
    option("-o FILE", "(default: report.html; with --json, or -: standard output)", dest="output"),
    *STATE,
    option("--pages N", "copies in the table, the newest (default: 2000)", type=number(1), default=2000),
    option(
        "--lang",
        "language of the report (default: NEARDUP_LANG, else zh if most pages look Chinese)",
        choices=LANGUAGES,
    ),
    flag("--json", "write the report as one JSON object"),
    examples="""\
the file:
  It needs no network and runs no script of a page, so you can send it to anyone. Its size is limited for any number of
  pages. It shows texts side by side if the crawl kept them (NEARDUP_KEEP = "texts"), else common sentences.

examples:
  scrapy neardup report
  scrapy neardup report -o monday.html --lang zh --store leveldb:///var/crawls/state
  scrapy neardup report --json | jq .totals
""",
)
def write_report(arguments: argparse.Namespace) -> int:
    """Read the state, and write the report."""
    if not arguments.json:
        check_template()
    config = config_of(arguments)
    with snapshot_state(arguments.store, config) as store:
        report = gather(store, rows=arguments.pages, watch=progress)
    if arguments.json:
        text, output = as_json(report) + "\n", arguments.output or _STDOUT
    else:
        text, output = render_report(report, arguments.lang or config.lang), arguments.output or "report.html"
    if output != _STDOUT:
        words, totals = Words(config.lang or "en"), report.totals
        counts = {name: words(name, getattr(totals, name)) for name in ("pages", "copies", "groups")}
        size = save(text, Path(output))
        write(words("closing.report", file=output, size=size, **counts) + "\n")
    elif arguments.json:
        write(text)
    else:
        write_html(text)
    return 0
