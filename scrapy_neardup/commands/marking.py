"""Sentences of a text that are marked: where they stand, and how that is shown."""

from __future__ import annotations

import re
import unicodedata
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


#: What is written before and behind a marked part, without colours and with them (green, and grey).
BRACKETS = {Mark.NONE: ("", ""), Mark.SHARED: ("[[", "]]"), Mark.BOILERPLATE: ("{{", "}}")}
COLOURS = {Mark.NONE: ("", ""), Mark.SHARED: ("\x1b[32m", "\x1b[0m"), Mark.BOILERPLATE: ("\x1b[90m", "\x1b[0m")}

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


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


def shown(parts: list[Part], *, coloured: bool) -> str:
    """The text as it is printed, with what marks its parts."""
    around = COLOURS if coloured else BRACKETS
    return "".join(f"{around[part.mark][0]}{printable(part.text)}{around[part.mark][1]}" for part in parts)


def printable(text: str) -> str:
    """Without what would command a terminal, or show on it as something else: a page may hold anything.

    >>> printable("The \\x1b[2Jboat\\u202e sank\\tat 9.")
    'The �[2Jboat sank at 9.'
    """
    return "".join(map(_printable, _LINE_END.sub("\n", text)))


def _printable(char: str) -> str:
    if char == "\n" or char.isprintable():
        return char
    if char == "\t":
        return " "
    category = unicodedata.category(char)
    if category == "Cf":  # marks of direction, soft hyphens: they show nothing themselves
        return ""
    return "\N{REPLACEMENT CHARACTER}" if category in ("Cc", "Cs") else char
