"""``scrapy neardup export`` and ``merge``: copy a state, and bring its pages to another one."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict

from scrapy_neardup.cli.command import JSON, STATE, STORE, command, option
from scrapy_neardup.cli.opening import (
    find_source,
    locate_new_state,
    locate_state,
    only_state,
    open_or_make_state,
    snapshot_state,
)
from scrapy_neardup.cli.output import format_count, format_counts, present, progress, warn, write
from scrapy_neardup.errors import StoreMismatch
from scrapy_neardup.judge.recipes import decisions_of, method_of
from scrapy_neardup.maintenance.copying import export
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.sources import OpenState, check_recipes
from scrapy_neardup.methods import Method
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import PARAMETERS, is_method_of
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
  If --store names no state yet, it is made. All must have the same method, parameters, versions and NEARDUP_SECRET. If
  one differs, nothing is written.

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
    with ExitStack() as stack:
        sources = [OpenState(stack.enter_context(snapshot_state(name, config))) for name in names]
        check_recipes(sources, sources[0].recipe, STORE)
        try:  # a merge that was killed may have left a state without a recipe
            store = stack.enter_context(open_or_make_state(url, sources[0].recipe, sources[0].secret))
        except StoreMismatch:
            with open_or_make_state(url, None, config.secret) as other:
                check_recipes(sources, other.recipe, STORE)
            raise
        method = state_method(store, config.make_method())
        if method is None and (store.pages or len(sources) > 1):
            warn(
                f"The state does not say how to make its method {store.recipe.get('method')!r}, so copies across the "
                "states are not found. To find them, run the command in the project with the method."
            )
        merged = [(source.name, merge(source, store, method, progress)) for source in sources]
        location, pages = store.location, store.pages
    data = {"store": location, "pages": pages, "merged": [{"from": name, **asdict(one)} for name, one in merged]}
    lines = [f"{name}: {format_counts(asdict(one)) or 'nothing'}" for name, one in merged]
    present(arguments, data, [*lines, f"{location}: {format_count(pages, 'page')}"])
    return 0


def state_method(store: PageStore, own: Method) -> Method | None:
    """Return the method of a state: ``own`` if the recipe fits, else the recipe's method if it is built in."""
    if is_method_of(store.recipe, own.recipe()):
        return own.with_hashes(store.hashes)
    method = method_of({**store.recipe, PARAMETERS: {**store.recipe.get(PARAMETERS, {}), **decisions_of(store)}})
    return method and method.with_hashes(store.hashes)
