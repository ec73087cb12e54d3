"""``scrapy neardup export`` and ``merge``: copy a state, and bring its pages to another one."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict

from scrapy_neardup.cli.command import JSON, STATE, command, option
from scrapy_neardup.cli.opening import (
    find_source,
    locate_new_state,
    locate_state,
    only_state,
    open_or_make_state,
    snapshot_state,
)
from scrapy_neardup.cli.output import format_count, format_counts, present, progress, write
from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.maintenance.copying import export
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.sources import OpenState
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING
from scrapy_neardup.state.urls import STORES


@command(
    option("-o, --output TO", "path or URL of the new state; a path makes one of SQLite", required=True),
    *STATE,
    examples="""\
effect:
  The copy is complete, with the texts if kept and the secret of the state. Pages of a crawl that still runs are left
  out. A crawl can use the copy, and 'merge' adds it to another state. Nothing is replaced: name a new place.

examples:
  scrapy neardup export -o /backup/news-monday.sqlite
  scrapy neardup export -o copy.sqlite --store "redis://cache.example/0?state=news"
""",
)
def export_command(arguments: argparse.Namespace, config: Config) -> int:
    """Make the copy, and print the number of its pages."""
    target = locate_new_state(arguments.output, "-o")
    with snapshot_state(arguments.store, config) as store:
        pages = export(store, target, progress)
        unsealed = store.pages - pages
    left_out = f"; {unsealed:,} unsealed, left out" if unsealed else ""
    write(f"{target[1]}: {format_count(pages, 'page')}{left_out}\n")
    return 0


@command(
    option("sources FROM", f"a state: the path of a copy by 'export', or {STORES.forms(persistent=True)}", nargs="+"),
    *STATE,
    JSON,
    examples="""\
effect:
  If --store names no state yet, it is made. All must have the method, parameters and versions of this project or of
  --spider, and the same NEARDUP_SECRET. If one differs, nothing is written.

  Pages are joined by URL; the version seen later stays. An original that copies an original of the other side becomes
  its copy. To merge the same again changes nothing.

examples:
  scrapy neardup merge east.sqlite west.sqlite --store sqlite:///var/crawls/all.sqlite
  scrapy neardup merge leveldb:///var/crawls/east/state.leveldb
""",
)
def merge_command(arguments: argparse.Namespace, config: Config) -> int:
    """Merge, and print what became of the pages of each source."""
    url = arguments.store or only_state(config)
    locate_state(url)  # raises if no state can be there
    names = [find_source(name, config) for name in arguments.sources]
    method = config.make_method()
    recipe = state_recipe(method, config.make_extractor())
    with ExitStack() as stack:
        sources = [stack.enter_context(snapshot_state(name, config, recipe)) for name in names]
        _check_secrets(sources)
        store = stack.enter_context(open_or_make_state(url, recipe, sources[0].secret))
        _check_secrets([store, *sources])
        merged = [(source.location, merge(OpenState(source), store, method, progress)) for source in sources]
        location, pages = store.location, store.pages
    data = {"store": location, "pages": pages, "merged": [{"from": name, **asdict(one)} for name, one in merged]}
    lines = [f"{name}: {format_counts(asdict(one)) or 'nothing'}" for name, one in merged]
    present(arguments, data, [*lines, f"{location}: {format_count(pages, 'page')}"])
    return 0


def _check_secrets(stores: list[PageStore]) -> None:
    """Raise StoreMismatch if two states have different secrets."""
    first = stores[0]
    for other in stores:
        if other.recipe[SECRET_NAME] != first.recipe[SECRET_NAME]:
            raise StoreMismatch(
                f"{first.location} and {other.location} were written with different secrets, so their fingerprints "
                f"cannot be compared. To merge states, give them the same {SECRET_SETTING} from their first crawl."
            )
