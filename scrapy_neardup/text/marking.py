"""The sentences that two texts share, and the parts of a text with their marks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences, shorten_checksums


class Mark(str, Enum):
    """The kind of a part; the value is its name in JSON."""

    NONE = ""
    #: The other text has this sentence too.
    SHARED = "shared"
    #: Many pages have this sentence.
    BOILERPLATE = "boilerplate"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a text; joined in order, the parts are the text."""

    text: str
    mark: Mark = Mark.NONE


def own_letters(sentence: str, *, simplified: bool = False) -> str:
    """Return the normalised letters and digits of a sentence, to compare it.

    >>> own_letters("“Ｔhe ferry, at 9!”")
    'theferryat9'
    """
    return letters(normalize(shorten_checksums(sentence), simplified=simplified))


def _spell(found: list[str], *, simplified: bool) -> list[str]:
    """Return sentences in normal spelling; ``letters`` of these are ``own_letters``. It is faster than one by one."""
    return normalize(shorten_checksums("\n".join(found)), simplified=simplified).split("\n") if found else []


def with_letters(text: str, *, simplified: bool = False) -> list[tuple[str, str]]:
    """Return each sentence of a text with its ``own_letters``."""
    found = sentences(text)
    return list(zip(found, map(letters, _spell(found, simplified=simplified)), strict=True))


def sentence_letters(text: str, *, simplified: bool = False) -> frozenset[str]:
    """Return ``own_letters`` of every sentence of a text."""
    return frozenset(own for _, own in with_letters(text, simplified=simplified)) - {""}


def mark_sentences(text: str, mark: Callable[[str], Mark], *, simplified: bool = False) -> list[Part]:
    """Split a text into its marked sentences and the text between them.

    ``mark`` gets the ``own_letters`` of each sentence that has any.

    >>> marks = {"theboatsank": Mark.SHARED, "allswam": Mark.NONE}
    >>> parts = mark_sentences("The boat sank. All swam.", marks.__getitem__)
    >>> [part.text for part in parts]
    ['The boat sank', '. All swam.']
    """
    parts, done, at = [], 0, 0
    for sentence, own in with_letters(text, simplified=simplified):
        # Between two sentences there are no letters, so the first match from here is the sentence.
        begin = text.find(sentence, at)
        at = begin + len(sentence)
        kind = mark(own) if own else Mark.NONE
        if kind is not Mark.NONE:
            parts += [Part(text[done:begin]), Part(sentence, kind)]
            done = at
    return [part for part in (*parts, Part(text[done:])) if part.text]


def truncate(parts: list[Part], limit: int) -> list[Part]:
    """Return the first ``limit`` characters.

    >>> truncate([Part("The boat "), Part("sank", Mark.SHARED)], 11)[1].text
    'sa'
    """
    short, left = list[Part](), limit
    for part in parts:
        if left > 0:
            short.append(replace(part, text=part.text[:left]))
        left -= len(part.text)
    return short


def longest_sentences(normalized: str, at_least: int, limit: int) -> list[str]:
    """Return the letters of the ``limit`` longest different sentences, the longest first.

    Sentences with fewer than ``at_least`` letters do not count; equally long ones are in order of characters.

    >>> longest_sentences("好。船来了，我们走。船来了我们走！第二班船是空的。", 3, 2)
    ['第二班船是空的', '船来了我们走']
    """
    found = {own for own in map(letters, sentences(normalized)) if len(own) >= at_least}
    return sorted(found, key=lambda own: (-len(own), own))[:limit]


def shared_sentences(
    text: str,
    hash_lines: Callable[[list[str]], Iterable[int]],
    known: Collection[int],
    at_least: int,
    limit: int,
    *,
    simplified: bool = False,
) -> tuple[str, ...]:
    """Return up to ``limit`` sentences that the other page has, as in the text, the longest first.

    ``known``: hashes of that page's sentences. ``hash_lines`` hashes the ``own_letters`` of sentences. Sentences with
    fewer than ``at_least`` letters do not count.
    """
    different = list(dict.fromkeys(sentences(text)))
    lines = _spell(different, simplified=simplified)
    order = [at for at in sorted(range(len(lines)), key=lambda at: -len(lines[at])) if len(lines[at]) >= at_least]
    found: list[tuple[int, int]] = []
    for some in order[:limit], order[limit:]:
        if not some or (len(found) == limit and -found[-1][0] > len(lines[some[0]])):
            break  # no later line has as many letters; mostly so, as the other page has the longest ones
        own = [letters(lines[at]) for at in some]
        shared = zip(some, own, hash_lines(own), strict=True)
        found += [(-len(one), at) for at, one, hashed in shared if len(one) >= at_least and hashed in known]
        found = sorted(found)[:limit]
    return tuple(different[at] for _, at in found)
