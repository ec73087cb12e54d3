"""The sentences by which pages are found, compared and explained."""

from __future__ import annotations

from collections.abc import Callable

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences


def longest_sentences(normalized: str, at_least: int, limit: int) -> list[str]:
    """Return the letters of the ``limit`` longest different sentences, the longest first.

    Sentences with fewer than ``at_least`` letters do not count; equally long ones are in order of characters.

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
    """Return up to ``limit`` sentences that the other page has too, as in the text, the longest first.

    ``is_known`` gets the letters of each normalised sentence with ``at_least`` letters.
    """
    found: dict[str, int] = {}
    for sentence in sentences(text):
        own = letters(normalize(sentence, simplified=simplified))
        if len(own) >= at_least and is_known(own):
            found[sentence] = len(own)
    return tuple(sorted(found, key=lambda sentence: -found[sentence])[:limit])
