"""The words of a report and of closing lines; one catalogue a language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

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
        """Return all patterns whose names stand in quotes in a script."""
        return {name: self.pattern(name) for name in self._patterns if f'"{name}"' in script}

    def below(self, name: str) -> dict[str, str]:
        """Return all patterns whose names begin with this one and a point."""
        return {key: pattern for key, pattern in self._patterns.items() if key.startswith(f"{name}.")}


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """Return all names with their patterns."""
    packed = files(__package__).joinpath(f"words.{language}.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(packed))


ENGLISH = Words("en")
