"""The words of a report and of closing lines, one catalogue a language; and numbers, sizes and times in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from scrapy_neardup.errors import REASONS

LANGUAGES = ("en", "zh")


class Words:
    """The words of one language; a catalogue is ``words.LANGUAGE.json``.

    A pattern may have ``{placeholders}``, and two forms with a ``|`` between them: singular and plural.
    """

    def __init__(self, language: str) -> None:
        self.language = language
        self._patterns = catalogue(language)

    def pattern(self, name: str, many: int | None = None) -> str:
        """Return the pattern; of two forms the one for ``many``."""
        one, _, more = self._patterns[name].partition("|")
        return more if more and many != 1 else one

    def __call__(self, name: str, many: int | None = None, /, **values: object) -> str:
        """Return the words of a name, for ``many`` things.

        >>> Words("en")("pages", 1), Words("en")("pages", 2400), Words("zh")("pages", 2400)
        ('1 page', '2,400 pages', '2,400 个网页')
        """
        number = {} if many is None else {"many": f"{many:,}"}
        return self.pattern(name, many).format(**number, **values)

    def __contains__(self, name: str) -> bool:
        return name in self._patterns

    def quoted_in(self, script: str) -> dict[str, str]:
        """Return all patterns that a script names in quotes."""
        return {name: self.pattern(name) for name in self._patterns if f'"{name}"' in script}

    def below(self, name: str) -> dict[str, str]:
        """Return all patterns with a name that begins with this one and a point."""
        return {key: pattern for key, pattern in self._patterns.items() if key.startswith(f"{name}.")}


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return all names with their patterns. ``errors`` has the English reasons."""
    packed = files(__package__).joinpath(f"words.{language}.json").read_text(encoding="utf-8")
    reasons = {f"reason.{reason}": text for reason, text in REASONS.items()} if language == "en" else {}
    return MappingProxyType({**reasons, **json.loads(packed)})


def format_percent(share: float, language: str = "en") -> str:
    """Format a share with one decimal.

    >>> format_percent(0.2503), format_percent(0.2503, "zh")
    ('25.0 %', '25.0%')
    """
    return f"{share:.1%}" if language == "zh" else f"{share:.1%}".replace("%", " %")


def format_size(bytes: int) -> str:
    """Format bytes in powers of ten.

    >>> format_size(820), format_size(53_200), format_size(1_240_000)
    ('820 B', '53.2 kB', '1.2 MB')
    """
    value, unit = float(bytes), "B"
    for unit in ("B", "kB", "MB", "GB", "TB"):  # the last one stays
        if value < 1000 or unit == "TB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def format_minute(seconds: int) -> str:
    """Format a time to the minute, in UTC.

    >>> format_minute(1_763_718_041)
    '2025-11-21 09:40'
    """
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M")
