"""How the marked sentences of a text are shown on a terminal."""

from __future__ import annotations

import re
import unicodedata

from scrapy_neardup.text.marking import Mark, Part

#: What is written before and behind a marked part, without colours and with them (green, and grey).
BRACKETS = {Mark.NONE: ("", ""), Mark.SHARED: ("[[", "]]"), Mark.BOILERPLATE: ("{{", "}}")}
COLOURS = {Mark.NONE: ("", ""), Mark.SHARED: ("\x1b[32m", "\x1b[0m"), Mark.BOILERPLATE: ("\x1b[90m", "\x1b[0m")}

_LINE_END = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")


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
