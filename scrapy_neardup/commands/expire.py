"""``scrapy neardup expire``: pages that were not seen for long, or are too many, are forgotten at once."""

from __future__ import annotations

import argparse

from scrapy_neardup.ages import parse_duration
from scrapy_neardup.commands.forget import as_data, as_text, first_urls
from scrapy_neardup.commands.opening import add_store, opened
from scrapy_neardup.commands.output import as_json, progress, write
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.forget import expired
from scrapy_neardup.settings import Config, many_pages
from scrapy_neardup.state.expiry import Bounds

NAME = "expire"
HELP = "Forget old pages at once, by NEARDUP_TTL and NEARDUP_MAX_PAGES, not bit by bit as a crawl does."
EXAMPLES = """\
effect:
  It forgets pages last seen before the TTL. If more pages are left than allowed, it forgets those last seen the longest
  ago. A copy renews the time of its original, and no copy outlives its original. A forgotten page is judged as if it
  had never been seen. Without options the bounds come from the settings.

  The room becomes free for other pages. To shrink the files: scrapy neardup compact

examples:
  scrapy neardup expire --dry-run
  scrapy neardup expire --ttl 90d
  scrapy neardup expire --max-pages 1000000 --store sqlite:///var/crawls/state.sqlite
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--ttl", metavar="TIME", help="how long to know a page after it was last seen, such as 90d")
    parser.add_argument("--max-pages", metavar="N", help="how many pages to know at most, including copies")
    parser.add_argument("--dry-run", action="store_true", help="show what would go, and change nothing")
    add_store(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Forget the pages."""
    config = Config.from_settings(arguments.settings)
    bounds = Bounds(
        config.ttl if arguments.ttl is None else parse_duration("--ttl", arguments.ttl),
        config.max_pages if arguments.max_pages is None else many_pages("--max-pages", arguments.max_pages),
    )
    if bounds == Bounds():
        raise SettingsError(
            "No bound is given. Add --ttl 90d or --max-pages 1000000, or set NEARDUP_TTL or NEARDUP_MAX_PAGES."
        )
    with opened(arguments.store, config) as store:
        found = expired(store, bounds, progress)
        urls = first_urls(store, found)
        if not arguments.dry_run:
            store.forget(progress(found.ids, len(found.ids)))
        left = store.pages - (len(found.ids) if arguments.dry_run else 0)
    if arguments.json:
        told = {**as_data(found, urls, [], dry=arguments.dry_run), "pages_left": left}
        write(as_json({"ttl": bounds.ttl, "max_pages": bounds.max_pages, **told}) + "\n")
    else:
        write(as_text(found, urls, dry=arguments.dry_run))
    return 0
