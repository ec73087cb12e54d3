"""``scrapy neardup report``: what a state holds, as one HTML file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path

from scrapy_neardup.atomic import replacing
from scrapy_neardup.commands.opening import add_store, looked
from scrapy_neardup.commands.output import progress, write
from scrapy_neardup.commands.wording import as_json, room
from scrapy_neardup.config import Config
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.inputs import Entry, read_input
from scrapy_neardup.report.data import Report
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import check, page
from scrapy_neardup.report.words import LANGUAGES, Words

NAME = "report"
HELP = "Write what a state holds as one HTML file: totals, kinds, who copies from whom, groups, texts side by side."
EXAMPLES = """\
the file:
  It needs no network and no other file, and runs no script of a page: send it to whom you like. What is shown is
  bounded, so it stays small with any number of pages; it says what was left out.

texts:
  They stand side by side if the crawl kept them (NEARDUP_KEEP = "texts"), or if --texts names feeds whose items hold
  them: JSON lines or any other that `scrapy neardup dedup` reads, with the fields url or id, title and text. Otherwise
  the sentences that both pages share are shown, as far as the state knows them.

language:
  English or Chinese: --lang says which, or else the setting NEARDUP_LANG, or else the pages. A page is taken for
  Chinese if its title holds Chinese characters and no Japanese kana, or if it has no title and its host ends in .cn,
  .tw, .hk or .mo; if more than half of all pages are, the report is in Chinese.

examples:
  scrapy neardup report
  scrapy neardup report --lang zh
  scrapy neardup report -o monday.html --store leveldb:///var/crawls/state
  scrapy neardup report --texts articles.jsonl --texts tagged.jsonl.gz
  scrapy neardup report --json | jq .totals
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "-o", dest="output", default="report.html", metavar="FILE", help="(default: report.html; - prints)"
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
        help="language of the report (default: NEARDUP_LANG, or else zh if most of the pages seem to be in Chinese)",
    )
    parser.add_argument("--json", action="store_true", help="print what the report says as one JSON object instead")


def run(arguments: argparse.Namespace) -> int:
    """Read the state, twice, and write the report; 0."""
    if arguments.pages < 1:
        raise SettingsError(f"--pages must be 1 or more, not {arguments.pages}: it is a number of copies.")
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
    language = arguments.lang or config.lang
    if arguments.json:
        write(as_json(asdict(report)) + "\n")
    elif arguments.output == "-":
        sys.stdout.buffer.write(
            page(report, language).encode()
        )  # UTF-8, as it says itself, whatever standard output is set to
    else:
        words = Words(config.lang or "en")
        _save(page(report, language), Path(arguments.output), report, words)
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


def _save(html: str, path: Path, report: Report, words: Words) -> None:
    with replacing(path) as draft:
        draft.write_text(html, encoding="utf-8")
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
