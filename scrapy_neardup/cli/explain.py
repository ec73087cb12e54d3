"""``scrapy neardup explain``: show what the state knows about a page."""

from __future__ import annotations

import argparse

from scrapy_neardup.cli.command import JSON, STATE, command, config_of, limit_option, option
from scrapy_neardup.cli.opening import describe_missing, snapshot_state
from scrapy_neardup.cli.output import format_data, present, progress, to_line
from scrapy_neardup.inspect import as_data, utc_time
from scrapy_neardup.inspect.pages import StatePage, inspect_pages
from scrapy_neardup.inspect.urls import near_urls


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
    group = page.group
    data = {**as_data(page), "group_size": group.size, "group": group.pages if group.size > 1 else ()}
    return f"{to_line(page.url)}\n{format_data(data, 'url', 'found', indent='  ')}"
