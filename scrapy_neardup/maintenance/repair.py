"""Make a repaired copy of a damaged state."""

from __future__ import annotations

import struct
from array import array
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes, DamagedCopy, Engine, Row, after
from scrapy_neardup.kv.tally import KEY, RowTally, secret_at
from scrapy_neardup.maintenance.scan import Watch, columns, place_of, unwatched, write_rows
from scrapy_neardup.maintenance.verify import (
    ROW_KINDS,
    Findings,
    PageColumns,
    RowKind,
    check,
    page_columns,
    unpack_record,
)
from scrapy_neardup.state.layout import last_id, meta_key, unpack_seen, url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import SECRET_SETTING, Secret, check_recipe, secret_of
from scrapy_neardup.state.record import Record

#: Ranges to try for one prefix.
_TRIES = 1500
#: Bytes of a key that halve a range; all keys differ in them.
_WIDTH = 17


class Salvage:
    """Reads what is readable; ``gaps`` counts unreadable ranges.

    It reads a range from both ends. Then it halves the gap between, and tries again.
    """

    def __init__(self, copy: DamagedCopy) -> None:
        self._copy = copy
        self.gaps = 0

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the readable rows with a prefix, each once; in byte order if all are readable."""
        behind = after(prefix)
        assert behind is not None  # no prefix of ours ends in 255
        ranges, lost, tries = deque([(prefix, behind)]), list[tuple[bytes, bytes]](), 0
        while ranges:
            rest = yield from self._read(*ranges.popleft())
            tries += 1
            if rest is None:
                continue
            halves = _halved(*rest)
            if len(halves) < 2 or tries + len(ranges) >= _TRIES:
                lost.append(rest)
            else:
                ranges += halves
        lost.sort()
        self.gaps += sum(low != end for (low, _), end in zip(lost, [b"", *(high for _, high in lost)], strict=False))

    def _read(self, low: bytes, high: bytes) -> Generator[Row, None, tuple[bytes, bytes] | None]:
        """Yield the readable rows of a range from both ends; return the gap, or None."""
        try:
            for row in self._ordered(low, high, reverse=False):
                yield row
                low = row[0] + b"\0"
            return None
        except StoreError:
            pass
        try:
            for row in self._ordered(low, high, reverse=True):
                yield row
                high = row[0]
            return None
        except StoreError:
            return low, high

    def _ordered(self, low: bytes, high: bytes, *, reverse: bool) -> Iterator[Row]:
        """Stop at rows out of order, because a damaged tree may have loops."""
        for key, value in self._copy.rows(low, high, reverse=reverse):
            if not (type(key) is type(value) is bytes and low <= key < high):
                raise StoreError("there is a row where it cannot be")
            yield key, value
            if reverse:
                high = key
            else:
                low = key + b"\0"


def _halved(low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
    first, end = (int.from_bytes(key[:_WIDTH].ljust(_WIDTH, b"\0"), "big") for key in (low, high))
    middle = ((first + end) // 2).to_bytes(_WIDTH, "big").rstrip(b"\0")
    return [(low, middle), (middle, high)] if low < middle < high else [(low, high)]


#: Rows per batch.
_BATCH = 20_000
#: Lengths of the keys of URL rows and of unsealed pages, and of the values of URL rows.
_ID_KEY, _PAIR, _SEEN = 9, 17, 12


@dataclass(slots=True)
class RepairCounts:
    """What was saved.

    ``rows``: rows that no record implies, by the names of ``ROW_KINDS``. ``broken``: records that are damaged or have
    another URL than their URL row. ``named``: missing pages that URL rows name. ``unsealed``: pages of a killed crawl,
    rolled back. ``replaced``: earlier versions of a URL. ``gaps``: unreadable ranges.
    """

    pages: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    broken: int = 0
    named: int = 0
    unsealed: int = 0
    replaced: int = 0
    gaps: int = 0


class _Refiler:
    """Files every readable record in an empty store; records give postings and URLs."""

    def __init__(self, salvage: Salvage, store: PageStore, watch: Watch) -> None:
        self.found = RepairCounts()
        self._salvage = salvage
        self._store = store
        self._watch = watch
        self._changes = Changes()
        self._waiting = 0
        self._unsealed = {last_id(key) for key, _ in salvage.rows(b"j") if len(key) == _PAIR}
        ids, seen, urls = columns(self._url_rows(), np.uint64, np.uint64, np.uint64)
        order = np.argsort(ids, kind="stable")
        #: Ids in URL rows; the last sight of each URL in seconds since 1970, and its hash.
        self._ids, self._seen, self._urls = ids[order], seen[order], urls[order]

    def _url_rows(self) -> Iterator[tuple[int, int, int]]:
        for key, packed in self._salvage.rows(b"u"):
            if len(key) == _ID_KEY and len(packed) == _SEEN:
                yield *unpack_seen(packed), last_id(key)

    def run(self) -> RepairCounts:
        """File everything."""
        store, found = self._store, self.found
        self._file_records()
        pages = page_columns(store.records(), store.hashes)
        for kind in ROW_KINDS:
            if kind.prefix != b"x":  # which records imply
                write_rows(store, self._sound_rows(kind, pages))
        found.pages, found.unsealed, found.gaps = store.pages, len(self._unsealed), self._salvage.gaps
        return found

    def _file_records(self) -> None:
        saved = array("Q")
        for key, packed in self._watch(self._salvage.rows(b"r")):
            record = unpack_record(key, packed)
            at = place_of(self._ids, last_id(key))
            if record is None or (at is not None and int(self._urls[at]) != self._url_of(record)):
                self.found.broken += 1
                continue
            saved.append(record.id)
            if record.id not in self._unsealed:
                self._file(record, record.first_seen if at is None else int(self._seen[at]))
        self._flush()
        self.found.named = len(np.setdiff1d(self._ids, np.array(saved, np.uint64)))

    def _url_of(self, record: Record) -> int:
        return last_id(url_key(record.url, self._store.hashes))

    def _file(self, record: Record, seen: float) -> None:
        store, url = self._store, url_key(record.url, self._store.hashes)
        if url in self._changes.puts or store.value(url) is not None:
            self._flush()
            earlier = store.find(record.url)
            if earlier is not None:  # else two URLs have one hash
                self.found.replaced += 1
                if earlier.id > record.id:
                    return
                store.forget([earlier.id])
        store.file(record, self._changes, seen)
        self._waiting += 1
        if len(self._changes.puts) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._store.write(self._changes, added=self._waiting)
        self._changes, self._waiting = Changes(), 0

    def _sound_rows(self, kind: RowKind, pages: PageColumns) -> Iterator[Row]:
        """Yield and count the sound rows of a kind whose pages are there."""
        unpack = kind.unpack(self._store)
        for key, packed in self._watch(self._salvage.rows(kind.prefix), what=f"rows of {kind.name}"):
            with suppress(ValueError, struct.error):
                unpack(key, packed)
                if kind.fits(pages, key, packed):
                    self.found.rows[kind.name] += 1
                    yield key, packed


@dataclass(frozen=True, slots=True)
class RepairResult:
    """The result of a repair.

    ``before``: the number of pages at the last write, None if unreadable. ``assumed``: whether the recipe came from
    elsewhere. ``findings``: the check of the new state.
    """

    location: str
    saved: RepairCounts
    before: int | None
    assumed: bool
    findings: Findings

    @property
    def lost(self) -> int:
        """Pages that are known to be lost; there may be more."""
        saved = self.saved
        kept = saved.pages + saved.unsealed + saved.replaced
        return max(saved.named, saved.broken, (self.before or 0) - kept)


def repair(
    source: tuple[type[Engine], str],
    target: tuple[type[Engine], str],
    recipe: Mapping[str, Any] | None = None,
    watch: Watch = unwatched,
    secret: Secret | None = None,
) -> RepairResult:
    """Make a repaired copy of the state at ``source`` (class and location) at ``target``, which must be free.

    ``recipe`` replaces an unreadable one; ``secret``: one that the state does not hold. The work happens beside the
    target, which appears when it is complete. Raises StoreLocked while a crawl uses the source, StoreError if nothing
    is readable or there is no room.
    """
    (kind, location), (new_kind, new_location) = source, target
    place, witness = Path(new_location), new_kind.witness_of(new_location)
    for there in (place, witness):
        if there is not None and there.exists():
            raise StoreError(f"{there} already exists. Name a new place for the repaired copy.")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".repair-", dir=place.parent, ignore_cleanup_errors=True) as folder:
            draft = str(Path(folder) / "new")
            with kind.damaged_copy(location, Path(folder)) as copy:
                salvage = Salvage(copy)
                written, before, found = _read_head(salvage, kind, location, secret)
                if written is None and recipe is None:
                    raise StoreError(
                        f"The recipe of the state at {location} cannot be read. "
                        "If the settings here are those of its crawl, add --assume-recipe."
                    )
                if found is None:
                    raise StoreError(
                        f"The secret of the state at {location} cannot be read, and without it no page can be found. "
                        f"Restore the state from a backup, or, if it was written with a {SECRET_SETTING}, set that."
                    )
                with closing(open_at(new_kind, draft, written or recipe, secret=found)) as store:
                    saved = _Refiler(salvage, store, watch).run()
            with closing(open_at(new_kind, draft, None, secret=found)) as store:
                findings = check(store, watch)
            Path(draft).rename(place)
            new_witness = new_kind.witness_of(draft)
            if witness is not None and new_witness is not None and new_witness.exists():  # else it moved with the state
                new_witness.rename(witness)
    except OSError as error:
        raise StoreError(
            f"The repaired copy at {place} cannot be made: {error}. Name another place, or make room."
        ) from None
    return RepairResult(new_location, saved, before, written is None, findings)


def _read_head(
    salvage: Salvage, kind: type[Engine], location: str, given: Secret | None
) -> tuple[dict[str, Any] | None, int | None, Secret | None]:
    """Return recipe, number of pages and secret, as far as they are readable.

    The secret is the one that fits the recipe, or the only one; the witness has it too. Raises StoreMismatch for
    another format.
    """
    rows = dict(salvage.rows(b"m"))
    recipe, pages = None, None
    with suppress(KeyError, TypeError, ValueError):
        recipe = check_recipe(rows[meta_key("recipe")], None, location)
    with suppress(KeyError, ValueError):
        pages = RowTally.unpack(rows[KEY]).pages
    witness = kind.witness_of(location)
    own = rows.get(meta_key("secret")) or (secret_at(witness) if witness is not None else None)
    if recipe is not None:
        return recipe, pages, secret_of(recipe, own, given, location)
    return None, pages, given if own is None else Secret(own)
