"""The pages of a state, to copy them into another one: of an open state, and what can be read of a damaged one."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from scrapy_neardup.errors import StoreError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.kv.base import Row, after
from scrapy_neardup.kv.files import FileEngine
from scrapy_neardup.kv.tally import KEY, RowTally, secret_at
from scrapy_neardup.maintenance.verify import unpack_record
from scrapy_neardup.state.layout import GENERATIONS, RECORDS, UNSEALED, evidence_key, last_id, unpack_seen, url_key
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import (
    RECIPE,
    SECRET,
    SECRET_SETTING,
    Secret,
    check_recipe,
    secret_of,
)
from scrapy_neardup.state.record import Evidence, Record
from scrapy_neardup.state.verifier import column


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A record, its last sight in seconds since 1970, and its evidence."""

    record: Record
    seen: int
    evidence: Evidence | None = None


def sealed_pages(store: PageStore) -> Iterator[PageEntry]:
    """Yield the pages of a state by id, but no unsealed ones: of crawls that run, were killed, or wait for a feed."""
    unsealed = {last_id(key) for key, _ in store.rows(UNSEALED)}
    # On a server crawls go on meanwhile. A page's id is larger than its crawl's id. So up to the oldest crawl, and
    # up to the newest page that is there now, no page comes or goes.
    crawls = [last_id(key) for key, _ in store.rows(GENERATIONS)]
    newest = next((last_id(key) for key, _ in store.kv.scan(RECORDS, reverse=True)), 0)
    settled_up_to = min([newest, *crawls])
    for record in store.records():
        id = record.id
        # Whether it is unsealed comes first: a page that is rolled back has no record any more.
        may_move = store.is_shared and id > settled_up_to
        if id not in unsealed and not (may_move and (store.journal.is_unsealed(id) or store.record(id) is None)):
            yield PageEntry(record, store.last_seen(record.url), store.evidence(id))


# Damaged states.

#: Ranges to try for one prefix.
_TRIES = 1500
#: Bytes of a key that halve a range; all keys differ in them.
_WIDTH = 17
#: Lengths of the keys of URL rows and of unsealed pages, and of the values of URL rows.
_ID_KEY, _PAIR, _SEEN = 9, 17, 12


#: Yields the rows from a key to before another one. Raises StoreError at the first unreadable row.
Read = Callable[..., Iterator[Row]]


class Salvage:
    """Reads the readable rows; ``gaps`` counts unreadable ranges.

    It reads a range from both ends. Then it halves the gap between, and tries again.
    """

    def __init__(self, read: Read) -> None:
        self._rows = read
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

    def get(self, key: bytes) -> bytes | None:
        """Return a row's value; None if there is none, or if it is unreadable."""
        with suppress(StoreError):
            return next((value for _, value in self._ordered(key, key + b"\0", reverse=False)), None)
        return None

    def _read(self, low: bytes, high: bytes) -> Generator[Row, None, tuple[bytes, bytes] | None]:
        """Yield the readable rows of a range from both ends; return the gap, or None."""
        for reverse in (False, True):
            with suppress(StoreError):
                for row in self._ordered(low, high, reverse=reverse):
                    yield row
                    low, high = (low, row[0]) if reverse else (row[0] + b"\0", high)
                return None
        return low, high

    def _ordered(self, low: bytes, high: bytes, *, reverse: bool) -> Iterator[Row]:
        """Stop at rows out of order, because a damaged tree may have loops."""
        for key, value in self._rows(low, high, reverse=reverse):
            if not (type(key) is type(value) is bytes and low <= key < high):
                raise StoreError("there is a row where it cannot be")
            yield key, value
            low, high = (low, key) if reverse else (key + b"\0", high)


def _halved(low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
    first, end = (int.from_bytes(key[:_WIDTH].ljust(_WIDTH, b"\0"), "big") for key in (low, high))
    middle = ((first + end) // 2).to_bytes(_WIDTH, "big").rstrip(b"\0")
    return [(low, middle), (middle, high)] if low < middle < high else [(low, high)]


class DamagedState:
    """The readable pages and rows of a damaged state, in 24 bytes a page.

    ``pages_before``: the number of pages at the last write, None if unreadable. ``broken``: records that are damaged
    or have another URL than their URL row. ``named``: missing pages that URL rows name. ``unsealed``: pages of a killed
    crawl, which are left out.
    """

    def __init__(self, copy: FileEngine, kind: type[FileEngine], location: str, secret: Secret | None) -> None:
        """``secret``: for a state that holds none. Raises StoreError, StoreMismatch."""
        self.broken = self.named = 0
        self._salvage = Salvage(copy.rows)
        names = dict(self.rows(b"m"))
        self.pages_before: int | None = None
        with suppress(KeyError, ValueError):
            self.pages_before = RowTally.unpack(names[KEY]).pages
        self.recipe = _read_recipe(names, location)
        self.secret = _find_secret(names, self.recipe, kind, location, secret)
        self._hashes = Keyed(self.secret.value)
        self._unsealed = {last_id(key) for key, _ in self.rows(b"j") if len(key) == _PAIR}
        self.unsealed = len(self._unsealed)
        #: Of each URL row, by id: the id, the last sight in seconds since 1970, and the hash of the URL.
        named = [array("Q") for _ in range(3)]
        for key, packed in self.rows(b"u"):
            if len(key) == _ID_KEY and len(packed) == _SEEN:
                for values, value in zip(named, (*unpack_seen(packed), last_id(key)), strict=True):
                    values.append(value)
        order = np.argsort(column(named[0]), kind="stable")
        self._ids, self._seen, self._urls = (column(values)[order] for values in named)

    @property
    def gaps(self) -> int:
        """How many ranges were unreadable."""
        return self._salvage.gaps

    def rows(self, prefix: bytes) -> Iterator[Row]:
        return self._salvage.rows(prefix)

    def pages(self) -> Iterator[PageEntry]:
        """Yield the readable pages, with their evidence if that is readable."""
        saved = array("Q")
        for key, packed in self.rows(b"r"):
            record = unpack_record(key, packed)
            at = self._place_of(last_id(key))
            if record is None or (at is not None and int(self._urls[at]) != last_id(url_key(record.url, self._hashes))):
                self.broken += 1
                continue
            saved.append(record.id)
            if record.id not in self._unsealed:
                seen = int(record.first_seen) if at is None else int(self._seen[at])
                yield PageEntry(record, seen, self._evidence(record.id))
        self.named = len(np.setdiff1d(self._ids, column(saved)))

    def _place_of(self, id: int) -> int | None:
        numbers = self._ids.data  # half the time of an array for single numbers
        at = bisect_left(numbers, id)
        return at if at < len(numbers) and numbers[at] == id else None

    def _evidence(self, id: int) -> Evidence | None:
        with suppress(ValueError):
            packed = self._salvage.get(evidence_key(id))
            return None if packed is None else Evidence.unpack(packed)
        return None


def _read_recipe(names: Mapping[bytes, bytes], location: str) -> dict[str, Any]:
    try:
        return check_recipe(names[RECIPE], None, location)
    except (KeyError, TypeError, ValueError):
        raise StoreError(
            f"The recipe of the state at {location} cannot be read, and without it no fingerprint can be compared. "
            "Restore the state from a backup."
        ) from None


def _find_secret(
    names: Mapping[bytes, bytes], recipe: Mapping[str, Any], kind: type[FileEngine], location: str, fixed: Secret | None
) -> Secret:
    """Return the secret that fits the recipe; the witness has it too."""
    own = names.get(SECRET) or secret_at(kind.witness_of(location))
    secret = secret_of(recipe, own, fixed, location)
    if secret is None:
        raise StoreError(
            f"The secret of the state at {location} cannot be read, and without it no page can be found. "
            f"Restore the state from a backup, or, if it was written with a {SECRET_SETTING}, set that."
        )
    return secret
