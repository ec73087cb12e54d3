"""``scrapy neardup explain``, ``stats``, ``dropped`` and ``report``: the contents of a state."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.command import JSON, JSON_LINES, STATE, command, flag, number, option, past_time
from scrapy_neardup.cli.opening import describe_missing, snapshot_state
from scrapy_neardup.cli.output import as_json, format_data, present, progress, to_line, warn, write
from scrapy_neardup.files.entry import import_library
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.inspect.pages import inspect_pages, list_dropped
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.maintenance.scan import statistics
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.model import Outcome
from scrapy_neardup.report.gather import gather
from scrapy_neardup.report.page import render_report
from scrapy_neardup.report.words import Words, format_size
from scrapy_neardup.settings import Config


@command(
    option("urls URL", "a page, by its URL as crawled", nargs="+"),
    *STATE,
    option("--limit N", "pages to list of a group, the newest (default: 20; 0: all)", type=number(0), default=20),
    JSON,
    examples="""\
output:
  The verdict and its evidence as recorded when the page was judged. For a page that passed also its near miss: the page
  that it was nearly a copy of, and why it passed. To compare it with another page: scrapy neardup compare. If a URL is
  not in the state, the exit code is 1.

examples:
  scrapy neardup explain https://a.example/ferry
  scrapy neardup explain https://a.example/1 https://a.example/2 --store sqlite:///var/crawls/state.sqlite --json
""",
)
def explain_command(arguments: argparse.Namespace, config: Config) -> int:
    """Explain each page; return 1 if one is not in the state."""
    urls = list(dict.fromkeys(arguments.urls))
    with snapshot_state(arguments.store, config) as store:
        records = [record for url in urls if (record := store.find(url)) is not None]
        found = {one["url"]: one for one in inspect_pages(store, records, arguments.limit, progress)}
        data = {
            "store": store.location,
            "as_of": utc_time(store.as_of),
            "in_use": store.is_held,
            "pages": [found.get(url) or {"url": url, "found": False} for url in urls],
        }
        text = [_describe(found[url]) if url in found else f"{describe_missing(url, store)}\n" for url in urls]
    present(arguments, data, text)
    return 0 if len(found) == len(urls) else 1


def _describe(page: dict[str, Any]) -> str:
    """Return the page as text: the title below the URL, and the values that are not the usual ones."""
    members, size = page["group"], page["group_size"]
    newest = f", the newest {len(members)} of them" if size > len(members) else ""
    group = "\n".join([f"{size:,} pages{newest}:", *map(_member_line, members)])
    is_copy = page["verdict"] in (Outcome.DUPLICATE, Outcome.BETTER)
    data = {
        **page,
        "delivered": page["delivered"] and is_copy,
        "evidence": 'not kept (NEARDUP_KEEP was "nothing")' if is_copy and not page["evidence"] else "",
        "sealed": "" if page["sealed"] else "no: if its feed is never stored, the next crawl rolls the page back",
        "group": group if size > 1 else "",
    }
    title = f'  "{to_line(page["title"])}"\n' if page["title"] else ""
    hidden = ("url", "found", "title", "similar_id", "group_size")
    return f"{to_line(page['url'])}\n{title}{format_data(data, *hidden, indent='  ')}"


def _member_line(page: dict[str, Any]) -> str:
    judged = f"  (manual verdict: {page['judged']})" if page["judged"] else ""
    title = f'  "{to_line(page["title"])}"' if page["title"] else ""
    copy = f"{page['kind'] or 'copy'} {page['similarity']:.2f}" if page["similarity"] is not None else "original"
    return f"{page['first_seen']} {copy} {to_line(page['url'])}{title}{judged}"


@command(
    *STATE,
    JSON,
    examples="""\
words:
  An original is a page with a new article, a copy a dropped page. A variant is a copy that later pages are compared
  with too. A row is an item of a listing without a text of its own. An unsealed page is in a feed that is not stored.

examples:
  scrapy neardup stats
  scrapy neardup stats --store leveldb:///var/crawls/state.leveldb --json
""",
)
def stats_command(arguments: argparse.Namespace, config: Config) -> int:
    """Print the counts."""
    with snapshot_state(arguments.store, config) as store:
        found = statistics(store, watch=progress)
        data = {
            "store": store.location,
            "backend": store.scheme,
            "as_of": utc_time(store.as_of),
            "in_use": store.is_held,
            "unsealed": store.pending().pages,
            **as_data(found),
            "dropped_sites": [{**asdict(site), "crawled": utc_time(site.crawled)} for site in found.dropped_sites],
            "first_seen": utc_time(found.first_seen),
            "last_seen": utc_time(found.last_seen),
            "bytes_per_page": round(found.bytes / found.pages, 1) if found.pages else None,
            "recipe": store.recipe,
            "decisions": decisions_of(store),
        }
    shown = {**data, "pages": f"{found.pages:,}", "method": store.recipe.get("method")}
    present(arguments, data, format_data(shown, "backend", "recipe", "decisions"))
    return 0


@command(
    flag("--last", "only the last crawl"),
    option(
        "--since TIME", "since a date or time in UTC, or an age such as 30min, 12h, 7d", type=past_time, default=0.0
    ),
    option("--site SITE", 'this host and its subdomains; one account: "mp.weixin.qq.com BIZ"'),
    *STATE,
    JSON_LINES,
    examples="""\
list:
  The oldest drop comes first. The state remembers the last 100,000 drops; with NEARDUP_KEEP = "nothing" it remembers
  none. Unchanged pages are not listed, because an earlier crawl delivered them. Nor are forgotten pages, and kept ones
  that came since. For a spreadsheet: the table of copies in 'report' can be saved as CSV.

examples:
  scrapy neardup dropped --last
  scrapy neardup dropped --since 7d --site a.example
  scrapy neardup dropped --last --json > dropped.jsonl
""",
)
def dropped_command(arguments: argparse.Namespace, config: Config) -> int:
    """List the pages."""
    listed = 0
    with snapshot_state(arguments.store, config) as store:
        last = max(CRAWLS.read(store), key=lambda crawl: crawl.generation, default=None) if arguments.last else None
        if arguments.last and last is None:
            warn("The state remembers no crawl, so --last finds nothing. Use --since, such as --since 1h.")
            return 0
        if last is not None:
            warn(f"The last crawl, {to_line(last.who)}, began {utc_time(last.begun)}.")
        for one in list_dropped(store, last.generation if last else 0, arguments.since, arguments.site):
            listed += 1
            write(as_json(one, indent=None) + "\n" if arguments.json else _format_drop(one))
    if not listed:
        warn("The state remembers no such drop.")
    return 0


def _format_drop(one: dict[str, Any]) -> str:
    judged = f"  (manual verdict: {one['judged']})" if one["judged"] else ""
    title = f'    "{to_line(one["title"])}"\n' if one["title"] else ""
    original = to_line(one["original"]) if one["original"] else "a page that is no longer in the state"
    return (
        f"{one['when']}  {one['kind'] or 'copy'} {one['similarity']:.2f}  {to_line(one['url'])}{judged}\n"
        f"{title}    for {original}\n"
    )


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
