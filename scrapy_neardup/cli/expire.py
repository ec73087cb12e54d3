"""``scrapy neardup expire``: forget old pages, or the oldest of too many."""

from __future__ import annotations

import argparse

from scrapy_neardup.ages import parse_duration
from scrapy_neardup.cli.forget import add_dry_run, as_data, as_text, forget_pages
from scrapy_neardup.cli.opening import add_store, open_state
from scrapy_neardup.cli.options import add_json, config_of
from scrapy_neardup.cli.output import progress, write_result
from scrapy_neardup.errors import SettingsError
from scrapy_neardup.maintenance.forget import expired
from scrapy_neardup.settings import many_pages
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
    """Add the options."""
    parser.add_argument("--ttl", metavar="TIME", help="how long to know a page after it was last seen, such as 90d")
    parser.add_argument("--max-pages", metavar="N", help="how many pages to know at most, including copies")
    add_dry_run(parser)
    add_store(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Forget the pages beyond the bounds."""
    config, dry = config_of(arguments), arguments.dry_run
    bounds = Bounds(
        config.ttl if arguments.ttl is None else parse_duration("--ttl", arguments.ttl),
        config.max_pages if arguments.max_pages is None else many_pages("--max-pages", arguments.max_pages),
    )
    if bounds == Bounds():
        raise SettingsError(
            "No bound is given. Add --ttl 90d or --max-pages 1000000, or set NEARDUP_TTL or NEARDUP_MAX_PAGES."
        )
    with open_state(arguments.store, config) as store:
        found = expired(store, bounds, progress)
        urls = forget_pages(store, found, dry=dry)
        left = store.pages - (len(found.ids) if dry else 0)
    data = {"ttl": bounds.ttl, "max_pages": bounds.max_pages, **as_data(found, urls, [], dry=dry), "pages_left": left}
    write_result(arguments, data, as_text(found, urls, dry=dry))
    return 0
