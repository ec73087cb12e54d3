"""All rows of a damaged state that can be read: from both ends, then between the places that cannot be."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from heapq import heappop, heappush

from scrapy_neardup.stores.changes import Row
from scrapy_neardup.stores.damaged import DamagedCopy, UnreadableError
from scrapy_neardup.stores.layout import after

#: Ranges that are tried for one prefix.
_TRIES = 1500
#: Bytes of a key by which a range is halved: all keys of a state differ in them.
_WIDTH = 17


class Salvage:
    """Reads what can be read; ``gaps`` counts the ranges of rows that could not."""

    def __init__(self, copy: DamagedCopy) -> None:
        self._copy = copy
        self.gaps = 0

    def rows(self, prefix: bytes) -> Iterator[Row]:
        """The readable rows that begin with ``prefix``: in byte order if all are, else in that of luck; none twice.

        A range is read from its front, then from its end. What lies between the two places where that stopped is
        halved and tried again, the widest first.
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
        """The rows with these keys, where they can be read."""
        for key in keys:
            yield from self._front(key, key + b"\0")

    def _front(self, low: bytes, high: bytes) -> Iterator[Row]:
        with suppress(UnreadableError):
            yield from self._ordered(low, high, reverse=False)

    def _read(self, low: bytes, high: bytes) -> Generator[Row, None, tuple[bytes, bytes] | None]:
        """Yields what can be read of a range from both ends; returns the range between, None if it is all read."""
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
        """Rows that go one way: a tree whose nodes are mixed up would else be walked for ever."""
        for key, value in self._copy.rows(low, high, reverse=reverse):
            if not (type(key) is type(value) is bytes and low <= key < high):
                raise UnreadableError("there is a row where it cannot be")
            yield key, value
            if reverse:
                high = key
            else:
                low = key + b"\0"


def _range(low: bytes, high: bytes) -> tuple[int, bytes, bytes]:
    """A range as it is queued, by its width."""
    return _number(low) - _number(high), low, high


def _number(key: bytes) -> int:
    return int.from_bytes(key[:_WIDTH].ljust(_WIDTH, b"\0"), "big")


def _halved(low: bytes, high: bytes) -> list[tuple[bytes, bytes]]:
    middle = ((_number(low) + _number(high)) // 2).to_bytes(_WIDTH, "big").rstrip(b"\0")
    return [(low, middle), (middle, high)] if low < middle < high else [(low, high)]
