"""Values of which several are made for each page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["quick"]

if TYPE_CHECKING:
    from dataclasses import dataclass as quick
else:

    def quick(*, frozen: bool, slots: bool):
        """``dataclass`` of a frozen class, which type checkers alone hold to that.

        Python would set each field of a new one by a call of a function, of which a page has some fifty.
        """
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)
