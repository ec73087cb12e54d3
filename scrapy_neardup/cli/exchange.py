"""``scrapy neardup export`` and ``merge``: bring the pages of a state to a file or to another state."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.cli.command import JSON, STATE, STORE, command, flag, option
from scrapy_neardup.cli.opening import find_state, locate_state, only_state, open_or_make_state, snapshot_state
from scrapy_neardup.cli.output import format_count, format_counts, present, progress, warn, write
from scrapy_neardup.errors import NearDupError
from scrapy_neardup.judge.recipes import decisions_of, method_of
from scrapy_neardup.maintenance.export import ExportFile, OpenState, Source, check_recipes, write_export
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.methods import Method
from scrapy_neardup.settings import Config
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import PARAMETERS, is_method_of
from scrapy_neardup.state.urls import STORES


@command(
    option("-o, --output FILE", "the file to write", type=Path, required=True),
    *STATE,
    flag("--force", "replace the file if it exists"),
    examples="""\
the file:
  Packed JSON lines with a checksum, one page per line, the same for every kind of state. It holds all URLs, the texts
  if kept, and the secret of the state. 'merge' makes a state from it, or adds it to one.

examples:
  scrapy neardup export -o pages.jsonl.gz
  scrapy neardup export -o pages.jsonl.gz --force --store sqlite:///var/crawls/state.sqlite
""",
)
def export_command(arguments: argparse.Namespace, config: Config) -> int:
    """Write the file, and print its size."""
    output: Path = arguments.output
    if output.is_dir():
        raise NearDupError(f"{output} is a folder. Name a file in it with -o.")
    if output.is_file() and not arguments.force:
        raise NearDupError(f"{output} exists. Name another file with -o, or replace it with --force.")
    with snapshot_state(arguments.store, config) as store:
        with replace_file(output) as draft, open(draft, "wb", opener=open_private) as file:
            pages = write_export(store, file, progress)
        unsealed = store.pages - pages
    left_out = f"; {unsealed:,} unsealed, left out" if unsealed else ""
    size = f" in {output.stat().st_size:,} bytes" if output.is_file() else ""
    write(f"{output}: {format_count(pages, 'page')}{size}{left_out}\n")
    return 0


@command(
    option(
        "sources FROM", f"a file written by 'export', or the URL of a state: {STORES.forms(persistent=True)}", nargs="+"
    ),
    *STATE,
    JSON,
    examples="""\
effect:
  If --store names no state yet, it is made. All must have the same method, parameters, versions and NEARDUP_SECRET. If
  one differs, or if a file is damaged, nothing is written.

  Pages are joined by URL; the version seen later stays. An original that copies an original of the other side becomes
  its copy. To merge the same again changes nothing.

examples:
  scrapy neardup merge pages.jsonl.gz --store sqlite:///var/crawls/new.sqlite
  scrapy neardup merge east.jsonl.gz west.jsonl.gz --store sqlite:///var/crawls/all.sqlite
  scrapy neardup merge leveldb:///var/crawls/east/state.leveldb
""",
)
def merge_command(arguments: argparse.Namespace, config: Config) -> int:
    """Merge, and print what became of the pages of each source."""
    url = arguments.store or only_state(config)
    kind, place = locate_state(url)
    with ExitStack() as stack:
        sources: list[Source] = [
            OpenState(stack.enter_context(open_or_make_state(find_state(name, config), None, config.secret)))
            if "://" in name
            else ExportFile(Path(name), progress)
            for name in arguments.sources
        ]
        recipe, secret = None, config.secret
        if not kind.exists(place):
            recipe, secret = sources[0].recipe, sources[0].secret or secret
            check_recipes(sources, recipe, STORE)
        store = stack.enter_context(open_or_make_state(url, recipe, secret))
        check_recipes(sources, store.recipe, STORE)
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
