"""What every method answers: two calls to judge with, one to explain with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Set
from dataclasses import asdict
from typing import Any, ClassVar

from scrapy_neardup.model import Comparison, Fingerprint, Page


class Method(ABC):
    """A way to recognise near-duplicates, with its parameters.

    A method holds no state: the same page gives the same fingerprint for ever, in every process. Whoever
    changes what ``fingerprint`` returns must raise ``version``, so that old state is refused, not misread.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    #: A frozen dataclass that checks itself; its fields are what NEARDUP_PARAMETERS may hold.
    parameters: Any

    @abstractmethod
    def fingerprint(self, page: Page) -> Fingerprint:
        """Keys to file the page under and a sketch to compare it by."""

    @abstractmethod
    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        """Compare a new page with an earlier one's sketch.

        ``common`` holds those keys of the new page that too many originals share to be evidence.
        """

    @abstractmethod
    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        """Up to ``limit`` passages of the page that stand in the earlier one too, the longest first."""

    def recipe(self) -> dict[str, Any]:
        """Everything that must be equal for two sketches to be comparable, as plain data."""
        return {"method": self.name, "method version": self.version, "parameters": asdict(self.parameters)}
