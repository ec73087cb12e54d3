"""Make a repaired copy of a damaged state."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.judge.manual_verdicts import ManualVerdict
from scrapy_neardup.kv.base import Changes, DamagedCopy, Engine, Row, UnreadableError, after
from scrapy_neardup.kv.tally import KEY, RowTally, secret_at
from scrapy_neardup.maintenance.scan import Ids, Watch, column, unwatched
from scrapy_neardup.maintenance.verify import KEPT, Findings, KeptRows, check, unpacked
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.state.evidence import Evidence
from scrapy_neardup.state.history import FORMER_KEY as FORMER
from scrapy_neardup.state.history import former_problem, unpack_former
from scrapy_neardup.state.layout import (
    evidence_key,
    last_id,
    meta_key,
    record_key,
    unpack_block,
    unpack_seen,
    url_key,
)
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
            yield from self._front(key, key + b"\0")

    def _front(self, low: bytes, high: bytes) -> Iterator[Row]:
        with suppress(UnreadableError):
            yield from self._ordered(low, high, reverse=False)

    def _read(self, low: bytes, high: bytes) -> Generator[Row, None, tuple[bytes, bytes] | None]:
        """Yield the readable rows of a range from both ends; return the gap, or None."""
        try:
            for row in self._ordered(low, high, reverse=False):
                yield row
                low = row[0] + b"\0"
            return None
        except UnreadableError:
            pass
        try:
            for row in self._ordered(low, high, reverse=True):
                yield row
                high = row[0]
            return None
        except UnreadableError:
            return low, high

    def _ordered(self, low: bytes, high: bytes, *, reverse: bool) -> Iterator[Row]:
        """Stop at rows out of order, because a damaged tree may have loops."""
        for key, value in self._copy.rows(low, high, reverse=reverse):
            if not (type(key) is type(value) is bytes and low <= key < high):
                raise UnreadableError("there is a row where it cannot be")
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
#: Lengths of the keys of pages, of URL rows and of postings.
_ID_KEY, _SEEN, _PAIR = 9, 12, 17


@dataclass(frozen=True, slots=True)
class Refiled:
    """What was saved.

    ``broken``: records that are damaged or have another URL than their URL row. ``named``: missing pages that other
    rows name. ``unsealed``: pages of a killed crawl, rolled back. ``replaced``: earlier versions of a URL. ``gaps``:
    unreadable ranges.
    """

    pages: int
    evidence: int
    blocks: int
    broken: int
    named: int
    unsealed: int
    replaced: int
    gaps: int


def refile(salvage: Salvage, store: PageStore, watch: Watch = unwatched) -> Refiled:
    """File every readable record in an empty store; records give postings and URLs."""
    filing = _Filing(salvage, store)
    filing.take_records(watch)
    evidence = filing.take_evidence(watch)
    blocks = filing.take_blocks()
    filing.take_former(watch)
    filing.take_kept()
    return Refiled(
        store.pages, evidence, blocks, filing.broken, filing.named, len(filing.unsealed), filing.replaced, salvage.gaps
    )


class _Filing:
    def __init__(self, salvage: Salvage, store: PageStore) -> None:
        self._salvage = salvage
        self._store = store
        self._changes = Changes()
        self._waiting = 0
        self.unsealed = {last_id(key) for key, _ in salvage.rows(b"j") if len(key) == _PAIR}
        self.broken = self.replaced = self.named = 0
        #: Ids in URL rows; the hash of each URL, and its last sight in seconds since 1970.
        self._ids, self._urls, self._seen = self._read_urls()

    def _read_urls(self) -> tuple[array[int], array[int], array[int]]:
        ids, urls, seconds = array("Q"), array("Q"), array("Q")
        for key, seen in self._salvage.rows(b"u"):
            if len(key) == _ID_KEY and len(seen) == _SEEN:
                id, when = unpack_seen(seen)
                ids.append(id)
                urls.append(last_id(key))
                seconds.append(when)
        order = np.argsort(column(ids))
        by_id = (array("Q", column(one)[order].tobytes()) for one in (ids, urls, seconds))
        return next(by_id), next(by_id), next(by_id)

    def take_records(self, watch: Watch) -> None:
        saved = array("Q")
        for key, packed in watch(self._rows(b"r", saved)):
            record = unpacked(key, packed)
            if record is None or self._is_of_another_url(record):
                self.broken += 1
                continue
            saved.append(record.id)
            if record.id not in self.unsealed:
                self._file(record)
        self._flush()
        self.named = len(np.setdiff1d(self._expected(), column(saved)))

    def _rows(self, prefix: bytes, taken: array[int]) -> Iterator[Row]:
        """Yield the readable rows of pages; in gaps, look up pages that other rows name."""
        gaps = self._salvage.gaps
        yield from self._salvage.rows(prefix)
        if self._salvage.gaps > gaps:
            missing = np.setdiff1d(self._expected(), column(taken))
            yield from self._salvage.look_up(prefix + id.to_bytes(8, "big") for id in missing.tolist())

    def _expected(self) -> Ids:
        """Return ids in URL rows, and keys in gaps."""
        ids = column(self._ids)
        if self._salvage.gaps:
            filed = array("Q", self._filed())
            ids = np.union1d(ids, column(filed))
        return ids

    def _filed(self) -> Iterator[int]:
        for row in self._salvage.rows(b"k"):
            if is_posting(row):
                yield from (id for _, id in pairs(row))

    def _file(self, record: Record) -> None:
        url = url_key(record.url, self._store.hashes)
        if url in self._changes.puts or self._store.value(url) is not None:
            self._flush()
            earlier = self._store.find(record.url)
            if earlier is not None:  # else two URLs have one hash
                self.replaced += 1
                if earlier.id > record.id:
                    return
                self._store.forget([earlier.id])
        self._store.file(record, self._changes, self._last_seen(record))
        self._waiting += 1
        if len(self._changes.puts) >= _BATCH:
            self._flush()

    def _last_seen(self, record: Record) -> float:
        at = self._place(record.id)
        return record.first_seen if at is None else self._seen[at]

    def _is_of_another_url(self, record: Record) -> bool:
        """Whether a record has another URL than the row that names it."""
        at = self._place(record.id)
        return at is not None and self._urls[at] != last_id(url_key(record.url, self._store.hashes))

    def _place(self, id: int) -> int | None:
        at = bisect_left(self._ids, id)
        return at if at < len(self._ids) and self._ids[at] == id else None

    def take_evidence(self, watch: Watch) -> int:
        taken = array("Q")
        for key, packed in watch(self._rows(b"e", taken), what="rows of evidence"):
            if len(key) != _ID_KEY or self._store.value(record_key(last_id(key))) is None:
                continue
            try:
                Evidence.unpack(packed)
            except ValueError:
                continue
            taken.append(last_id(key))
            self._changes.put(evidence_key(last_id(key)), packed)
            if len(self._changes.puts) >= _BATCH:
                self._flush()
        self._flush()
        return len(taken)

    def take_former(self, watch: Watch) -> None:
        """Take former recipes and sketches, which recognise unchanged pages."""
        packed = dict(self._salvage.look_up([FORMER])).get(FORMER)
        try:
            recipes = len(unpack_former(packed)) if packed is not None else 0
        except ValueError:
            return
        if packed is None or not recipes:
            return
        self._changes.put(FORMER, packed)
        for key, sketch in watch(self._rows(b"o", array("Q")), what="former sketches"):
            record = None if former_problem(key, sketch, recipes) else self._store.record(last_id(key))
            if record is not None and record.former:
                self._changes.put(key, sketch)
                if len(self._changes.puts) >= _BATCH:
                    self._flush()
        self._flush()

    def take_blocks(self) -> int:
        counts, blocks = Counts(), 0
        for key, packed in self._salvage.rows(b"b"):
            try:
                counts.load(unpack_block(key), packed)
            except ValueError:
                continue
            self._changes.put(key, packed)
            blocks += 1
        self._flush()
        return blocks

    def take_kept(self) -> None:
        judgements = KeptRows(b"n", "judgement", partial(ManualVerdict.of_row, hashes=self._store.hashes))
        for kept in (*KEPT, judgements):
            for key, packed in self._salvage.rows(kept.prefix):
                with suppress(ValueError):
                    kept.unpack(key, packed)
                    self._changes.put(key, packed)
        self._flush()

    def _flush(self) -> None:
        if self._changes.puts:
            self._store.write(self._changes, added=self._waiting)
        self._changes, self._waiting = Changes(), 0


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    ``before``: the number of pages at the last write, None if unreadable. ``assumed``: whether the recipe came from
    elsewhere. ``findings``: the check of the new state.
    """

    location: str
    filed: Refiled
    before: int | None
    assumed: bool
    findings: Findings

    @property
    def lost(self) -> int:
        """Pages that are known to be lost; there may be more."""
        filed = self.filed
        kept = filed.pages + filed.unsealed + filed.replaced
        return max(filed.named, filed.broken, (self.before or 0) - kept)


def repair(
    source: tuple[type[Engine], str],
    target: tuple[type[Engine], str],
    recipe: Mapping[str, Any] | None = None,
    watch: Watch = unwatched,
    secret: Secret | None = None,
) -> Repaired:
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
                written, before, held = _about(salvage, location)
                if written is None and recipe is None:
                    raise StoreError(
                        f"The recipe of the state at {location} cannot be read. "
                        "If the settings here are those of its crawl, add --assume-recipe."
                    )
                found = _secret(written, held or _beside(kind, location), secret, location)
                if found is None:
                    raise StoreError(
                        f"The secret of the state at {location} cannot be read, and without it no page can be found. "
                        f"Restore the state from a backup, or, if it was written with a {SECRET_SETTING}, set that."
                    )
                with closing(open_at(new_kind, draft, written or recipe, secret=found)) as store:
                    filed = refile(salvage, store, watch)
            with closing(open_at(new_kind, draft, None, secret=found)) as store:
                findings = check(store, watch)
            Path(draft).rename(place)
            beside = new_kind.witness_of(draft)
            if witness is not None and beside is not None and beside.exists():  # else it has moved with the state
                beside.rename(witness)
    except OSError as error:
        raise StoreError(
            f"The repaired copy at {place} cannot be made: {error}. Name another place, or make room."
        ) from None
    return Repaired(new_location, filed, before, written is None, findings)


def _about(salvage: Salvage, location: str) -> tuple[dict[str, Any] | None, int | None, bytes | None]:
    """Return recipe, number of pages and own secret, as far as they are readable.

    Raises StoreMismatch for another format.
    """
    about = dict(salvage.rows(b"m"))
    try:
        recipe = check_recipe(about[meta_key("recipe")], None, location)
    except (KeyError, TypeError, ValueError):
        recipe = None
    own = about.get(meta_key("secret"))
    try:
        return recipe, RowTally.unpack(about.get(KEY, b"")).pages, own
    except ValueError:
        return recipe, None, own


def _beside(kind: type[Engine], location: str) -> bytes | None:
    """Return the secret in the witness."""
    witness = kind.witness_of(location)
    return secret_at(witness) if witness is not None else None


def _secret(recipe: dict[str, Any] | None, own: bytes | None, given: Secret | None, location: str) -> Secret | None:
    """Return the secret that fits the recipe, or the only one."""
    if recipe is not None:
        return secret_of(recipe, own, given, location)
    return given if own is None else Secret(own)
