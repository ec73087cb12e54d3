"""Copy a state into a new one: a sound one as it is or to another recipe, or the readable part of a damaged one.

The new state is made in a folder beside its place, and moved there when it is complete. So no crawl opens a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from enum import Enum
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scrapy_neardup.atomic import sync_directory
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.matching import candidates, without_overused_keys
from scrapy_neardup.judge.rules import count_sentences
from scrapy_neardup.kv.base import Changes
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.maintenance.sources import DamagedState, PageEntry, sealed_pages
from scrapy_neardup.maintenance.verify import STATE_ROWS, Findings, RowKind, check, sound_rows
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Page
from scrapy_neardup.state.boilerplate import read_counts
from scrapy_neardup.state.layout import url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SAMPLES, Secret, fits
from scrapy_neardup.state.record import Record, kept_page

#: Rows per batch, some ten for each page. Common keys are known from then on.
_ROWS = 2000


def copy_state(
    source: PageStore | DamagedState,
    pages: Iterable[PageEntry],
    store: PageStore,
    kinds: Collection[RowKind] = STATE_ROWS,
    change: Callable[[PageEntry], PageEntry] = lambda entry: entry,
    watch: Watch = unwatched,
    total: int | None = None,
) -> Counter[str]:
    """Fill an empty state with the ``pages`` and other rows of a source, in batches. ``change``: returns the page to
    write.

    Of several pages of a URL the newest is copied. Return the number of ``replaced`` ones, and of other rows by kind.
    """
    # Rows of a damaged state that cannot be unpacked are left out.
    found, damage_error = Counter[str](), source.kv.damage_error if isinstance(source, PageStore) else None
    for kind in kinds:
        if kind.name == "counts" and isinstance(source, PageStore):  # it may have counted more than its rows
            store.add_counts(source.counts)
            continue
        found_rows = watch(source.rows(kind.prefix), what=f"rows of {kind.name}")
        rows = dict(sound_rows(kind, store, found_rows, damage_error))
        found[kind.name] += len(rows)
        if kind.name == "counts":
            store.add_counts(read_counts(rows.items()))
        else:
            store.write(Changes(rows))
    changes, waiting = Changes(), 0

    def flush() -> None:
        nonlocal changes, waiting
        store.write(changes, added=waiting)
        changes, waiting = Changes(), 0

    for entry in map(change, watch(pages, total)):
        record = entry.record
        url = url_key(record.url, store.hashes)
        if url in changes.puts or store.kv.get(url) is not None:
            flush()
            if (earlier := store.find(record.url)) is not None:  # else two URLs have one hash
                found["replaced"] += 1
                if earlier.id > record.id:
                    continue
                store.forget([earlier.id])
        store.file(record, changes, entry.seen, entry.evidence)
        waiting += 1
        if len(changes.puts) >= _ROWS:
            flush()
    flush()
    return found


@contextmanager
def new_state(kind: type[FileEngine], location: str, source: str) -> Iterator[tuple[Path, str]]:
    """Yield a scratch folder, and the location for a state in it; at the end that state is at ``location``.

    ``source``: the location of the old state. Raises StoreError if the new one would lie inside it, if something is
    there already, if a run that was killed has left its folder, or if the new one could not be written completely.
    """
    place, witness = Path(location), kind.witness_of(location)
    if place.is_relative_to(source):
        raise StoreError(f"{place} is the old state, or inside of it. Name a place outside of it.")
    _refuse_existing(place, witness)
    prefix = f".{place.name}-unfinished-"
    for left in place.parent.glob(f"{escape(prefix)}*"):
        raise StoreError(
            f"An earlier run was stopped, or is at work: it left {left}. Nothing uses that folder once the run is "
            "over. Remove it, then run the command again."
        )
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=prefix, dir=place.parent, ignore_cleanup_errors=True) as folder:
            draft = str(Path(folder) / "new")
            try:
                yield Path(folder), draft
            except StoreError as error:
                raise type(error)(str(error).replace(draft, location)) from error
            if logs := [log.name for log in Path(folder).glob("new-*")]:
                # SQLite closes in silence if it cannot write its log to its file, and without its log the file is torn.
                raise OSError(f"SQLite could not finish it, and left {' and '.join(logs)}")
            _refuse_existing(place, witness)  # a crawl may have begun there, and a rename replaces its file
            Path(draft).rename(place)
            new_witness = kind.witness_of(draft)
            if new_witness.exists():  # else it moved with the state
                new_witness.rename(witness)
            sync_directory(place.parent)
    except OSError as error:
        raise StoreError(
            f"The new state at {place} cannot be made: {error}. Name another place, or make room."
        ) from None


def _refuse_existing(*paths: Path) -> None:
    for there in paths:
        if there.exists():
            raise StoreError(f"{there} already exists. Name a new place for the new state.")


def export(store: PageStore, target: tuple[type[FileEngine], str], watch: Watch = unwatched) -> int:
    """Make a copy of a state or a snapshot at ``target`` (class and location), without unsealed pages; return their
    number. Raises StoreError.
    """
    kind, location = target
    _ = store.hashes  # raises if the secret is unknown
    with (
        new_state(kind, location, store.location) as (_, draft),
        closing(open_at(kind, draft, store.recipe, secret=store.secret)) as new,
    ):
        copy_state(store, sealed_pages(store), new, watch=watch, total=store.pages)
        return new.pages


def repair(
    source: tuple[type[FileEngine], str],
    target: tuple[type[FileEngine], str],
    watch: Watch = unwatched,
    secret: Secret | None = None,
) -> tuple[dict[str, Any], Findings]:
    """Make a repaired copy of the state at ``source`` (class and location) at ``target``, which must be free.

    ``secret``: for a state that holds none. Return numbers of pages and rows, and the findings on the copy.

    Raises StoreLocked while a crawl uses the source, StoreError if the recipe or everything is unreadable, or there is
    no room.
    """
    kind, location = source
    with new_state(*target, location) as (folder, draft):
        with kind.damaged_copy(location, folder) as copy:
            state = DamagedState(copy, kind, location, secret)
            with closing(open_at(target[0], draft, state.recipe, secret=state.secret)) as store:
                rows = copy_state(state, state.pages(), store, watch=watch)
                pages, replaced = store.pages, rows.pop("replaced", 0)
        with closing(open_at(target[0], draft, None, secret=state.secret)) as store:
            findings = check(store, watch)
    missing = (state.pages_before or 0) - pages - state.unsealed - replaced
    numbers = {
        "pages": pages,
        "pages_before": state.pages_before,
        "known_lost": max(state.named, state.broken, missing),  # there may be more
        "broken": state.broken,
        "unsealed": state.unsealed,
        "replaced": replaced,
        "unreadable_ranges": state.gaps,
        "rows": {**rows, "evidence": findings.rows["evidence"]},
    }
    return numbers, findings


# Another recipe.

#: Parts of a recipe that name tools.
_TOOLS = frozenset((SAMPLES, "extractor", "segmenter", "script"))


class Way(Enum):
    """How a page came over."""

    TEXT = "new fingerprint, from the text in the state"
    KEPT = "fingerprint kept"
    URL = "known by its URL, judged when it comes again"
    COPY = "a copy, known by its URL and its original"
    UNJUDGED = "unjudged, known by its HTML or item"


def migrate(
    old: PageStore,
    target: tuple[type[FileEngine], str],
    recipe: Mapping[str, Any],
    method: Method,
    policy: Policy,
    watch: Watch = unwatched,
) -> dict[Way, int]:
    """Make a copy of a state at ``target`` with another recipe and the same secret; return the pages by way.

    Raises StoreError if not every page could be converted; then there is no new state.
    """
    kind, location = target
    _ = old.hashes  # raises if the secret is unknown
    with (
        new_state(kind, location, old.location) as (_, draft),
        closing(open_at(kind, draft, recipe, secret=old.secret)) as new,
    ):
        ways = _convert(old, new, method, policy, watch)
        if new.pages != old.pages:
            raise StoreError(
                f"Only {new.pages:,} of {old.pages:,} pages were converted, so there is no new state. Find the cause "
                "with: scrapy neardup check"
            )
    return ways


def _convert(old: PageStore, new: PageStore, method: Method, policy: Policy, watch: Watch) -> dict[Way, int]:
    method = method.with_hashes(new.hashes)
    is_same_method = fits(
        *({name: store.recipe[name] for name in store.recipe.keys() - _TOOLS} for store in (old, new))
    )
    ways = dict.fromkeys(Way, 0)

    def convert(entry: PageEntry) -> PageEntry:
        # Its bytes would recognise it as the former tools read it.
        record, page = replace(entry.record, body=0), kept_page(entry.record.url, entry.evidence)
        if record.is_unjudged:
            way = Way.UNJUDGED
        elif record.is_light and not record.sketch and not record.former:
            way = Way.COPY
        elif page is not None and not page.unread and not policy.why_unjudged(page.text):
            way = Way.TEXT
            record = _fingerprint(record, page, method, new, is_counted=is_same_method)
        elif is_same_method and not record.former:
            way = Way.KEPT
        else:
            way = Way.URL
            record = replace(record, keys=(), sketch=b"", former=True)
        ways[way] += 1
        return replace(entry, record=record)

    kinds = [kind for kind in STATE_ROWS if is_same_method or kind.name != "counts"]
    copy_state(old, sealed_pages(old), new, kinds, convert, watch, old.pages)
    return ways


def _fingerprint(record: Record, page: Page, method: Method, new: PageStore, *, is_counted: bool) -> Record:
    """Return the record with its new fingerprint; an original or variant has keys.

    ``is_counted``: whether the new state has the counts of its sentences.
    """
    made = method.for_state(page, new.on_site(page.site))
    keys: tuple[int, ...] = ()
    if record.is_original or record.keys:
        overused_keys = candidates(method, new, made.keys).overused_keys
        keys = without_overused_keys(made, overused_keys).keys
        if not is_counted:
            count_sentences(new, record.url, page.site, made, everywhere=record.is_original)
    keys += (record.original,) if record.has_led else ()
    return replace(record, keys=keys, sketch=made.sketch, former=False)
