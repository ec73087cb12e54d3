"""``scrapy neardup explain``, ``stats``, ``groups`` and ``dropped``: the contents of a state."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from scrapy_neardup.ages import parse_time
from scrapy_neardup.atomic import replace_file
from scrapy_neardup.cli.command import JSON, STATE, command, config_of, flag, limit_option, number, option
from scrapy_neardup.cli.opening import describe_missing, snapshot_state
from scrapy_neardup.cli.output import (
    as_json,
    format_count,
    format_data,
    format_rest,
    list_options,
    present,
    progress,
    to_line,
    warn,
    write,
    write_list,
)
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.inspect.pages import OtherPage, StatePage, dropped, inspect_group, inspect_pages
from scrapy_neardup.inspect.sources import near_urls
from scrapy_neardup.judge.recipes import decisions_of
from scrapy_neardup.maintenance.forget import of_host
from scrapy_neardup.maintenance.scan import members
from scrapy_neardup.maintenance.statistics import statistics
from scrapy_neardup.maintenance.tables import CRAWLS
from scrapy_neardup.model import Kind


@command(
    "explain",
    option("urls URL", "a page, by its URL as crawled", nargs="+"),
    *STATE,
    limit_option(20, "pages to list of a group, the newest (default: 20)"),
    JSON,
    examples="""\
output:
  The verdict and its evidence, as recorded when the page was judged. Of an updated page the state knows only the last
  version. With NEARDUP_KEEP = "nothing" it keeps no kinds, titles or common sentences.

  A page that is not sealed is in a feed that is not stored. If it never is, the next crawl rolls the page back.

  For a page that passed, also its near miss (the page that it was nearly a copy of when it was judged) and the most
  similar original now, each with the decision on the two. For the latter the present counts of the site decide.

  If a URL is not in the state, the command lists known URLs that differ only in spelling: http or https, www., a final
  slash, a fragment, percent-encoding. The exit code is then 1.

examples:
  scrapy neardup explain https://a.example/ferry
  scrapy neardup explain https://a.example/1 https://a.example/2 --store sqlite:///var/crawls/state.sqlite --json
""",
)
def explain(arguments: argparse.Namespace) -> int:
    """Explain each page; return 1 if one is not in the state."""
    config = config_of(arguments)
    urls = list(dict.fromkeys(arguments.urls))
    with snapshot_state(arguments.store, config) as store:
        records = [record for url in urls if (record := store.find(url)) is not None]
        found = {one.url: one for one in inspect_pages(store, records, config, arguments.limit, progress)}
        near = {url: near_urls(store, url) for url in urls if url not in found}
        data = {
            "store": store.location,
            "as_of": utc_time(store.as_of),
            "in_use": store.is_held,
            "pages": [found.get(url) or {"url": url, "found": False, "near": near[url]} for url in urls],
        }
        text = [
            _describe(found[url]) if url in found else f"{describe_missing(url, near[url], store.location)}\n"
            for url in urls
        ]
    present(arguments, data, text)
    return 1 if near else 0


def _describe(page: StatePage) -> str:
    """Return what says something: the title below the URL, and of usual values only the unusual ones."""
    group, nearest, site = page.group, page.nearest, page.site
    newest = f", the newest {len(group.pages)} of them" if group.size > len(group.pages) else ""
    pages = (f"{one.first_seen} {one.kind or ''} {to_line(one.url)}" for one in group.pages)
    data = {
        **as_data(page),
        "delivered": page.delivered and page.verdict in (Kind.DUPLICATE, Kind.BETTER),
        "evidence": "" if page.evidence else 'not kept (NEARDUP_KEEP was "nothing")',
        "nearest": OtherPage(nearest.url, nearest.first_seen, nearest.title) if nearest else None,
        "site": f"{site.name}, {site.pages} pages counted, {site.forms:.0%} share a template" if site else "",
        "sealed": "" if page.sealed else "no: if its feed is never stored, the next crawl rolls the page back",
        "group": "\n".join([f"{group.size:,} pages{newest}:", *pages]) if group.size > 1 else "",
    }
    title = f'  "{to_line(page.title)}"\n' if page.title else ""
    return f"{to_line(page.url)}\n{title}{format_data(data, 'url', 'found', 'title', 'similar_id', indent='  ')}"


#: Numbers of pages in the statistics.
_COUNTS = (
    *("pages", "originals", "copies", "rows", "unjudged", "unsealed"),
    *("variants", "better", "copies_without_original"),
)


@command(
    "stats",
    *STATE,
    limit_option(10, "sites to name, those with most pages (default: 10)"),
    JSON,
    examples="""\
words:
  original    a page with a new article; its copies are dropped
  copy        a dropped page: identical, near (edited), retitled (edited, under another title), or "unknown" if
              NEARDUP_KEEP was "nothing"
  variant     a copy that differs so much from its original that later pages are compared with it too
  row         one of several items of a response without their own texts; it is compared with no other page, and dropped
              only if it comes again unchanged; to have rows judged, set NEARDUP_FIELDS = {'text': …}
  unjudged    a page with too little text; the state keeps it so that it passes only once
  delivered   recently dropped pages that an earlier crawl delivered with another text; the counts cover about the last
              1,000 pages of a site; to take drops back: scrapy neardup keep --last --site SITE
  unsealed    a page of a running or killed crawl whose feed is not stored; if it never is, the next crawl rolls the
              page back

examples:
  scrapy neardup stats
  scrapy neardup stats --store leveldb:///var/crawls/state.leveldb --limit 50
  scrapy neardup stats --json
""",
)
def stats(arguments: argparse.Namespace) -> int:
    """Print the counts."""
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found = statistics(store, arguments.limit, progress)
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
    present(arguments, data, format_data(_with_shares(data)))
    return 0


def _with_shares(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data with the share of all pages behind each number of pages, and of each site's behind its copies."""

    def share(many: int, pages: int) -> str:
        return f"{many:,}, {many / max(pages, 1):.1%}"

    counted = {name: share(data[name], data["pages"]) for name in _COUNTS if data[name] or name == "pages"}
    for name in ("kinds", "originals_like_others"):
        counted[name] = "\n".join(f"{kind}: {share(many, data['pages'])}" for kind, many in data[name].items())
    top = [{**as_data(one), "copies": share(one.copies, one.pages)} for one in data["top_sites"]]
    drops = [{**one, "drops": share(one["drops"], one["pages"])} for one in data["dropped_sites"]]
    return {**data, **counted, "top_sites": top, "dropped_sites": drops}


#: Groups that a terminal shows by default, and pages of each.
_SHOWN, _PAGES = 20, 10


@command(
    "groups",
    *STATE,
    option("-o, --output FILE", "write JSON lines to this file, all or nothing"),
    option("--min N", "smallest group to list (default: 2)", type=number(1), default=2),
    limit_option(None, "groups to list (default: all, on a terminal 20; 0: all)"),
    flag("--json", "print JSON lines, also on a terminal"),
    examples="""\
groups:
  A group is an original and its copies. Pages are compared with originals only, so groups do not drift. If an original
  is no longer in the state (updated or forgotten), its copies stay a group, with original null.

one line of JSON:
  {"similar_id": "17b9…", "size": 3, "original": "https://…", "first_seen": "2025-…", "pages": [{"url": "https://…",
  "first_seen": "2025-…", "similarity": 0.93, "kind": "near", "title": "…", "judged": null}, …]}
  Pages are ordered by the time they were first seen. The original has kind null and similarity 1. similar_id is the
  same as in tagged items. If a better page has superseded the first one (NEARDUP_KEEP_POLICY), "original" is the better
  page, and the page with kind null is the first one. judged is the manual verdict: keep, copy, or null.

examples:
  scrapy neardup groups
  scrapy neardup groups -o groups.jsonl --min 3
  scrapy neardup groups --limit 100 --json | less
""",
)
def groups(arguments: argparse.Namespace) -> int:
    """Print the groups, or write them to a file."""
    for_terminal = not arguments.output and not arguments.json and sys.stdout.isatty()
    limit = arguments.limit if arguments.limit is not None else _SHOWN if for_terminal else 0
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        found = list(members(progress(store.records(), store.pages)).groups(arguments.min))
        listed = found[: limit or None]
        if for_terminal:
            for one in listed:
                group = inspect_group(store, *one, _PAGES)
                write(f"{group.similar_id}  {format_count(group.size, 'page')}\n")
                for page in group.pages:
                    kind = f"{page.similarity:.2f} {to_line(page.kind or '')}"
                    judged = f"  (manual verdict: {page.judged})" if page.judged else ""
                    title = f'  "{to_line(page.title)}"' if page.title else ""
                    write(f"  {page.first_seen}  {kind:<14}  {to_line(page.url)}{title}{judged}\n")
                write(f"{format_rest(group.size - _PAGES)}\n")
            rest = len(found) - len(listed)
            more = f", {rest:,} not shown; --limit 0 shows all" if rest else ""
            write(f"{format_count(len(found), 'group')}{more}.\n")
            return 0
        described = (inspect_group(store, *one) for one in progress(listed, len(listed), "groups"))
        if arguments.output:
            with replace_file(Path(arguments.output)) as draft, draft.open("w", encoding="utf-8") as file:
                file.writelines(as_json(group, indent=None, wide=True) + "\n" for group in described)
        else:
            for group in described:
                write(as_json(group, indent=None) + "\n")
    return 0


_NOUN = "dropped pages"


@command(
    "dropped",
    flag("--last", "only the last crawl"),
    option("--since TIME", "since a date or time in UTC, or an age such as 30min, 12h, 7d"),
    option("--site SITE", 'this host and its subdomains; one account: "mp.weixin.qq.com BIZ"'),
    *STATE,
    *list_options(_NOUN),
    examples="""\
list:
  Every page that a crawl dropped as a copy: URL, title, original, kind, time and crawl. The state remembers the last
  100,000 drops; with NEARDUP_KEEP = "nothing" it remembers none. Unchanged pages are not listed, because an earlier
  crawl delivered them. Pages forgotten since are only counted, and
  so are pages with the manual verdict keep that came since.

  To get a page in the next crawl: scrapy neardup keep URL
  To get all that the last crawl dropped of a site: scrapy neardup keep --last --site SITE

one line of JSON, or one row of a table:
  {"url": "https://…", "title": "…", "original": "https://…", "kind": "near", "similarity": 0.93, "when": "2025-…",
  "crawl": "news", "begun": "2025-…", "judged": null}
  judged is the manual verdict since then: keep, copy, or null.

examples:
  scrapy neardup dropped --last
  scrapy neardup dropped --since 7d --site a.example -o dropped.csv
  scrapy neardup dropped --last -o dropped.jsonl && scrapy neardup keep --from dropped.jsonl
""",
)
def list_drops(arguments: argparse.Namespace) -> int:
    """List the pages."""
    since = parse_time("--since", arguments.since, datetime.now(timezone.utc)) if arguments.since is not None else 0.0
    is_wanted = of_host(arguments.site) if arguments.site is not None else None
    # Drops that are not listed: of forgotten pages, and of pages with the verdict keep that came again.
    unlisted: Counter[str] = Counter()
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        last = max(CRAWLS.read(store), key=lambda crawl: crawl.generation, default=None) if arguments.last else None
        if arguments.last and last is None:
            warn("The state remembers no crawl, so --last finds nothing.")
            return 0
        if last is not None:
            end = f"ended {utc_time(last.ended)}" if last.ended else "has no end: it was killed, or still runs"
            warn(f"The last crawl, {to_line(last.who)}, began {utc_time(last.begun)}, {end}.")

        def records() -> Iterator[dict[str, Any]]:
            for one in dropped(store, last.generation if last else 0):
                if one.drop.id < since * 1e9:
                    continue
                if one.record is None:
                    unlisted["forgotten since"] += is_wanted is None
                elif one.came_since:
                    unlisted["kept by hand and delivered since"] += 1
                elif is_wanted is None or is_wanted(one.record):
                    yield as_data(one)

        listed = write_list(arguments, records(), _format_drop, _NOUN)
    for what, many in sorted(unlisted.items()):
        if many:
            warn(f"{format_count(many, 'more dropped page')} {what}.")
    if not listed and not unlisted.total():
        copies = last.counts.get("duplicate") if last else 0
        if last is None or arguments.since is not None or arguments.site is not None:
            warn("The state remembers no such drop.")
        elif copies:
            warn(f"It dropped nothing: its {copies:,.0f} copies passed, or NEARDUP_KEEP was 'nothing'.")
        else:
            warn("It dropped nothing.")
    return 0


def _format_drop(one: dict[str, Any]) -> str:
    judged = f"  (manual verdict: {one['judged']})" if one["judged"] else ""
    title = f'    "{to_line(one["title"])}"\n' if one["title"] else ""
    original = to_line(one["original"]) if one["original"] else "a page that is no longer in the state"
    return (
        f"{one['when']}  {one['kind'] or 'copy'} {one['similarity']:.2f}  {to_line(one['url'])}{judged}\n"
        f"{title}    for {original}\n"
    )
