"""The lines of a page, each with what becomes of it when the page is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.page.extraction import Extracted
from scrapy_neardup.page.reading import Reading, is_link_line
from scrapy_neardup.text.marking import Mark, Part, marked, own_letters
from scrapy_neardup.text.normalize import letters


class Role(str, Enum):
    """What a line of a page is; the value is its name in JSON."""

    #: Judged, and part of the article.
    ARTICLE = "article"
    #: Judged beside the article, or where that could not be told.
    PROSE = "prose"
    #: Judged though it is not visible: a paragraph that a script unfolds.
    UNSEEN = "unseen"
    #: Left out, as it stands on many pages.
    BOILERPLATE = "boilerplate"
    #: Left out, as the page quotes it from others, or signs with it.
    QUOTE = "quote"
    #: Left out, as it is in what the page marks as navigation or footer.
    FRAME = "frame"
    #: Left out, as it is nothing but links.
    LINKS = "links"
    #: Left out, as it holds no letter, or the user's own extractor does not give it.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its sentences that are boilerplate; one that holds nothing else is boilerplate itself.

    ``pages``: on how many pages each of these stands, at least.
    """

    role: Role
    parts: tuple[Part, ...]
    pages: int = 0

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(part.text for part in self.parts)

    def stretches(self) -> list[tuple[str, Role]]:
        """What each stretch of it is."""
        return [(part.text, Role.BOILERPLATE if part.mark is Mark.BOILERPLATE else self.role) for part in self.parts]


def lines_of(found: Extracted, boilerplate: Callable[[str], int], *, simplified: bool = False) -> list[Line]:
    """The visible lines of a page in their order, then those that are judged though they are not visible.

    ``boilerplate`` tells of a sentence, by its ``own_letters``, on how many pages it stands that is left out for it; 0
    of any other.
    """
    roles = _roles(found.blocks, found.reading)
    visible = [(block.text, role) for block, role in zip(found.blocks, roles, strict=True)]
    unseen = [(text, Role.UNSEEN) for text in found.reading.unseen]
    return [_line(text, role, boilerplate, simplified=simplified) for text, role in visible + unseen]


def _line(text: str, role: Role, boilerplate: Callable[[str], int], *, simplified: bool) -> Line:
    if role in _LEFT_OUT:
        return Line(role, (Part(text),))
    counts = []

    def mark(sentence: str) -> Mark:
        if not (pages := boilerplate(sentence)):
            return Mark.NONE
        counts.append(pages)
        return Mark.BOILERPLATE

    parts = tuple(marked(text, mark, simplified=simplified))
    own = any(own_letters(part.text) for part in parts if part.mark is Mark.NONE)
    return Line(role if own else Role.BOILERPLATE, parts, min(counts, default=0))


_LEFT_OUT = (Role.QUOTE, Role.FRAME, Role.LINKS, Role.OTHER)


def _roles(blocks: list[Block], reading: Reading) -> Iterator[Role]:
    quoted = reading.quoted or (False,) * len(blocks)
    for block, kept, in_main, quote in zip(blocks, reading.kept, reading.in_main, quoted, strict=True):
        if quote:
            yield Role.QUOTE
        elif kept:
            yield Role.ARTICLE if in_main and reading.main else Role.PROSE
        elif block.frame:
            yield Role.FRAME
        else:
            yield Role.LINKS if is_link_line(block, letters(block.text)) else Role.OTHER
