"""``scrapy neardup report``: write a report on a state as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.command import STATE, command, flag, number, option
from scrapy_neardup.cli.opening import snapshot_state
from scrapy_neardup.cli.output import as_json, progress, write
from scrapy_neardup.files.entry import import_library
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import render_report
from scrapy_neardup.report.words import Words, format_size
from scrapy_neardup.settings import Config


@command(
    option("-o FILE", "(default: report.html)", dest="output", type=Path, default=Path("report.html")),
    *STATE,
    option("--pages N", "copies in the table, the newest (default: 2000)", type=number(1), default=2000),
    flag("--json", "print the report as one JSON object, and write no file"),
    examples="""\
the file:
  It needs no network and runs no script of a page, so you can send it to anyone. Its size is limited for any number of
  pages. It shows texts side by side if the crawl kept them (NEARDUP_KEEP = "texts"), else common sentences.
  NEARDUP_LANG = "zh" makes it Chinese.

examples:
  scrapy neardup report
  scrapy neardup report -o monday.html -s NEARDUP_LANG=zh --store leveldb:///var/crawls/state
  scrapy neardup report --json | jq .totals
""",
)
def report_command(arguments: argparse.Namespace, config: Config) -> int:
    """Read the state, and write the report."""
    if not arguments.json:
        import_library("jinja2", "report", "A report")
    with snapshot_state(arguments.store, config) as store:
        report = gather(store, rows=arguments.pages, watch=progress)
    if arguments.json:
        write(as_json(report) + "\n")
        return 0
    output: Path = arguments.output
    html = render_report(report, config.lang or "en").encode()
    with replace_file(output) as draft:
        draft.write_bytes(html)
    words, totals = Words(config.lang or "en"), report.totals
    counts = {name: words(name, getattr(totals, name)) for name in ("pages", "copies", "groups")}
    write(words("closing.report", file=output, size=format_size(len(html)), **counts) + "\n")
    return 0
