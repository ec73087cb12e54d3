"""Whether a text is long enough to judge, and which sentences are prose."""

from __future__ import annotations

import re
from enum import Enum
from unicodedata import category

from scrapy_neardup.errors import AnyReason
from scrapy_neardup.text import backend
from scrapy_neardup.text.characters import has_unspaced

#: Fewest letters of a line of prose; menus and captions are shorter.
_PROSE_LINE = 10


def why_unjudged(text: str, needed: int) -> AnyReason:
    """Return why a text cannot be judged, or an empty string if it can.

    >>> why_unjudged(" ", 15), why_unjudged("首页", 15), why_unjudged("渡口今天早上开航，第一班船是空的。", 15)
    ('no_text', 'too_short', '')
    """
    if has_prose(text, needed):
        return ""
    return "too_short" if text.strip() else "no_text"


def has_prose(text: str, needed: int) -> bool:
    """Whether the lines that are longer than menu entries have ``needed`` letters and digits.

    >>> has_prose("首页\\n新闻\\n渡口今天早上开航了，第一班船是空的。", 15)
    True
    """
    return backend.active.has_prose(text, _PROSE_LINE, needed)


_SIGNS = re.compile(r"[_={}\[\]<>\\|&*#@$^~+/`]")
_MARKS = re.compile(r"[^\w\s]|_")
_DIGITS = re.compile(r"\d+")
#: Quotes and brackets that may open a sentence of prose.
_OPENING = "\"'“‘„«‹「『《〈（(【¿¡"
#: A listing has at least so many signs, and this share of all visible characters.
_LEAST_SIGNS, _LISTING_SIGNS = 2, 0.04
#: Or a smaller share of letters than this, with at least so many visible characters.
_LISTING_LETTERS, _LISTING_LEAST = 2 / 3, 12
#: Or so many letters per word in a script with spaces: a key, base64.
_LISTING_WORD = 32
#: Prose has at most this share of signs, and at least so many letters and (with spaces) words.
_PROSE_SIGNS, _PROSE_LEAST, _PROSE_WORDS = 0.02, 20, 6


class LineKind(Enum):
    """The kind of a sentence or line.

    A listing is code, a log or a table: full of signs or digits, or of words longer than any language has. Characters
    alone decide, so every language is treated alike. ``OTHER`` is uncertain: headings, short lines, list entries,
    comments in code.
    """

    PROSE = "prose"
    LISTING = "listing"
    OTHER = "other"


def classify_lines(sentences: list[str], lines: list[str]) -> list[LineKind]:
    """Return the kind of each sentence of a normalised text; ``lines`` are their letters, none empty.

    >>> found = ["the ferry leaves at nine and nobody waits", "int port = atoi(argv[2])", "continue", "x[port] = {0}"]
    >>> [kind.value for kind in classify_lines(found, [letters.replace(" ", "") for letters in found])]
    ['prose', 'listing', 'listing', 'listing']
    """
    kinds = [_classify(sentence, line) for sentence, line in zip(sentences, lines, strict=True)]
    unspaced = [kind is LineKind.PROSE and has_unspaced(line) for kind, line in zip(kinds, lines, strict=True)]
    if any(unspaced):
        # The writer's language has no spaces, so prose with spaces is likely a comment in code.
        kinds = [
            LineKind.OTHER if kind is LineKind.PROSE and not is_own else kind
            for kind, is_own in zip(kinds, unspaced, strict=True)
        ]
    before, after = _nearest(kinds), _nearest(kinds[::-1])[::-1]
    return [
        LineKind.LISTING if kind is LineKind.OTHER and both == (LineKind.LISTING, LineKind.LISTING) else kind
        for kind, both in zip(kinds, zip(before, after, strict=True), strict=True)
    ]


def _classify(sentence: str, line: str) -> LineKind:
    # Combining vowels are neither letters nor marks here.
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


def _nearest(kinds: list[LineKind]) -> list[LineKind]:
    """Return for each kind the last one before it that is not ``OTHER``."""
    found, last = [], LineKind.OTHER
    for kind in kinds:
        found.append(last)
        last = last if kind is LineKind.OTHER else kind
    return found
