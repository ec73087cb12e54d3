"""Mark sentences of a text, and tell what two texts share from what differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum
from itertools import groupby

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences

# ----------------------------------------------------------------------------------------------------------------------
# Sentences of a text that are marked, and where they stand in it.


class Mark(str, Enum):
    """What a part of a text is; the value is its name in JSON."""

    NONE = ""
    #: A sentence that the other text holds too.
    SHARED = "shared"
    #: A sentence that stands on many pages.
    BOILERPLATE = "boilerplate"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a text; the parts of a text in their order are the text."""

    text: str
    mark: Mark = Mark.NONE


def own_letters(sentence: str, *, simplified: bool = False) -> str:
    """What a sentence is known by: its normalised letters and digits alone.

    >>> own_letters("“Ｔhe ferry, at 9!”")
    'theferryat9'
    """
    return letters(normalize(sentence, simplified=simplified))


def sentence_letters(text: str, *, simplified: bool = False) -> frozenset[str]:
    """Every sentence of a text, as ``own_letters``."""
    return frozenset(own_letters(one, simplified=simplified) for one in sentences(text)) - {""}


def marked(text: str, mark: Callable[[str], Mark], *, simplified: bool = False) -> list[Part]:
    """The parts of a text: each marked sentence is one, and so is what stands between two of them.

    ``mark`` is asked with the ``own_letters`` of each sentence that has any.

    >>> parts = marked("The boat sank. All swam.", {"theboatsank": Mark.SHARED, "allswam": Mark.NONE}.__getitem__)
    >>> [part.text for part in parts]
    ['The boat sank', '. All swam.']
    """
    parts, done, at = [], 0, 0
    for sentence in sentences(text):
        # Nothing between two sentences with letters holds a letter: so what is found from there on is the sentence.
        begin = text.find(sentence, at)
        at = begin + len(sentence)
        own = own_letters(sentence, simplified=simplified)
        kind = mark(own) if own else Mark.NONE
        if kind is not Mark.NONE:
            parts += [Part(text[done:begin]), Part(sentence, kind)]
            done = at
    return [part for part in (*parts, Part(text[done:])) if part.text]


def cut(parts: list[Part], limit: int) -> list[Part]:
    """The first ``limit`` characters.

    >>> cut([Part("The boat "), Part("sank", Mark.SHARED)], 11)[1].text
    'sa'
    """

    def kept() -> Iterator[Part]:
        left = limit
        for part in parts:
            if left <= 0:
                return
            yield replace(part, text=part.text[:left])
            left -= len(part.text)

    return list(kept())


# ----------------------------------------------------------------------------------------------------------------------
# Two texts with what only one of them says told apart from what both say.


#: A line, or a sentence with what ends it: the pieces of a text in their order are the text.
_PIECE = re.compile(r"[^。！？；!?;\n.]*(?:[。！？；!?;\n]+|\.(?!\S)|\.|$)\s*")
#: A word where words have spaces between them, else a character; with the white space behind it.
_TOKEN = re.compile(r"[a-zA-Z0-9\u00c0-\u024f\u0370-\u052f]+\s*|.\s*", re.DOTALL)
#: Product of the numbers of pieces, or of words, up to which two stretches are compared: it takes quadratic time.
_MOST = 250_000


def differing(one: str, other: str) -> tuple[list[Part], list[Part]]:
    """The parts of both texts: ``SHARED`` is what the other text has too, at the same place in its order.

    Texts are compared sentence by sentence, and where sentences differ word by word.

    >>> first, second = differing("The boat sank. All 9 swam.", "The boat sank. All 8 swam.")
    >>> [part.text for part in (*first, *second) if part.mark is Mark.NONE]
    ['9 ', '8 ']
    """
    pieces = _cut(_PIECE, one), _cut(_PIECE, other)
    found: tuple[list[Part], list[Part]] = [], []
    for same, a, b in _aligned(*pieces):
        texts = "".join(pieces[0][a]), "".join(pieces[1][b])
        for side, parts in zip(found, _compared(*texts, same=same), strict=True):
            side.extend(parts)
    return _merged(found[0]), _merged(found[1])


def _compared(one: str, other: str, *, same: bool) -> tuple[list[Part], list[Part]]:
    if same:
        return [Part(one, Mark.SHARED)], [Part(other, Mark.SHARED)]
    tokens = _cut(_TOKEN, one), _cut(_TOKEN, other)
    found: tuple[list[Part], list[Part]] = [], []
    for alike, a, b in _aligned(*tokens):
        for side, own, place in zip(found, tokens, (a, b), strict=True):
            side.append(Part("".join(own[place]), Mark.SHARED if alike else Mark.NONE))
    return found


def _aligned(one: list[str], other: list[str]) -> Iterator[tuple[bool, slice, slice]]:
    """Stretches that are the same, by their letters, and those between them; too many are one that is not."""
    if len(one) * len(other) > _MOST:
        yield False, slice(0, len(one)), slice(0, len(other))
        return
    known = [[own_letters(piece) or piece.strip() for piece in pieces] for pieces in (one, other)]
    matcher = SequenceMatcher(None, known[0], known[1], autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        yield tag == "equal", slice(a, a_end), slice(b, b_end)


def _cut(pattern: re.Pattern[str], text: str) -> list[str]:
    return [piece for piece in pattern.findall(text) if piece]


def _merged(parts: Iterable[Part]) -> list[Part]:
    """Neighbours of one mark in one; what holds no letter is no difference."""
    told = [Part(part.text, part.mark if own_letters(part.text) else Mark.SHARED) for part in parts if part.text]
    return [Part("".join(part.text for part in same), mark) for mark, same in groupby(told, lambda part: part.mark)]
