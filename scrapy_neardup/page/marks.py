"""All that an item holds as one number: two items with the same mark are the same item."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

from scrapy_neardup.hashing.keyed import OPEN


def mark_of(item: Mapping[str, Any]) -> int:
    """64 bits of all fields; 0 for an item that holds nothing, or what cannot be told apart for certain.

    Who could make another item with the mark of a given one would need 2**64 tries.

    >>> mark_of({"a": 1, "b": [2.5]}) == mark_of({"b": [2.5], "a": 1}) != mark_of({"a": 1})
    True
    >>> mark_of({"a": object()})
    0
    """
    if not item:
        return 0
    try:
        return OPEN.of(json.dumps(dict(item), sort_keys=True, default=_exact))
    except (TypeError, ValueError, RecursionError):
        return 0


def _exact(value: Any) -> Any:
    """What JSON does not know and is written in full by its ``repr``."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, date, time, timedelta, Decimal)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} may look like another one")
