"""A stream of which the beginning has been read already, as a whole again."""

from __future__ import annotations

import io
from typing import BinaryIO


class Rejoined:
    """First ``start``, then what is left of ``rest``; it can be read, not sought, and is not closed here."""

    def __init__(self, start: bytes, rest: BinaryIO) -> None:
        self._start = io.BytesIO(start)
        self._rest = rest

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes, which may be fewer before the end; none at the end."""
        return self._start.read(size) or self._rest.read(size)

    def readline(self, size: int) -> bytes:
        """A line with its end, or its first ``size`` bytes."""
        line = self._start.readline(size)
        if line.endswith(b"\n") or len(line) == size:
            return line
        return line + self._rest.readline(size - len(line))
