"""Ages such as 90d, and moments, as settings and commands take them.

An age has a unit wherever it stands: a bare 90 may be meant for days as well as for seconds, and what is forgotten by a
wrong bound is gone.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from scrapy_neardup.errors import SettingsError

_AGE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*(s|min|h|d|w)")
_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 100 * 366 * 86_400


def age(text: str) -> float | None:
    """The seconds of an age of a hundred years at most; None for any other text.

    >>> age("90d"), age("1.5 h"), age("30min"), age("4W"), age("600s"), age("30"), age("0d"), age("3 months")
    (7776000.0, 5400.0, 1800.0, 2419200.0, 600.0, None, 0.0, None)
    """
    said = _AGE.fullmatch(text.strip().lower())
    found = float(said[1]) * _UNITS[said[2]] if said else -1.0
    return found if 0 <= found <= _LONGEST else None


def seconds(name: str, value: object) -> float | None:
    """The seconds of an age; None for ever. Raises SettingsError for anything else.

    >>> seconds("NEARDUP_TTL", "90d"), seconds("NEARDUP_TTL", "1.5h"), seconds("NEARDUP_TTL", "")
    (7776000.0, 5400.0, None)
    """
    if value is None or value == "":
        return None
    found = age(str(value))
    if found is None or found < 1:
        raise SettingsError(
            f"{name} is {value!r}. Give a number with its unit ('600s', '30min', '12h', '90d', '4w'), from 1 second to "
            "100 years. Leave it out to keep pages for ever."
        )
    return found


def moment(option: str, text: str, now: datetime) -> float:
    """A time, or an age, in seconds since 1970; raises SettingsError for anything else, and for the future.

    >>> now = datetime(1970, 1, 9, tzinfo=timezone.utc)
    >>> moment("--before", "1w", now), moment("--before", "1970-01-02", now), moment("--before", "30 min", now)
    (86400.0, 86400.0, 689400.0)
    """
    text, is_number = text.strip(), text.strip().isdecimal()
    if not is_number and (ago := age(text)) is not None:
        return (now - timedelta(seconds=ago)).timestamp()
    try:
        found = None if is_number else datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
    except ValueError:
        found = None
    if found is None:
        raise SettingsError(
            f"{option} is {text!r}. Give a date (2025-03-01), a time (2025-03-01T08:00+08:00), or an age with its "
            "unit (600s, 30min, 12h, 90d, 4w)."
        )
    found = found if found.tzinfo else found.replace(tzinfo=timezone.utc)
    if found > now:
        raise SettingsError(f"{option} is {text!r}, which is in the future. Give a past time.")
    return found.timestamp()
