"""``scrapy neardup explain``: show what the state knows about a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy_neardup.cli.command import JSON, STATE, command, config_of, limit_option, option
from scrapy_neardup.cli.opening import describe_missing, snapshot_state
from scrapy_neardup.cli.output import describe_site, format_count, format_facts, present, progress, to_line
from scrapy_neardup.inspect import utc_time
from scrapy_neardup.inspect.pages import OtherPage, StatePage, inspect_pages
from scrapy_neardup.inspect.urls import near_urls
from scrapy_neardup.model import ROW, Kind

_RELATIONS = {"excerpt": "an excerpt of", "same_title": "the same title as"}


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
            f"{to_line(url)}\n{format_facts(_facts(found[url]))}"
            if url in found
            else f"{describe_missing(url, near[url], store.location)}\n"
            for url in urls
        ]
    present(arguments, data, text)
    return 1 if near else 0


def _facts(page: StatePage) -> Iterator[tuple[str, object]]:
    kind = ROW if page.is_row else page.kind
    yield "verdict", f"{page.verdict.value} ({to_line(kind)})" if kind else page.verdict.value
    yield from _other_page(page)
    if page.judged:
        relation = "keep: no copy of" if page.judged.said == "keep" else "a copy of"
        other = to_line(page.judged.other or "any page")
        yield "manual", f"{relation} {other}\nsince {page.judged.when}, for when it comes again"
    if page.is_copy or page.similarity:
        yield "similarity", f"{page.similarity or 0:.4f}"
    if page.containment:
        yield "containment", f"{page.containment:.4f}"
    if page.evidence and (page.title or page.kind or page.characters):
        yield "title", to_line(page.title or "") or "(none)"
        yield "length", format_count(page.characters or 0, "character")
    elif page.is_copy:
        yield "evidence", 'not kept (NEARDUP_KEEP was "nothing")'
    if page.same_bytes:
        yield "bytes", "identical with its original"
    yield "first seen", page.first_seen
    yield "last seen", page.last_seen
    if not page.sealed:
        yield "sealed", "no: its feed is not stored; if it never is, the next crawl rolls the page back"
    if page.variant:
        yield "variant", "yes: it differs much from its original, so later pages are compared with it too"
    if page.is_copy and page.delivered:
        yield "delivered", "yes: its item came through, so the same text is unchanged next time"
    if page.shared:
        yield "both contain", "\n".join(map(to_line, page.shared))
    if page.near_miss:
        yield "near miss", f"{to_line(page.near_miss.url)}\nwhen it was judged: {page.near_miss.why}"
    if page.nearest:
        yield "nearest now", _format_other(page.nearest) + ("" if page.nearest.came_first else ", after this page")
    if page.passed:
        yield "it passed", page.passed
    if page.site:
        yield "its site", describe_site(page.site)
    if page.verdict is not Kind.UNJUDGED:
        yield "group", "\n".join(_group_lines(page))


def _other_page(page: StatePage) -> Iterator[tuple[str, object]]:
    """Yield the page that decided the verdict, if there was one."""
    if page.original_is_gone:
        yield "original", f"{page.similar_id}, no longer in the state (updated or forgotten)"
    elif page.original is not None:
        yield "superseded by" if page.superseded else "original", _format_other(page.original)
    elif page.kind:
        other = f"{to_line(page.like.url)}{_second_line(page.like)}" if page.like else "a page no longer in the state"
        yield "like", f"{_RELATIONS.get(page.kind, 'like')} {other}"


def _format_other(page: OtherPage) -> str:
    return f"{to_line(page.url)}{_second_line(page)}\nfirst seen {page.first_seen}"


def _second_line(page: OtherPage) -> str:
    return f'\n"{to_line(page.title)}"' if page.title else ""


def _group_lines(page: StatePage) -> Iterator[str]:
    group = page.group
    if group.size == 1:
        yield f"{page.similar_id}, no other page"
        return
    newest = "" if group.size <= len(group.pages) else f", the newest {len(group.pages)} of them"
    yield f"{page.similar_id}, {format_count(group.size, 'page')}{newest}:"
    for one in group.pages:
        yield f"{one.first_seen}  {one.role or to_line(one.kind or 'copy'):<10}  {to_line(one.url)}"
