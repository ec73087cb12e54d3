"""A row of a state, and what is written into it at once."""

from __future__ import annotations

from dataclasses import dataclass, field

#: A key and its value.
Row = tuple[bytes, bytes]


@dataclass(slots=True)
class Changes:
    """What one batch puts and deletes; a backend writes all of it or nothing.

    ``sights``: values of URLs that are to be put if these still name the same page then, and were not seen later; of
    a backend that others write to in the meantime, alone.
    """

    puts: dict[bytes, bytes] = field(default_factory=dict)
    deletes: set[bytes] = field(default_factory=set)
    sights: dict[bytes, bytes] = field(default_factory=dict)

    def put(self, key: bytes, value: bytes) -> None:
        """Write a value, whatever was to happen to the key before."""
        self.deletes.discard(key)
        self.puts[key] = value

    def delete(self, key: bytes) -> None:
        """Remove a key, whatever was to happen to it before."""
        self.puts.pop(key, None)
        self.deletes.add(key)
