"""Findings on a page, a pair or a state, as plain data that commands print with ``--json`` in its order."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timezone
from typing import Any

from scrapy_neardup.state.record import Evidence


def as_data(found: Any) -> dict[str, Any]:
    """Return the fields of a dataclass for JSON. It does not convert values that are dataclasses."""
    return {one.name: getattr(found, one.name) for one in fields(found)}


def utc_time(seconds: float) -> str | None:
    """Return seconds since 1970 as a time in UTC; None for 0.

    >>> utc_time(1_700_000_000.7)
    '2023-11-14T22:13:20+00:00'
    """
    return datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds") if seconds else None


def kind_and_title(evidence: Evidence | None) -> tuple[str | None, str | None]:
    """Return the kind and the title that the state keeps of a page; None for each that it does not."""
    return (evidence.kind or None, evidence.title or None) if evidence else (None, None)
