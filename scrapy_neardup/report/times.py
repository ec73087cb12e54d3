"""Pages by the time at which they were first seen: few buckets, whatever the span, in little memory."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta, timezone

from scrapy_neardup.report.data import TimeBucket, Times

#: Buckets that are shown at most, and those that are counted in before a coarser unit is taken.
SHOWN, _COUNTED = 60, 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: Units that are counted in: each is made of whole ones of the one before.
_UNITS = ("second", "minute", "hour", "day", "month", "year")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
#: What is shown of what is counted, the finest first: name, and so many units from that offset on. Weeks begin on
#: Mondays, and the first day of all was a Thursday.
_SHOWN = {
    "second": (("second", 1, 0), ("5 seconds", 5, 0), ("15 seconds", 15, 0)),
    "minute": (("minute", 1, 0), ("5 minutes", 5, 0), ("15 minutes", 15, 0)),
    "hour": (("hour", 1, 0), ("6 hours", 6, 0)),
    "day": (("day", 1, 0), ("week", 7, 3)),
    "month": (("month", 1, 0),),
    "year": (("year", 1, 0), ("10 years", 10, 0)),
}


class TimeTally:
    """Counts by unit, which becomes coarser as the span grows."""

    def __init__(self) -> None:
        self._unit = 0
        self._counts: Counter[tuple[int, int]] = Counter()
        self._low = self._high = -1

    def add(self, seconds: float, column: int) -> None:
        """Count a page; ``column``: 0 for an original, 1 for a copy, 2 for one that could not be judged."""
        at = _number(_UNITS[self._unit], int(seconds))
        self._low, self._high = (min(self._low, at), max(self._high, at)) if self._counts else (at, at)
        self._counts[at, column] += 1
        while self._high - self._low >= _COUNTED:
            self._coarsen()

    def times(self) -> Times:
        """The buckets, in the finest unit in which they are few."""
        if not self._counts:
            return Times()
        while True:
            unit = _UNITS[self._unit]
            for name, many, offset in _SHOWN[unit]:
                low, high = (self._low + offset) // many, (self._high + offset) // many
                if high - low < SHOWN:
                    return Times(name, self._buckets(unit, many, offset, range(low, high + 1)))
            self._coarsen()

    def _buckets(self, unit: str, many: int, offset: int, numbers: range) -> tuple[TimeBucket, ...]:
        rows = {number: [0, 0, 0] for number in numbers}
        for (at, column), count in self._counts.items():
            rows[(at + offset) // many][column] += count
        return tuple(TimeBucket(max(0, _start(unit, number * many - offset)), *row) for number, row in rows.items())

    def _coarsen(self) -> None:
        old, new = _UNITS[self._unit], _UNITS[self._unit + 1]
        self._unit += 1
        self._low, self._high = (_number(new, _start(old, at)) for at in (self._low, self._high))
        counts, self._counts = self._counts, Counter()
        for (at, column), count in counts.items():
            self._counts[_number(new, _start(old, at)), column] += count


def _number(unit: str, seconds: int) -> int:
    """The number of the unit that a time is in.

    >>> [_number(unit, 90_000) for unit in ("hour", "day", "month", "year")]
    [25, 1, 23640, 1970]
    """
    if unit in _SECONDS:
        return seconds // _SECONDS[unit]
    day = _EPOCH + timedelta(seconds=seconds)
    return day.year if unit == "year" else day.year * 12 + day.month - 1


def _start(unit: str, number: int) -> int:
    """When the unit of this number begins, in seconds since 1970."""
    if unit in _SECONDS:
        return number * _SECONDS[unit]
    year, month = (number, 0) if unit == "year" else divmod(number, 12)
    return int((datetime(year, month + 1, 1, tzinfo=timezone.utc) - _EPOCH).total_seconds())
