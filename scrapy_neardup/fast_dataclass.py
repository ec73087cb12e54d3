"""Cheap dataclasses for objects that are made several times per page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

__all__ = ["fast_dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as fast_dataclass
else:

    def fast_dataclass(*, frozen: bool, slots: bool):
        """Make a dataclass that is frozen for type checkers only.

        A frozen one sets each field by a function call, some fifty per page.
        """
        assert frozen
        return dataclass(slots=slots, unsafe_hash=True)
