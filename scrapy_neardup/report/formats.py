"""Numbers, times and sizes as they are written in a report."""

from __future__ import annotations

from datetime import datetime, timezone

from scrapy_neardup.report.words import Words

#: How the time of a bar is written in full, for tables, by the word in its unit.
_FULL = {"second": "%Y-%m-%d %H:%M:%S", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}
_MINUTE = "%Y-%m-%d %H:%M"


def number(value: int) -> str:
    """With commas between thousands.

    >>> number(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def short(value: int, language: str = "en") -> str:
    """A large number in few characters; in Chinese it is counted in ten thousands.

    >>> short(950), short(28_344), short(2_340_000), short(3_000_000_000)
    ('950', '28.3 k', '2.34 M', '3.00 G')
    >>> short(28_344, "zh"), short(3_000_000_000, "zh")
    ('2.83 万', '30.00 亿')
    """
    if value < 10_000:
        return number(value)
    units = ((10**8, "亿"), (10**4, "万")) if language == "zh" else ((10**9, "G"), (10**6, "M"))
    for factor, unit in units:
        if value >= factor:
            return f"{value / factor:,.0f} {unit}" if value >= 100 * factor else f"{value / factor:.2f} {unit}"
    return f"{value / 1000:.1f} k"


def percent(share: float, language: str = "en") -> str:
    """A share in [0, 1], with one digit behind the point; never 0 or 100 for what is not.

    >>> percent(0.2503), percent(0.00001), percent(0.99999), percent(1)
    ('25.0 %', '< 0.1 %', '> 99.9 %', '100 %')
    >>> percent(0.2503, "zh")
    '25.0%'
    """
    if share in (0, 1):
        text = f"{share:.0%}"
    elif share < 0.0005:
        text = "< 0.1%"
    else:
        text = "> 99.9%" if share > 0.9995 else f"{share:.1%}"
    return text if language == "zh" else text.replace("%", " %")


def size(bytes: int) -> str:
    """Bytes, in powers of ten.

    >>> size(820), size(53_200), size(1_240_000)
    ('820 B', '53.2 kB', '1.2 MB')
    """
    value, unit = float(bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):  # the last one stays
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def moment(seconds: int) -> str:
    """A time to the minute, in UTC; who shows it says so.

    >>> moment(1_763_718_041)
    '2025-11-21 09:40'
    """
    return _utc(seconds).strftime(_MINUTE)


def tick(unit: str, seconds: int, words: Words) -> str:
    """The beginning of a bar in a chart, of a unit as in ``Times``.

    >>> english = Words("en")
    >>> tick("15 seconds", 1_763_718_041, english), tick("week", 1_763_718_041, english)
    ('09:40:41', '21 Nov')
    """
    return _utc(seconds).strftime(words(f"tick.{_word(unit)}"))


def unit_name(unit: str, words: Words) -> str:
    """A unit as in ``Times``, as it is called.

    >>> unit_name("5 minutes", Words("en")), unit_name("5 minutes", Words("zh")), unit_name("hour", Words("zh"))
    ('5 minutes', ' 5 分钟', '小时')
    """
    many = unit.partition(" ")[0]
    return words(f"unit.{_word(unit)}", int(many) if many.isdigit() else 1)


def full(unit: str, seconds: int) -> str:
    """The same in a table.

    >>> full("5 minutes", 1_763_718_041), full("month", 1_763_718_041)
    ('2025-11-21 09:40', '2025-11')
    """
    return _utc(seconds).strftime(_FULL.get(_word(unit), _MINUTE))


def _word(unit: str) -> str:
    return unit.split()[-1].removesuffix("s")


def _utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, tz=timezone.utc)
