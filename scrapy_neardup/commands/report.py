"""``scrapy neardup report``: what a state holds, as one HTML file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import as_json, progress, room, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.inputs import Entry, read_input
from scrapy_neardup.report.data import Report
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import check, page
from scrapy_neardup.report.words import LANGUAGES, Words
from scrapy_neardup.settings import Config

NAME = "report"
HELP = "Write a report on a state as one HTML file: totals, kinds, sites, groups, texts side by side."
EXAMPLES = """\
the file:
  It needs no network and no other file, and runs no script of a page, so you can send it to anyone. Its size is limited
  for any number of pages, and it names the omitted parts.

texts:
  The report shows texts side by side if the crawl kept them (NEARDUP_KEEP = "texts"), or if --texts names feeds with
  them: any input of `scrapy neardup dedup` with the fields url or id, title and text. Otherwise it shows the common
  sentences that the state knows.

language:
  English or Chinese, by --lang, else NEARDUP_LANG, else by the pages. A page counts as Chinese if its title has Chinese
  characters and no Japanese kana. Without a title, a host in .cn, .tw, .hk or .mo counts as Chinese. If more than half
  of the pages are Chinese, so is the report.

examples:
  scrapy neardup report
  scrapy neardup report --lang zh
  scrapy neardup report -o monday.html --store leveldb:///var/crawls/state
  scrapy neardup report --texts articles.jsonl --texts tagged.jsonl.gz
  scrapy neardup report --json | jq .totals
"""


_STDOUT = "-"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="(default: report.html; with --json, or -: standard output)"
    )
    add_store(parser)
    parser.add_argument(
        "--texts", action="append", default=[], metavar="INPUT", help="a feed with the texts of pages; may be repeated"
    )
    parser.add_argument(
        "--pages", type=int, default=2000, metavar="N", help="copies in the table, the newest (default: 2000)"
    )
    parser.add_argument(
        "--lang",
        choices=LANGUAGES,
        help="language of the report (default: NEARDUP_LANG, else zh if most pages look Chinese)",
    )
    parser.add_argument("--json", action="store_true", help="write the report as one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Read the state, twice, and write the report; 0."""
    if arguments.pages < 1:
        raise SettingsError(f"--pages is {arguments.pages}. Give 1 or more copies.")
    if not arguments.json:
        check()
    config = Config.from_settings(arguments.settings)
    with looked(arguments.store, config) as store:
        report = gather(
            store,
            rows=arguments.pages,
            texts=partial(look_up, arguments.texts, config) if arguments.texts else None,
            watch=progress,
        )
    if arguments.json:
        text, output = as_json(asdict(report)) + "\n", arguments.output or _STDOUT
    else:
        text, output = page(report, arguments.lang or config.lang), arguments.output or "report.html"
    if output != _STDOUT:
        _save(text, Path(output), report, Words(config.lang or "en"))
    elif arguments.json:
        write(text)
    else:
        sys.stdout.buffer.write(text.encode())  # UTF-8, as it says itself, whatever standard output is set to
    return 0


def look_up(inputs: Iterable[str], config: Config, urls: Collection[str]) -> dict[str, tuple[str, str]]:
    """Title and text of those pages that are in the inputs, by the URL or id under which the state knows them."""
    found: dict[str, tuple[str, str]] = {}
    names = {part: config.fields[part] for part in ("url", "title", "text")}
    for source in inputs:
        for entry in progress(read_input(source), what="records"):
            if not isinstance(entry, Entry):
                continue
            fields = entry.fields
            for key in (fields.get(names["url"]), fields.get("id")):
                name = "" if key is None else str(key).strip()
                if name and name in urls:
                    title, text = (str(fields.get(names[part]) or "") for part in ("title", "text"))
                    found.setdefault(name, (title, text))
    return found


def _save(text: str, path: Path, report: Report, words: Words) -> None:
    with replace_file(path) as draft:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
    totals = report.totals
    line = words(
        "closing.report",
        file=path,
        pages=words("pages", totals.pages),
        copies=words("copies", totals.copies),
        groups=words("groups", totals.groups),
        size=room(path.stat().st_size),
    )
    write(f"{line}\n")
