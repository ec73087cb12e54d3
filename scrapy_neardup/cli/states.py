"""``scrapy neardup export``, ``merge``, ``migrate``, ``check`` and ``forget``: look after a state."""

from __future__ import annotations

import argparse
import re
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from heapq import nsmallest
from itertools import count
from pathlib import Path

from scrapy_neardup.cli.command import JSON, STATE, STORE, command, flag, option, past_time
from scrapy_neardup.cli.opening import (
    describe_use,
    existing_state,
    find_pages,
    find_state,
    locate_new_state,
    locate_state,
    only_state,
    open_or_make_state,
    open_state,
    report_rollback,
    snapshot_state,
)
from scrapy_neardup.cli.output import (
    format_count,
    format_counts,
    format_data,
    format_rest,
    present,
    progress,
    to_line,
    write,
)
from scrapy_neardup.errors import SettingsError, StoreDamaged, StoreError, StoreMismatch
from scrapy_neardup.inspect import as_data
from scrapy_neardup.judge.recipes import state_recipe
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.maintenance.copying import Way, export, migrate, repair
from scrapy_neardup.maintenance.merge import merge
from scrapy_neardup.maintenance.scan import of_host, select_pages, select_unseen
from scrapy_neardup.maintenance.verify import Findings, check
from scrapy_neardup.settings import Config
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_NAME, SECRET_SETTING, Secret, fits
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
    url = existing_state(arguments.store or only_state(config))
    locate_state(url)  # raises if no state can be there
    names = [find_state(name, config, "FROM") for name in arguments.sources]
    method = config.make_method()
    recipe = state_recipe(method, config.make_extractor())
    with ExitStack() as stack:
        sources = [stack.enter_context(snapshot_state(name, config, recipe)) for name in names]
        _check_secrets(sources)
        store = stack.enter_context(open_or_make_state(url, recipe, sources[0].secret))
        _check_secrets([store, *sources])
        merged = [(source.location, merge(source, store, method, progress)) for source in sources]
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


@command(
    *STATE,
    option("--to TO", "path or URL of the new state (default: beside the old one)"),
    JSON,
    examples="""\
effect:
  A crawl refuses a state whose pages were fingerprinted with other settings or versions. This command makes a new state
  from it, with its ids, times, groups, evidence and deliveries; nothing is judged again. The old state stays as it is.

  A page gets a new fingerprint from its text, if the state keeps texts. Without a text it keeps its fingerprint if only
  a tool differs (extractor, segmenter). Otherwise the state knows only its URL: the page is judged when it comes again,
  and passes once as updated. --to also copies a state that needs no change: to another kind, or without the free room
  of forgotten pages.

examples:
  scrapy neardup migrate
  scrapy neardup migrate --store sqlite:///var/crawls/a.sqlite --to leveldb:///var/crawls/a.leveldb
""",
)
def migrate_command(arguments: argparse.Namespace, config: Config) -> int:
    """Migrate, and print what became of the pages."""
    method = config.make_method()
    if method.memory_only:
        raise SettingsError(f"The method {method.name} works only in memory. Set NEARDUP_METHOD to another one.")
    url = find_state(arguments.store, config)
    kind, place = locate_new_state(arguments.to or url, "--to", locate_state(url)[0])
    if not arguments.to:  # the first free place beside the state, such as state-2.sqlite
        path = Path(place)
        names = (path.with_name(f"{path.stem}-{number}{path.suffix}") for number in count(2))
        place = str(next(one for one in names if not one.exists()))
    recipe = state_recipe(method, config.make_extractor())
    with open_or_make_state(url, None, config.secret) as old:
        if not arguments.to and fits(old.recipe, recipe):
            old.update_recipe(recipe)
            write(f"{old.location}: already has the current method, parameters and versions.\n")
            return 0
        source = old.location
        ways = migrate(old, (kind, place), recipe, method, config.make_policy(), progress)
    data = {"store": place, "from": source, "pages": {way.name.lower(): many for way, many in ways.items()}}
    lines = "\n".join(f"{many:,} {way.value}" for way, many in ways.items() if many)
    advice = "Pages known only by URL pass once as updated when they come again.\n" if ways[Way.URL] else ""
    present(arguments, data, f"{format_data({**data, 'pages': lines})}\n{advice}{describe_use(kind.url(place))}")
    return 0


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
        is_damaged = found.counts.keys() - {_UNWRITABLE}
        advice = "To save everything readable in a new state: scrapy neardup check --repair TO" if is_damaged else ""
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


#: The problem of a sound state that could not be closed, as on a full disk.
_UNWRITABLE = "unwritable"


def _check(url: str, secret: Secret | None) -> Findings:
    """Return the problems of the state at a URL. Damage that keeps it from being opened is a problem too.

    Raises StoreError if the disk or the system refused the state, which may be sound: there may be no room.
    """
    found = Findings()
    try:
        store = open_store(url, None, STORE, secret)
    except StoreDamaged as error:
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
            found.add(_UNWRITABLE, str(error))
    return found


def _lines(found: Findings, place: str) -> Iterator[str]:
    verdict = "is sound" if found.sound else f"is not sound: {format_counts(found.counts)}"
    numbers = format_counts({**as_data(found), **found.rows}) or "nothing is readable"
    yield f"The state at {place} {verdict} ({numbers})."
    yield from (f"  {one['kind']}: {to_line(one['what'])}" for one in found.problems)
    yield format_rest(found.counts.total() - len(found.problems))


#: URLs that a dry run prints.
_SHOWN = 20


@command(
    option("urls URL", "a page, by its URL as crawled", nargs="*"),
    option("--host HOST", 'all pages of this host and its subdomains; one account is "mp.weixin.qq.com BIZ"'),
    option(
        "--before TIME",
        "pages last seen before a date or time in UTC, or longer ago than an age such as 90d; 0d: all",
        type=past_time,
    ),
    flag("--dry-run", "show what would go, and change nothing"),
    *STATE,
    JSON,
    examples="""\
effect:
  Give one of the ways above. An original goes together with all its copies, so the next of them is judged again. Counts
  of sentences and manual verdicts stay. The room becomes free for other pages; 'migrate --to' makes a
  smaller state.

examples:
  scrapy neardup forget https://a.example/ferry
  scrapy neardup forget --host a.example --dry-run
  scrapy neardup forget --before 90d --store leveldb:///var/crawls/state.leveldb
""",
)
def forget_command(arguments: argparse.Namespace, config: Config) -> int:
    """Forget the pages; return 1 if a named page is not in the state, or if the host has none."""
    dry, host = arguments.dry_run, arguments.host
    if bool(arguments.urls) + (host is not None) + (arguments.before is not None) != 1:
        raise SettingsError("Name what to forget in exactly one way: URLs, --host HOST, or --before TIME.")
    if host is not None and not re.fullmatch(r"\s*[^\s/:?#@\[\]]+(?: \S+)?\s*", host):
        raise SettingsError(f"--host is {host!r}. Give the host name only, such as a.example.")
    with open_state(arguments.store, config) as store:
        records, missing = find_pages(store, dict.fromkeys(arguments.urls))
        if arguments.before is not None:
            ids, counts = select_unseen(store, arguments.before, progress)
        else:
            named = {record.id for record in records}
            is_wanted = (lambda record: record.id in named) if host is None else of_host(host)
            ids, counts = select_pages(store, is_wanted, progress)
        urls = [record.url for id in nsmallest(_SHOWN, ids) if (record := store.record(id)) is not None]
        if not dry:
            store.forget(progress(ids, len(ids)))
    data = {"dry_run": dry, "pages": len(ids), **counts, "urls": urls, "missing": missing}
    text = f"Forgotten: {format_counts(data)}"
    if not ids:
        text = "There is nothing to forget."
    elif dry:
        lines = "".join(f"  {to_line(url)}\n" for url in urls)
        text = f"Would be forgotten: {format_counts(data)}\n{lines}{format_rest(len(ids) - len(urls))}"
    present(arguments, data, text)
    return 1 if missing or (host is not None and not ids) else 0
