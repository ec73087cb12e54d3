"""Whether a text holds one of many strings."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from scrapy_neardup.hashing import compiled


class Signs:
    """Strings, each of 2 to 32 characters and 64 of them at most, that are looked for in one text after the other.

    >>> signs = Signs("渡船", "开航")
    >>> signs.stand_in("渡口今天早上开航"), signs.stand_in("")
    (True, False)
    """

    def __init__(self, *signs: str) -> None:
        self._signs = signs

    def stand_in(self, text: str) -> bool:
        """Whether any of them stands in a text."""
        kernels = compiled.kernels
        if kernels is not None:
            return kernels.holds_any(text, self._prepared)
        return any(char in text and any(sign in text for sign in some) for char, some in self._by_shared.items())

    @cached_property
    def _prepared(self) -> Any:
        """As the compiled module takes them, which must be there."""
        assert compiled.kernels is not None
        return compiled.kernels.signs(self._signs)

    @cached_property
    def _by_shared(self) -> dict[str, tuple[str, ...]]:
        """The signs by a character that many of them have: that it does not stand in a text is found out in no time."""
        left, found = list(self._signs), dict[str, tuple[str, ...]]()
        while left:
            chars = {char for sign in left for char in sign}
            shared = max(chars, key=lambda char: (sum(char in one for one in left), char))
            found[shared] = tuple(sign for sign in left if shared in sign)
            left = [sign for sign in left if shared not in sign]
        return found
