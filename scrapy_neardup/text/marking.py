"""Sentences of a text that are marked, and where they stand in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import sentences


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
