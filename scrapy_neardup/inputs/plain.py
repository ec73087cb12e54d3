"""Values of tables as those that JSON has."""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any


def plain(value: Any) -> Any:
    """Dates and times in ISO 8601, durations and decimals as numbers, bytes as text; what is none of these as it is.

    Bytes that are no UTF-8 stay bytes: what they mean is not known here.

    >>> plain({"on": date(2024, 5, 1), "for": timedelta(minutes=2), "tags": [b"ferry"]})
    {'on': '2024-05-01', 'for': 120.0, 'tags': ['ferry']}
    """
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value
