"""Whether a text holds one of many strings."""

from __future__ import annotations

from functools import cache

from scrapy_neardup.hashing import compiled


def holds_any(text: str, signs: tuple[str, ...]) -> bool:
    """Whether any of these strings, each of two characters and more, stands in a text.

    >>> holds_any("渡口今天早上开航", ("渡船", "开航")), holds_any("", ("渡船",))
    (True, False)
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.holds_any(text, signs)
    return any(char in text and any(sign in text for sign in some) for char, some in _by_shared(signs).items())


@cache
def _by_shared(signs: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The signs by a character that many of them have: that it does not stand in a text is found out in no time."""
    left, found = list(signs), dict[str, tuple[str, ...]]()
    while left:
        chars = {char for sign in left for char in sign}
        shared = max(chars, key=lambda char: (sum(char in one for one in left), char))
        found[shared] = tuple(sign for sign in left if shared in sign)
        left = [sign for sign in left if shared not in sign]
    return found
