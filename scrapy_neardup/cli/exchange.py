"""``scrapy neardup export``, ``import`` and ``merge``: bring the pages of a state to a file or to another state."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from scrapy_neardup.atomic import open_private, replace_file
from scrapy_neardup.cli.command import FORCE, JSON, STATE, STORE, command, config_of, option
from scrapy_neardup.cli.opening import (
    find_state,
    locate_state,
    only_state,
    open_or_make_state,
    snapshot_state,
)
from scrapy_neardup.cli.output import check_new_file, format_count, format_counts, present, progress, warn, write
from scrapy_neardup.errors import NearDupError, StoreError
from scrapy_neardup.inspect.pages import state_method
from scrapy_neardup.maintenance.export import ExportFile, OpenState, Source, check_recipes, write_export
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.state.urls import STORES


@command(
    "export",
    option("-o, --output FILE", "the file to write; -: standard output", required=True),
    *STATE,
    FORCE,
    examples="""\
the file:
  Packed JSON lines with a checksum, one page per line, the same for every kind of state. It holds all URLs, the texts
  if kept, and the secret of the state. 'import' makes a state from it; 'merge' adds it to one.

examples:
  scrapy neardup export -o pages.jsonl.gz
  scrapy neardup export -o pages.jsonl.gz --force --store sqlite:///var/crawls/state.sqlite
  scrapy neardup export -o - | ssh backup 'cat > pages.jsonl.gz'
""",
)
def export_state(arguments: argparse.Namespace) -> int:
    """Write the file, and print its size."""
    output = None if arguments.output == "-" else Path(arguments.output)
    if output is not None:
        check_new_file(output, force=arguments.force)
    elif sys.stdout.isatty():
        raise NearDupError("The export is binary. Name a file with -o, or send it on: … -o - | ssh …")
    with snapshot_state(arguments.store, config_of(arguments)) as store:
        if output is None:
            write_export(store, sys.stdout.buffer, progress)
            return 0
        with replace_file(output) as draft, open(draft, "wb", opener=open_private) as file:
            pages = write_export(store, file, progress)
        unsealed = store.pages - pages
    left_out = f"; {unsealed:,} unsealed, left out" if unsealed else ""
    write(f"{output}: {format_count(pages, 'page')} in {output.stat().st_size:,} bytes{left_out}\n")
    return 0


@command(
    "import",
    option("file FILE", "a file written by 'export'", type=Path),
    *STATE,
    JSON,
    examples="""\
effect:
  The whole file is verified before the state is made. If the state already has pages, nothing happens: add pages with
  'merge'. The pages count only after the whole import.

examples:
  scrapy neardup import pages.jsonl.gz
  scrapy neardup import pages.jsonl.gz --store sqlite:///var/crawls/state.sqlite
""",
)
def import_pages(arguments: argparse.Namespace) -> int:
    """Make the state, and print how many pages it has."""
    config = config_of(arguments)
    url = arguments.store or only_state(config)
    locate_state(url)  # raises for a state in memory
    source = ExportFile(arguments.file, progress)
    with open_or_make_state(url, source.recipe, source.secret or config.secret) as store:
        location, pages = store.location, store.pages
        if pages:
            raise StoreError(
                f"The state at {location} already has {pages:,} pages, so nothing is imported. Name a new place with "
                "--store, or add the pages with: scrapy neardup merge."
            )
        pages = merge(source, store, watch=progress).added
    text = f"{location}: {format_count(pages, 'page')} imported from {source.name}"
    present(arguments, {"store": location, "pages": pages}, text)
    return 0


@command(
    "merge",
    option(
        "sources FROM", f"a file written by 'export', or the URL of a state: {STORES.forms(persistent=True)}", nargs="+"
    ),
    *STATE,
    JSON,
    examples="""\
effect:
  All must have the same method, parameters, versions and NEARDUP_SECRET. If one differs, or if a file is damaged,
  nothing is written. If --store names no state yet, it is made.

  Pages are joined by URL; the version seen later stays. An original that copies an original of the other side becomes
  its copy. To merge the same again changes nothing.

examples:
  scrapy neardup merge east.jsonl.gz west.jsonl.gz --store sqlite:///var/crawls/all.sqlite
  scrapy neardup merge leveldb:///var/crawls/east/state.leveldb
""",
)
def merge_states(arguments: argparse.Namespace) -> int:
    """Merge, and print what became of the pages of each source."""
    config = config_of(arguments)
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
        if method is None:
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
