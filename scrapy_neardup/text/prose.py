"""Whether a text can be judged, and which of its sentences are prose."""

from __future__ import annotations

import re
from enum import Enum
from unicodedata import category

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.hashing import compiled
from scrapy_neardup.text.characters import known
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.tokens import has_unspaced

# ----------------------------------------------------------------------------------------------------------------------
# Whether a text holds enough to be judged.


#: Letters from which a line counts as prose; menus and captions are shorter.
_PROSE_LINE = 10


def why_unjudged(text: str, needed: int) -> AnyReason:
    """The reason for which a text cannot be judged; empty if it can.

    >>> why_unjudged(" ", 15), why_unjudged("首页", 15), why_unjudged("渡口今天早上开航，第一班船是空的。", 15)
    ('no_text', 'too_short', '')
    """
    if has_prose(text, needed):
        return ""
    return "too_short" if text.strip() else "no_text"


def has_prose(text: str, needed: int) -> bool:
    """Whether ``needed`` letters and digits stand in lines that are long enough to be more than a menu.

    >>> has_prose("首页\\n新闻\\n渡口今天早上开航了，第一班船是空的。", 15)
    True
    """
    kernels = compiled.kernels
    if kernels is not None:
        return kernels.has_prose(known(), text, _PROSE_LINE, needed)
    found = 0
    for line in text.splitlines():
        length = len(letters(line))
        if length >= _PROSE_LINE:
            found += length
        if found >= needed:
            return True
    return False


# ----------------------------------------------------------------------------------------------------------------------
# Which sentences of a text are prose, and which are lines of a listing: code, a log, a table of numbers.
#
# Told by their characters alone, so that it is the same in every language. A listing is full of signs that are rare in
# prose, or of digits, or of words longer than any language has. What is neither for certain is ``OTHER``: headings,
# short lines, the entries of a list, and what is likely to be a comment in code.


_SIGNS = re.compile(r"[_={}\[\]<>\\|&*#@$^~+/`]")
_MARKS = re.compile(r"[^\w\s]|_")
_DIGITS = re.compile(r"\d+")
#: With what a sentence of prose may begin beside a letter or digit: quotes and opening brackets.
_OPENING = "\"'“‘„«‹「『《〈（(【¿¡"
#: Signs that make a listing: so many of them, and this share of all characters that show.
_LEAST_SIGNS, _LISTING_SIGNS = 2, 0.04
#: The share of letters below which it is one as well, if so many characters show.
_LISTING_LETTERS, _LISTING_LEAST = 2 / 3, 12
#: The letters a word from which it is one, of a script with spaces: a key, a body in base64.
_LISTING_WORD = 32
#: The share of signs up to which a line may be prose, and the letters and, where they have spaces, words it must have.
_PROSE_SIGNS, _PROSE_LEAST, _PROSE_WORDS = 0.02, 20, 6


class LineKind(Enum):
    """What a sentence or line reads as."""

    PROSE = "prose"
    LISTING = "listing"
    OTHER = "other"


def kinds(sentences: list[str], lines: list[str]) -> list[LineKind]:
    """What each sentence of a normalised text is; ``lines``: the letters and digits of each, of which it has some.

    >>> told = ["the ferry leaves at nine and nobody waits", "int port = atoi(argv[2])", "continue", "x[port] = {0}"]
    >>> [kind.value for kind in kinds(told, [letters.replace(" ", "") for letters in told])]
    ['prose', 'listing', 'listing', 'listing']
    """
    told = [_alone(sentence, line) for sentence, line in zip(sentences, lines, strict=True)]
    unspaced = [kind is LineKind.PROSE and has_unspaced(line) for kind, line in zip(told, lines, strict=True)]
    if any(unspaced):  # then what has spaces is not the writer's own: above all comments in code
        told = [
            LineKind.OTHER if kind is LineKind.PROSE and not is_own else kind
            for kind, is_own in zip(told, unspaced, strict=True)
        ]
    before, after = _nearest(told), _nearest(told[::-1])[::-1]
    return [
        LineKind.LISTING if kind is LineKind.OTHER and both == (LineKind.LISTING, LineKind.LISTING) else kind
        for kind, both in zip(told, zip(before, after, strict=True), strict=True)
    ]


def _alone(sentence: str, line: str) -> LineKind:
    """What it is by itself."""
    # Vowels that are written above and below letters are neither letters here nor marks.
    marks = sum(mark.isascii() or not category(mark).startswith("M") for mark in _MARKS.findall(sentence))
    shown, words = len(line) + marks, len(sentence.split())
    signs, letters = len(_SIGNS.findall(sentence)), len(_DIGITS.sub("", line))
    are_few = letters < _LISTING_LETTERS * shown
    if signs >= max(_LEAST_SIGNS, _LISTING_SIGNS * shown) or (are_few and shown >= _LISTING_LEAST):
        return LineKind.LISTING
    unspaced = has_unspaced(line)
    if len(line) >= _LISTING_WORD * words and not unspaced:
        return LineKind.LISTING
    if len(line) < _PROSE_LEAST or signs > _PROSE_SIGNS * shown:
        return LineKind.OTHER
    is_set_off = not sentence[0].isalnum() and sentence[0] not in _OPENING
    return LineKind.PROSE if not is_set_off and (unspaced or words >= _PROSE_WORDS) else LineKind.OTHER


def _nearest(told: list[LineKind]) -> list[LineKind]:
    """For each the last one before it that is not ``OTHER``, if there is one."""
    found, last = [], LineKind.OTHER
    for kind in told:
        found.append(last)
        last = last if kind is LineKind.OTHER else kind
    return found
