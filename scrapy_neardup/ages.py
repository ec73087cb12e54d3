"""Ages such as 90d, and times, as settings and commands take them.

An age needs a unit: a bare 90 may mean days or seconds, and a wrong limit forgets pages for good.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from scrapy_neardup.errors import SettingsError

_AGE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(s|min|h|d|w)")
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 100 * 366 * 86_400


def parse_age(text: str) -> float | None:
    """Return an age in seconds, at most a hundred years; None for any other text.

    >>> [parse_age(text) for text in ("90d", "1.5 h", "30min", "4W", "600s", "30", "0d", "3 months")]
    [7776000.0, 5400.0, 1800.0, 2419200.0, 600.0, None, 0.0, None]
    """
    match = _AGE.fullmatch(text.strip().lower())
    parsed = float(match[1]) * _UNITS[match[2]] if match else -1.0
    return parsed if 0 <= parsed <= _LONGEST else None


def parse_duration(name: str, value: object) -> float | None:
    """Return an age in seconds, or None for ever. Raises SettingsError for other values.

    >>> parse_duration("NEARDUP_TTL", "90d"), parse_duration("NEARDUP_TTL", "1.5h"), parse_duration("NEARDUP_TTL", "")
    (7776000.0, 5400.0, None)
    """
    if value is None or value == "":
        return None
    parsed = parse_age(str(value))
    if parsed is None or parsed < 1:
        raise SettingsError(
            f"{name} is {value!r}. Give a number with its unit ('600s', '30min', '12h', '90d', '4w'), from 1 second to "
            "100 years. Leave it out to keep pages for ever."
        )
    return parsed


def parse_time(option: str, text: str, now: datetime) -> float:
    """Return a time or an age in seconds since 1970. Raises SettingsError for other text and for the future.

    >>> now = datetime(1970, 1, 9, tzinfo=timezone.utc)
    >>> [parse_time("--before", text, now) for text in ("1w", "1970-01-02", "30 min")]
    [86400.0, 86400.0, 689400.0]
    """
    text, is_number = text.strip(), text.strip().isdecimal()
    if not is_number and (ago := parse_age(text)) is not None:
        return (now - timedelta(seconds=ago)).timestamp()
    try:
        parsed = None if is_number else datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        parsed = None
    if parsed is None:
        raise SettingsError(
            f"{option} is {text!r}. Give a date (2025-03-01), a time (2025-03-01T08:00+08:00), or an age with its "
            "unit (600s, 30min, 12h, 90d, 4w)."
        )
    parsed = parsed if parsed.tzinfo else parsed.replace(tzinfo=timezone.utc)
    if parsed > now:
        raise SettingsError(f"{option} is {text!r}, which is in the future. Give a past time.")
    return parsed.timestamp()
