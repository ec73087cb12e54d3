"""Copy a state into a new one: a sound one to another recipe, or the readable part of a damaged one.

The new state is made in a folder beside its place, and moved there when it is complete. So no crawl opens a part of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from scrapy_neardup.atomic import sync_directory
from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.copies import count_sentences
from scrapy_neardup.judge.matching import candidates, without_overused_keys
from scrapy_neardup.kv.base import Changes, FileEngine
from scrapy_neardup.maintenance.damaged import DamagedState
from scrapy_neardup.maintenance.export import OpenState, PageEntry, Source
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.maintenance.verify import STATE_ROWS, Findings, RowKind, check, sound_rows
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Page
from scrapy_neardup.state.boilerplate import read_counts
from scrapy_neardup.state.evidence import kept_page
from scrapy_neardup.state.layout import url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SAMPLES, Secret, fits
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.sentences import why_unjudged

#: Rows per batch, some ten for each page. Common keys are known from then on.
_ROWS = 2000


@dataclass(slots=True)
class CopyCounts:
    """``pages``: copied; ``rows``: other rows, by the names of ``STATE_ROWS``; ``replaced``: earlier versions of a URL,
    which are left out.
    """

    pages: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    replaced: int = 0


def copy_state(
    source: Source,
    store: PageStore,
    kinds: Collection[RowKind] = STATE_ROWS,
    change: Callable[[PageEntry], PageEntry] = lambda entry: entry,
    watch: Watch = unwatched,
    total: int | None = None,
) -> CopyCounts:
    """Fill an empty state with pages and other rows, in batches. ``change``: returns the page to write.

    Of several pages of a URL the newest is copied.
    """
    found = CopyCounts()
    for kind in kinds:
        rows = dict(sound_rows(kind, store, watch(source.rows(kind.prefix), what=f"rows of {kind.name}")))
        found.rows[kind.name] += len(rows)
        if kind.name == "counts":
            store.add_counts(read_counts(rows.items()))
        else:
            store.write(Changes(rows))
    changes, waiting = Changes(), 0

    def flush() -> None:
        nonlocal changes, waiting
        store.write(changes, added=waiting)
        changes, waiting = Changes(), 0

    for entry in map(change, watch(source.pages(), total)):
        record = entry.record
        url = url_key(record.url, store.hashes)
        if url in changes.puts or store.value(url) is not None:
            flush()
            if (earlier := store.find(record.url)) is not None:  # else two URLs have one hash
                found.replaced += 1
                if earlier.id > record.id:
                    continue
                store.forget([earlier.id])
        store.file(record, changes, entry.seen, entry.evidence)
        waiting += 1
        if len(changes.puts) >= _ROWS:
            flush()
    flush()
    found.pages = store.pages
    return found


@contextmanager
def new_state(kind: type[FileEngine], location: str, source: str) -> Iterator[tuple[Path, str]]:
    """Yield a scratch folder, and the location for a state in it; at the end that state is at ``location``.

    ``source``: the location of the old state. Raises StoreError if the new one would lie inside it, if something is
    there already, or if a run that was killed has left its folder.
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
            yield Path(folder), draft
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


# A damaged state.


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair; ``source`` has more numbers; ``findings``: of the new state."""

    location: str
    saved: CopyCounts
    source: DamagedState
    findings: Findings

    @property
    def lost(self) -> int:
        """Pages that are known to be lost; there may be more."""
        kept = self.saved.pages + self.source.unsealed + self.saved.replaced
        return max(self.source.named, self.source.broken, (self.source.pages_before or 0) - kept)


def repair(
    source: tuple[type[FileEngine], str],
    target: tuple[type[FileEngine], str],
    watch: Watch = unwatched,
    secret: Secret | None = None,
) -> RepairResult:
    """Make a repaired copy of the state at ``source`` (class and location) at ``target``, which must be free.

    ``secret``: for a state that holds none. Raises StoreLocked while a crawl uses the source, StoreError if the
    recipe or everything is unreadable, or there is no room.
    """
    kind, location = source
    with new_state(*target, location) as (folder, draft):
        with kind.damaged_copy(location, folder) as copy:
            damaged = DamagedState(copy, kind, location, secret)
            with closing(open_at(target[0], draft, damaged.recipe, secret=damaged.secret)) as store:
                saved = copy_state(damaged, store, watch=watch)
        with closing(open_at(target[0], draft, None, secret=damaged.secret)) as store:
            findings = check(store, watch)
    saved.rows["evidence"] = findings.rows["evidence"]
    return RepairResult(target[1], saved, damaged, findings)


# Another recipe.

#: Parts of a recipe that name tools.
_TOOLS = frozenset((SAMPLES, "extractor", "segmenter", "script"))


class Way(Enum):
    """How a page came over."""

    FEED = "new fingerprint, from the feed"
    TEXT = "new fingerprint, from the text in the state"
    KEPT = "fingerprint kept"
    URL = "known by its URL, judged when it comes again"
    COPY = "a copy, known by its URL and its original"
    UNJUDGED = "unjudged, known by its HTML or item"


class Migration:
    """Copies one state into an empty one with another recipe and the same secret."""

    def __init__(self, old: PageStore, new: PageStore, method: Method, min_letters: int) -> None:
        self._old, self._new = old, new
        self._method = method.with_hashes(new.hashes)
        self._min_letters = min_letters
        recipes = [{name: value for name, value in one.recipe.items() if name not in _TOOLS} for one in (old, new)]
        #: Whether fingerprints of both can be compared, apart from tools.
        self.is_same_method = fits(*recipes)
        #: Pages by way; rows of the feed, and how many belong to a page of the state.
        self.ways: Counter[Way] = Counter()
        self.records = self.records_used = 0
        #: Ids of pages with a row in the feed.
        self._fed: set[int] = set()

    def take_all(self, watch: Watch = unwatched) -> None:
        """Bring everything over. Raises StoreError."""
        kinds = [kind for kind in STATE_ROWS if self.is_same_method or kind.name != "counts"]
        copy_state(OpenState(self._old), self._new, kinds, self._place, watch, self._old.pages)

    def take_feed(self, pages: Iterable[Page | None]) -> None:
        """Fingerprint pages that are in a feed; ``None`` is a row without a page."""
        new = self._new
        for page in pages:
            known = new.find(page.url) if page else None
            self.records += 1
            if page is None or known is None or known.is_unjudged or not (known.former or known.sketch):
                continue
            if not self._is_enough(page):
                continue
            self.records_used += 1
            evidence = new.evidence(known.id)
            if known.id not in self._fed:
                self._fed.add(known.id)
                self.ways[self._way(known, kept_page(known.url, evidence))] -= 1
                self.ways[Way.FEED] += 1
            earlier = self._old.record(known.id)
            has_keys = known.is_original or (earlier is not None and bool(earlier.keys))
            record = self._fingerprint(known, page, has_keys=has_keys)
            new.add(record, evidence, replaces=known.id, seen=new.last_seen(known.url))

    def _way(self, record: Record, page: Page | None) -> Way:
        """Return the way of a page without a feed."""
        if record.is_unjudged:
            return Way.UNJUDGED
        if record.is_light and not record.sketch and not record.former:
            return Way.COPY
        if page is not None and self._is_enough(page):
            return Way.TEXT
        return Way.KEPT if self.is_same_method and not record.former else Way.URL

    def _place(self, entry: PageEntry) -> PageEntry:
        """Return a page for the new state."""
        # Its bytes would recognise it as the former tools read it.
        record, page = replace(entry.record, body=0), kept_page(entry.record.url, entry.evidence)
        way = self._way(record, page)
        self.ways[way] += 1
        if way is Way.TEXT and page is not None:
            record = self._fingerprint(record, page, has_keys=record.is_original or bool(record.keys))
        elif way is Way.URL:
            record = replace(record, keys=(), sketch=b"", former=True)
        return replace(entry, record=record)

    def _fingerprint(self, record: Record, page: Page, *, has_keys: bool) -> Record:
        """Return the record with its fingerprint; an original or variant has keys."""
        made = self._method.for_state(page, self._new.on_site(page.site))
        keys: tuple[int, ...] = ()
        if has_keys:
            overused_keys = candidates(self._method, self._new, made.keys).overused_keys
            keys = without_overused_keys(made, overused_keys).keys
            if not self.is_same_method:
                count_sentences(self._new, record.url, page.site, made, everywhere=record.is_original)
        keys += (record.original,) if record.leads else ()
        return replace(record, keys=keys, sketch=made.sketch, former=False)

    def _is_enough(self, page: Page) -> bool:
        return not page.unread and not why_unjudged(page.text, self._min_letters)
