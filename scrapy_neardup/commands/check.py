"""``scrapy neardup check``: whether a state is whole, and a mended copy of one that is not."""

from __future__ import annotations

import argparse
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scrapy_neardup.commands.opening import OPTION, add_store, existing, location_of, tell_taken_back
from scrapy_neardup.commands.output import as_json, counted, line, progress, table, write
from scrapy_neardup.crawl.state_location import page_extractor
from scrapy_neardup.errors import StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.judge.former import state_recipe
from scrapy_neardup.maintenance.repair import Repaired, repair
from scrapy_neardup.maintenance.verify import Findings, check
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import Secret

NAME = "check"
HELP = "Check every row of a state, or make a repaired copy of it."
EXAMPLES = """\
checks:
  Every page, key, URL, piece of evidence and count must be readable and agree with the others. For SQLite the file
  itself is checked too. A copy may have no original: an updated original leaves its place. Problems give exit code 1.

repair:
  --repair TO files everything readable in a new state at TO and checks that state. TO is a URL, or a path for a state
  of the same kind, and must not exist. The damaged state stays unchanged. The repair needs room for two copies.

  The recipe of a state (method, parameters, versions) says which pages can be compared. If the recipe is unreadable,
  --assume-recipe takes the settings here. They must be those of the crawl that wrote the state.

examples:
  scrapy neardup check
  scrapy neardup check --store leveldb:///var/crawls/state.leveldb --json
  scrapy neardup check --store leveldb:///var/crawls/state.leveldb --repair /var/crawls/mended.leveldb
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    add_store(parser)
    parser.add_argument("--repair", metavar="TO", help="make a repaired copy at this path or URL")
    parser.add_argument(
        "--assume-recipe", action="store_true", help="with --repair: use the settings here if the recipe is unreadable"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Check or mend; 1 if the state, or the mended copy, has problems."""
    config = Config.from_settings(arguments.settings)
    url = existing(arguments.store, config)
    source = location_of(url)
    if arguments.repair is None:
        found = _checked(url, config.secret)
        if arguments.json:
            write(as_json({"store": source[1], **_as_data(found)}) + "\n")
        else:
            write("\n".join((*_as_lines(found, source[1]), *_advice(found))) + "\n")
        return 0 if found.sound else 1
    recipe = state_recipe(config.make_method(), page_extractor(config)) if arguments.assume_recipe else None
    target = _target(arguments.repair, source)
    mended = repair(source, target, recipe, progress, config.secret)
    if arguments.json:
        write(as_json({"source": source[1], **_as_repaired_data(mended)}) + "\n")
    else:
        write("\n".join(_as_repaired_lines(mended, source[1], target[0].url(mended.location))) + "\n")
    return 0 if mended.findings.sound else 1


def _checked(url: str, secret: Secret | None) -> Findings:
    """What is wrong with the state at a URL; that it cannot be opened is wrong too."""
    try:
        store = open_store(url, None, OPTION, secret)
    except (StoreLocked, StoreMismatch):
        raise
    except StoreError as error:
        if isinstance(error.__cause__, (ImportError, PermissionError)):  # which says nothing of the state
            raise
        found = Findings()
        found.add("damaged", str(error))
        return found
    except (KeyError, TypeError, ValueError, struct.error) as error:  # a row that is read first is not what it was
        found = Findings()
        found.add("damaged", f"The state cannot be opened: {error!r}.")
        return found
    found = Findings()
    try:
        tell_taken_back(store)
        found = check(store, progress)
    finally:
        _close(store, found)
    return found


def _close(store: PageStore, found: Findings) -> None:
    try:
        close_store(store)
    except StoreError as error:
        found.add("unwritable", str(error))


def _target(asked: str, source: tuple[type[PageStore], str]) -> tuple[type[PageStore], str]:
    """Kind and place of the mended copy; raises StoreError for one inside the state that is mended."""
    kind, location = location_of(asked) if ":/" in asked[1:] else (source[0], os.path.realpath(asked))
    if Path(location).is_relative_to(source[1]):
        raise StoreError(f"{location} is inside the damaged state. Name a place outside of it.")
    return kind, location


def _as_data(found: Findings) -> dict[str, Any]:
    return {
        "sound": found.sound,
        "pages": found.pages,
        "keys": found.keys,
        "urls": found.urls,
        "evidence": found.evidence,
        "blocks": found.blocks,
        "judged_by_hand": found.judgements,
        "copies_without_original": found.lost,
        "urls_of_one_hash": found.shared,
        "problems": [asdict(problem) for problem in found.problems],
        "counts": dict(found.counts.most_common()),
    }


def _as_repaired_data(mended: Repaired) -> dict[str, Any]:
    filed = mended.filed
    return {
        "store": mended.location,
        "pages": filed.pages,
        "pages_before": mended.before,
        "known_lost": mended.lost,
        "broken": filed.broken,
        "unsealed": filed.unsealed,
        "replaced": filed.replaced,
        "evidence": filed.evidence,
        "blocks": filed.blocks,
        "unreadable_ranges": filed.gaps,
        "recipe_assumed": mended.assumed,
        "check": _as_data(mended.findings),
    }


def _as_lines(found: Findings, location: str) -> Iterator[str]:
    looked = ", ".join(
        (
            counted(found.pages, "page"),
            counted(found.keys, "key"),
            counted(found.urls, "URL"),
            f"evidence of {counted(found.evidence, 'page')}",
            counted(found.blocks, "block of counts", "blocks of counts"),
            *([counted(found.judgements, "manual verdict")] if found.judgements else []),
        )
    )
    if found.sound:
        yield f"The state at {location} is sound: {looked}."
    else:
        yield f"The state at {location} is not sound: {counted(sum(found.counts.values()), 'problem')} ({looked})."
        yield from (f"  {problem.kind}: {line(problem.what)}" for problem in found.problems)
        if (rest := sum(found.counts.values()) - len(found.problems)) > 0:
            yield f"  (and {rest:,} more)"
            yield ""
            yield table(["problem", "times"], [(kind, f"{many:,}") for kind, many in found.counts.most_common()])
    if found.lost:
        copies = counted(found.lost, "copy", "copies")
        yield f"No problem: {copies} without an original (it was updated or forgotten)."
    if found.shared:
        yield f"No problem: {counted(found.shared, 'page')} whose URL has the same hash as a later one."


def _advice(found: Findings) -> Iterator[str]:
    if not found.sound:
        yield "To save everything readable in a new state: scrapy neardup check --repair TO (see --help)."


def _as_repaired_lines(mended: Repaired, source: str, url: str) -> Iterator[str]:
    filed = mended.filed
    counts = counted(filed.blocks, "block of counts", "blocks of counts")
    yield f"The state at {source} is unchanged. The repaired copy is at {mended.location}."
    yield f"  saved: {counted(filed.pages, 'page')}, evidence of {counted(filed.evidence, 'page')}, {counts}"
    before = f"; it had {mended.before:,} after its last write" if mended.before is not None else ""
    yield f"  lost: {'at least ' + counted(mended.lost, 'page') if mended.lost else 'no known page'}{before}"
    if filed.unsealed:
        yield f"  left out: {counted(filed.unsealed, 'page')} of a crawl that was killed, or whose feed was not stored"
    if filed.replaced:
        yield f"  left out: {counted(filed.replaced, 'earlier version')} of a URL"
    if filed.gaps:
        yield f"  unreadable: {counted(filed.gaps, 'range')} of rows"
    if mended.assumed:
        yield "  recipe: taken from the settings here, because that of the state is unreadable"
    yield from _as_lines(mended.findings, mended.location)
    yield f"To use the copy, set NEARDUP_STORE = {url!r}, or move it and its witness to the place of the damaged one."
