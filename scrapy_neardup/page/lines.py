"""The lines of a page, each with what becomes of it when the page is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.page.extraction import Extracted
from scrapy_neardup.page.reading import Reading, is_link_line
from scrapy_neardup.text.marking import Mark, Part, marked, own_letters


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
    #: Left out, as it is in what the page marks as navigation or footer.
    FRAME = "frame"
    #: Left out, as it is nothing but links.
    LINKS = "links"
    #: Left out, as it holds no letter, or the user's own extractor does not give it.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and its sentences that are boilerplate; one that holds nothing else is boilerplate itself."""

    role: Role
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(part.text for part in self.parts)

    def stretches(self) -> Iterator[tuple[str, Role]]:
        """What each stretch of it is."""
        for part in self.parts:
            yield part.text, Role.BOILERPLATE if part.mark is Mark.BOILERPLATE else self.role


def lines_of(found: Extracted, is_boilerplate: Callable[[str], bool], *, simplified: bool = False) -> list[Line]:
    """The visible lines of a page in their order, then those that are judged though they are not visible.

    ``is_boilerplate`` is asked with the ``own_letters`` of each sentence that is read.
    """

    def mark(sentence: str) -> Mark:
        return Mark.BOILERPLATE if is_boilerplate(sentence) else Mark.NONE

    def line(text: str, role: Role) -> Line:
        if role in _LEFT_OUT:
            return Line(role, (Part(text),))
        parts = tuple(marked(text, mark, simplified=simplified))
        own = any(own_letters(part.text) for part in parts if part.mark is Mark.NONE)
        return Line(role if own else Role.BOILERPLATE, parts)

    reading = found.reading
    visible = [line(block.text, role) for block, role in zip(found.blocks, _roles(found.blocks, reading), strict=True)]
    return visible + [line(text, Role.UNSEEN) for text in reading.unseen]


_LEFT_OUT = (Role.FRAME, Role.LINKS, Role.OTHER)


def _roles(blocks: list[Block], reading: Reading) -> Iterator[Role]:
    for block, kept, in_main in zip(blocks, reading.kept, reading.in_main, strict=True):
        if kept:
            yield Role.ARTICLE if in_main and reading.main else Role.PROSE
        elif block.frame:
            yield Role.FRAME
        else:
            yield Role.LINKS if is_link_line(block) else Role.OTHER
