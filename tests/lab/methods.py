"""Methods whose answers are known beforehand."""

from __future__ import annotations

import struct
from collections.abc import Set
from dataclasses import dataclass
from typing import Any, ClassVar

from scrapy_neardup.errors import LexiconNeeded, NearDupError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods import Method
from scrapy_neardup.methods.base import Parameters, number, whole
from scrapy_neardup.model import Comparison, Fingerprint, Page


@dataclass(frozen=True, slots=True)
class FirstParameters(Parameters):
    """The letters that count, and the least similarity; 0 drops all pages with a common key."""

    method: ClassVar[str] = "first"

    letters: int = whole(10_000, 1, 10_000)
    least: float = number(1.0)


class First(Method):
    """Pages are filed under their first letter, and are copies if they begin alike."""

    name = "first"
    version = 1
    parameters_type = FirstParameters

    def fingerprint(self, page: Page) -> Fingerprint:
        begin = OPEN.of(page.text[: self.parameters.letters])
        return Fingerprint((ord(page.text[0]),), struct.pack(">Q", begin))

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        same = float(new.sketch == old)
        return Comparison(same, same, same >= self.parameters.least, bool(same), bool(same))

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        return ()


class Broken(First):
    """A method that cannot be used on any corpus."""

    name = "broken"

    def fingerprint(self, page: Page) -> Fingerprint:
        raise NearDupError("The lexicon is of another language; make one from this corpus.")


class Picky(First):
    """A method that cannot judge texts with a Latin letter in front."""

    name = "picky"

    def fingerprint(self, page: Page) -> Fingerprint:
        if page.text[0].isascii():
            raise LexiconNeeded("no_lexicon", "Count a lexicon first.")
        return super().fingerprint(page)


class Unmakeable(First):
    """A method that is not even there."""

    name = "unmakeable"

    def __init__(self, parameters: Any = None) -> None:
        raise NearDupError("A lexicon is missing; name one.")
