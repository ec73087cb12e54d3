"""``scrapy neardup check``: check a state, or make a repaired copy of it."""

from __future__ import annotations

import argparse
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from scrapy_neardup.cli.command import JSON, STATE, STORE, command, config_of, option
from scrapy_neardup.cli.opening import describe_use, find_state, locate_state, report_rollback
from scrapy_neardup.cli.output import format_counts, format_rest, present, progress, to_line
from scrapy_neardup.errors import StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.kv.base import FileEngine
from scrapy_neardup.maintenance.copying import RepairResult, repair
from scrapy_neardup.maintenance.verify import Findings, check
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.recipe import Secret


@command(
    "check",
    *STATE,
    option("--repair TO", "make a repaired copy at this path or URL"),
    JSON,
    examples="""\
effect:
  Problems give exit code 1. --repair TO files everything readable in a new state at TO, a URL or a path, and checks
  that state. The damaged state stays unchanged. The repair needs room for two copies.

examples:
  scrapy neardup check
  scrapy neardup check --store leveldb:///var/crawls/state.leveldb --json
  scrapy neardup check --store leveldb:///var/crawls/state.leveldb --repair /var/crawls/mended.leveldb
""",
)
def check_state(arguments: argparse.Namespace) -> int:
    """Check or repair; return 1 if the state, or the repaired copy, has problems."""
    config = config_of(arguments)
    url = find_state(arguments.store, config)
    kind, place = locate_state(url)
    asked: str | None = arguments.repair
    if asked is None:
        found = _check(url, config.secret)
        advice = "" if found.sound else "To save everything readable in a new state: scrapy neardup check --repair TO"
        data = {"store": place, **_data(found)}
        present(arguments, data, [*_lines(data, place), advice])
        return 0 if found.sound else 1
    new_kind, new_place = locate_state(asked) if ":/" in asked[1:] else (kind, os.path.realpath(asked))
    if not issubclass(kind, FileEngine):
        raise StoreError(f"The state at {place} is on a server, where it cannot be repaired. Restore it from a backup.")
    if not issubclass(new_kind, FileEngine):
        raise StoreError(
            f"{new_place} is on a server, where no repaired copy can be made. Name a path, and merge the copy into a "
            "state on the server with: scrapy neardup merge"
        )
    repaired = repair((kind, place), (new_kind, new_place), progress, config.secret)
    data = {"source": place, **_repair_data(repaired)}
    present(arguments, data, _repair_lines(data, new_kind.url(repaired.location)))
    return 0 if repaired.findings.sound else 1


def _check(url: str, secret: Secret | None) -> Findings:
    """Return the problems of the state at a URL. A state that cannot be opened is a problem too."""
    found = Findings()
    try:
        store = open_store(url, None, STORE, secret)
    except (StoreLocked, StoreMismatch):
        raise
    except StoreError as error:
        if isinstance(error.__cause__, (ImportError, PermissionError)):  # then the state may be sound
            raise
        found.add("damaged", str(error))
        return found
    except (KeyError, TypeError, ValueError, struct.error) as error:  # the first rows are unreadable
        found.add("damaged", f"The state cannot be opened: {error!r}.")
        return found
    try:
        report_rollback(store)
        found = check(store, progress)
    finally:
        try:
            close_store(store)
        except StoreError as error:
            found.add("unwritable", str(error))
    return found


def _data(found: Findings) -> dict[str, Any]:
    return {
        "sound": found.sound,
        "pages": found.pages,
        "keys": found.keys,
        "urls": found.urls,
        "evidence": found.rows["evidence"],
        "blocks": found.rows["counts"],
        "judged_by_hand": found.rows["judgement"],
        "copies_without_original": found.lost,
        "urls_of_one_hash": found.shared,
        "problems": [asdict(problem) for problem in found.problems],
        "counts": dict(found.counts.most_common()),
    }


def _repair_data(repaired: RepairResult) -> dict[str, Any]:
    saved, source = repaired.saved, repaired.source
    return {
        "store": repaired.location,
        "pages": saved.pages,
        "pages_before": source.pages_before,
        "known_lost": repaired.lost,
        "broken": source.broken,
        "unsealed": source.unsealed,
        "replaced": saved.replaced,
        "evidence": saved.rows["evidence"],
        "blocks": saved.rows["counts"],
        "unreadable_ranges": source.gaps,
        "check": _data(repaired.findings),
    }


def _lines(data: dict[str, Any], place: str) -> Iterator[str]:
    found = "is sound" if data["sound"] else f"is not sound: {format_counts(data['counts'])}"
    yield f"The state at {place} {found} ({format_counts(data) or 'nothing is readable'})."
    yield from (f"  {one['kind']}: {to_line(one['what'])}" for one in data["problems"])
    yield format_rest(sum(data["counts"].values()) - len(data["problems"]))


def _repair_lines(data: dict[str, Any], url: str) -> Iterator[str]:
    yield f"The state at {data['source']} is unchanged. The repaired copy is at {data['store']}."
    yield f"  {format_counts(data)}"
    yield from _lines(data["check"], data["store"])
    yield describe_use(url)
