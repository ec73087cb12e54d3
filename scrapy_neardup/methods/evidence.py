"""The sentences by which pages are found, compared and explained."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences


def longest_sentences(normalized: str, at_least: int, limit: int) -> list[str]:
    """The ``limit`` longest different sentences, their letters alone, the longest first; equals in order of characters.

    Sentences of fewer than ``at_least`` letters are none. What cannot be among the longest is not looked at.

    >>> longest_sentences("好。船来了，我们走。船来了我们走！第二班船是空的。", 3, 2)
    ['第二班船是空的', '船来了我们走']
    """
    found: set[str] = set()
    for piece in sorted(sentences(normalized), key=len, reverse=True):
        if len(piece) < at_least:
            break
        own = letters(piece)
        if len(own) >= at_least:
            found.add(own)
            if len(found) >= limit:
                at_least = sorted(map(len, found))[-limit]
    return sorted(found, key=lambda own: (-len(own), own))[:limit]


def shared_sentences(
    text: str, is_known: Callable[[str], bool], at_least: int, limit: int, *, simplified: bool = False
) -> tuple[str, ...]:
    """Up to ``limit`` sentences that the other page holds too, as they stand in the text, the longest first.

    ``is_known`` is asked for the letters of each normalised sentence of ``at_least`` letters.
    """
    found: dict[str, int] = {}
    for sentence in sentences(text):
        own = letters(normalize(sentence, simplified=simplified))
        if len(own) >= at_least and is_known(own):
            found[sentence] = len(own)
    return tuple(sorted(found, key=lambda sentence: -found[sentence])[:limit])
