"""Whether a text holds one of many strings, and which."""

from __future__ import annotations

from functools import cache

from scrapy_neardup.hashing import compiled

#: Words that the compiled module looks for at most.
_FEW = 64


def holds_any(text: str, signs: tuple[str, ...]) -> bool:
    """Whether any of these strings, each of two characters and more, stands in a text.

    >>> holds_any("渡口今天早上开航", ("渡船", "开航")), holds_any("", ("渡船",))
    (True, False)
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.holds_any(text, signs)
    return any(char in text and any(sign in text for sign in some) for char, some in _by_shared(signs).items())


def which_stand(lines: list[str], words: list[str]) -> list[str]:
    """Those of these words, each of 2 to 32 characters, that stand in a line, in their order.

    >>> which_stand(["渡口今天", "早上开航"], ["今天早上", "开航", "渡口"])
    ['开航', '渡口']
    """
    kernels = compiled.kernels
    if kernels is not None and len(words) <= _FEW:
        return kernels.which_stand(lines, words)
    return [word for word in words if any(word in line for line in lines)]


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
