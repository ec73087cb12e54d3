"""``scrapy neardup check``: check a state, or make a repaired copy of it."""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator

from scrapy_neardup.cli.command import JSON, STATE, STORE, command, option
from scrapy_neardup.cli.opening import describe_use, find_state, locate_new_state, locate_state, report_rollback
from scrapy_neardup.cli.output import format_counts, format_rest, present, progress, to_line
from scrapy_neardup.errors import StoreError, StoreLocked, StoreMismatch
from scrapy_neardup.inspect import as_data
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.maintenance.copying import repair
from scrapy_neardup.maintenance.verify import Findings, check
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.recipe import Secret


@command(
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
def check_command(arguments: argparse.Namespace, config: Config) -> int:
    """Check or repair; return 1 if the state, or the repaired copy, has problems."""
    url = find_state(arguments.store, config)
    kind, place = locate_state(url)
    new_state: str | None = arguments.repair
    if new_state is None:
        found = _check(url, config.secret)
        advice = "" if found.sound else "To save everything readable in a new state: scrapy neardup check --repair TO"
        present(arguments, {"store": place, "sound": found.sound, **as_data(found)}, [*_lines(found, place), advice])
        return 0 if found.sound else 1
    if not issubclass(kind, FileEngine):
        raise StoreError(f"The state at {place} is on a server, where it cannot be repaired. Restore it from a backup.")
    target = locate_new_state(new_state, "--repair", kind)
    numbers, found = repair((kind, place), target, watch=progress, secret=config.secret)
    data = {"source": place, "store": target[1], **numbers, "check": {"sound": found.sound, **as_data(found)}}
    lines = [
        f"The state at {place} is unchanged. The repaired copy is at {target[1]}.",
        f"  {format_counts(data)}",
        *_lines(found, target[1]),
        describe_use(target[0].url(target[1])),
    ]
    present(arguments, data, lines)
    return 0 if found.sound else 1


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


def _lines(found: Findings, place: str) -> Iterator[str]:
    verdict = "is sound" if found.sound else f"is not sound: {format_counts(found.counts)}"
    numbers = format_counts({**as_data(found), **found.rows}) or "nothing is readable"
    yield f"The state at {place} {verdict} ({numbers})."
    yield from (f"  {one['kind']}: {to_line(one['what'])}" for one in found.problems)
    yield format_rest(found.counts.total() - len(found.problems))
