"""Make a repaired copy of a damaged state."""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.kv.base import Changes, DamagedCopy, Engine, Row, after
from scrapy_neardup.kv.tally import KEY, RowTally, secret_at
from scrapy_neardup.maintenance.scan import Ids, Watch, column, unwatched
from scrapy_neardup.maintenance.verify import ROW_KINDS, Findings, PageColumns, RowKind, check, unpack_record
from scrapy_neardup.state.history import FORMER_KEY, unpack_former
from scrapy_neardup.state.layout import last_id, meta_key, unpack_seen, url_key
from scrapy_neardup.state.opening import open_at
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.postings import is_posting, pairs
from scrapy_neardup.state.recipe import SECRET_SETTING, Secret, check_recipe, secret_of
from scrapy_neardup.state.record import Record

# A range is read from both ends; the gap between is halved and tried again.


#: Ranges to try for one prefix.
_TRIES = 1500
#: Bytes of a key that halve a range; all keys differ in them.
_WIDTH = 17


class Salvage:
    """Reads what is readable; ``gaps`` counts unreadable ranges."""

    def __init__(self, copy: DamagedCopy) -> None:
        self._copy = copy
        self.gaps = 0

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """Yield the readable rows with a prefix, each once; in byte order if all are readable.

        The widest gaps come first.
        """
        behind = after(prefix)
        assert behind is not None  # no prefix of ours ends in 255
        ranges = [_range(prefix, behind)]
        lost = []
        tries = 0
        while ranges:
            _, low, high = heappop(ranges)
            rest = yield from self._read(low, high)
            tries += 1
            if rest is None:
                continue
            halves = _halved(*rest)
            if len(halves) < 2 or tries + len(ranges) >= _TRIES:
                lost.append(rest)
            else:
                for half in halves:
                    heappush(ranges, _range(*half))
        lost.sort()
        self.gaps += sum(low != end for (low, _), end in zip(lost, [b"", *(high for _, high in lost)], strict=False))

    def look_up(self, keys: Iterable[bytes]) -> Iterator[Row]:
        """Yield the readable rows of these keys."""
        for key in keys:
            with suppress(StoreError):
                yield from self._ordered(key, key + b"\0", reverse=False)

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


def _range(low: bytes, high: bytes) -> tuple[int, bytes, bytes]:
    """Return a range for the queue, by width."""
    return _number(low) - _number(high), low, high


def _number(key: bytes) -> int:
    return int.from_bytes(key[:_WIDTH].ljust(_WIDTH, b"\0"), "big")


def _halved(low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
    middle = ((_number(low) + _number(high)) // 2).to_bytes(_WIDTH, "big").rstrip(b"\0")
    return [(low, middle), (middle, high)] if low < middle < high else [(low, high)]


#: Rows per batch.
_BATCH = 20_000
#: Lengths of the keys of URL rows and of unsealed pages, and of the values of URL rows.
_ID_KEY, _PAIR, _SEEN = 9, 17, 12


@dataclass(slots=True)
class RepairCounts:
    """What was saved.

    ``rows``: rows that no record implies, by the names of ``ROW_KINDS``. ``broken``: records that are damaged or have
    another URL than their URL row. ``named``: missing pages that other rows name. ``unsealed``: pages of a killed
    crawl, rolled back. ``replaced``: earlier versions of a URL. ``gaps``: unreadable ranges.
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
        ids, seen, urls = (array("Q") for _ in range(3))
        for key, packed in salvage.rows(b"u"):
            if len(key) == _ID_KEY and len(packed) == _SEEN:
                id, when = unpack_seen(packed)
                ids.append(id)
                seen.append(when)
                urls.append(last_id(key))
        order = np.argsort(column(ids), kind="stable")
        #: Ids in URL rows; the last sight of each URL in seconds since 1970, and its hash.
        self._ids, self._seen, self._urls = (column(one)[order] for one in (ids, seen, urls))

    def run(self) -> RepairCounts:
        """File everything."""
        found = self.found
        self._file_records()
        self._copy_former_recipes()
        pages = PageColumns.read(self._store)
        for kind in ROW_KINDS:
            if kind.prefix != b"x":  # which records imply
                self._copy_rows(kind, pages)
        found.pages, found.unsealed, found.gaps = self._store.pages, len(self._unsealed), self._salvage.gaps
        return found

    def _file_records(self) -> None:
        saved = array("Q")
        for key, packed in self._watch(self._rows(b"r", saved, self._expected)):
            record = unpack_record(key, packed)
            if record is None or self._is_of_another_url(record):
                self.found.broken += 1
                continue
            saved.append(record.id)
            if record.id not in self._unsealed:
                self._file(record)
        self._flush()
        self.found.named = len(np.setdiff1d(self._expected(), column(saved)))

    def _rows(self, prefix: bytes, taken: array[int], expected: Callable[[], Ids]) -> Iterator[Row]:
        """Yield the readable rows of pages; if there are gaps, look up the expected pages that are not ``taken``."""
        gaps = self._salvage.gaps
        yield from self._salvage.rows(prefix)
        if self._salvage.gaps > gaps:
            missing = np.setdiff1d(expected(), column(taken))
            yield from self._salvage.look_up(prefix + id.to_bytes(8, "big") for id in missing.tolist())

    def _expected(self) -> Ids:
        """Return the ids in URL rows, and if there are gaps in postings."""
        if not self._salvage.gaps:
            return self._ids
        postings = filter(is_posting, self._salvage.rows(b"k"))
        return np.union1d(self._ids, column(array("Q", (id for row in postings for _, id in pairs(row)))))

    def _file(self, record: Record) -> None:
        store, changes = self._store, self._changes
        url = url_key(record.url, store.hashes)
        if url in changes.puts or store.value(url) is not None:
            self._flush()
            changes, earlier = self._changes, store.find(record.url)
            if earlier is not None:  # else two URLs have one hash
                self.found.replaced += 1
                if earlier.id > record.id:
                    return
                store.forget([earlier.id])
        at = self._place(record.id)
        store.file(record, changes, record.first_seen if at is None else int(self._seen[at]))
        self._waiting += 1
        self._flush_if_full()

    def _is_of_another_url(self, record: Record) -> bool:
        """Whether a record has another URL than the row that names it."""
        at = self._place(record.id)
        return at is not None and int(self._urls[at]) != last_id(url_key(record.url, self._store.hashes))

    def _place(self, id: int) -> int | None:
        at = int(np.searchsorted(self._ids, np.uint64(id)))
        return at if at < len(self._ids) and int(self._ids[at]) == id else None

    def _copy_former_recipes(self) -> None:
        packed = dict(self._salvage.look_up([FORMER_KEY])).get(FORMER_KEY)
        with suppress(ValueError):
            if packed is not None and unpack_former(packed):
                self._changes.put(FORMER_KEY, packed)
        self._flush()

    def _copy_rows(self, kind: RowKind, pages: PageColumns) -> None:
        """Copy the sound rows of a kind whose pages are there."""
        unpack, taken = kind.unpack(self._store), array("Q")
        rows = self._salvage.rows(kind.prefix)
        if kind.prefix in (b"e", b"o"):  # their keys end in the id of a page
            rows = self._rows(kind.prefix, taken, lambda: pages.members.ids)
        for key, packed in self._watch(rows, what=f"rows of {kind.name}"):
            try:
                unpack(key, packed)
            except (ValueError, struct.error):
                continue
            if kind.fits(pages, key, packed):
                taken.append(last_id(key))
                self.found.rows[kind.name] += 1
                self._changes.put(key, packed)
                self._flush_if_full()
        self._flush()

    def _flush_if_full(self) -> None:
        if len(self._changes.puts) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        if self._changes.puts:
            self._store.write(self._changes, added=self._waiting)
        self._changes, self._waiting = Changes(), 0


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
