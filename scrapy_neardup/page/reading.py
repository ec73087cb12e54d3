"""The lines of a page that are judged.

No single extractor is enough. Main-content extraction works on article pages; elsewhere it returns a teaser, a footer
or nothing. On pages of 421 sites its text lacks one of eight expected phrases. The visible prose, without links,
navigation and footers, lacks one of fifty. It also holds other text of the layout, which the boilerplate guard removes
once it was on enough pages. So the prose plus the lines of the main text are judged. The main text is a second view of
the page, if it is credible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from operator import and_

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.text.marking import Mark, Part, mark_sentences, own_letters
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.quotes import find_quotes

#: The main text is credible from this many letters and this share of the judged text. Less is a caption or a teaser.
_LEAST_MAIN = 60
_CREDIBLE = 0.5
#: Above this share of link lines, the main text is a menu, and the page has no article.
_MENU = 0.3
#: The least letters of a hidden line of the main text (a paragraph that a script unfolds) that is added.
_LEAST_HIDDEN = 12
#: The least letters of a line that is searched within the main text, where lines may be joined.
_LEAST_PART = 8
#: The most characters that these searches scan, because pages may have very long lines and texts.
_MAX_SCANNED = 100_000_000

#: The name of the reader if the user's own extractor returned the text.
EXTRACTOR = "extractor"


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of a page, and the role of each block in it.

    ``text``: the judged lines. ``main``: the article without quotes, or empty if there is no credible one.
    ``headline``: the ``h1``, a line each. ``reader``: ``article`` (prose and a credible main text), ``prose`` (no
    credible main text), ``none`` or ``extractor`` (the user's own).

    ``kept``, ``in_main``, ``quoted``: for each block, whether it is in the text, in the main text, or a quote.
    ``unseen``: judged lines that are not visible. ``letters``, ``main_letters``: letters and digits of the text, and of
    the main text. ``quotes``: the numbers of the quotes among the lines of ``text``.
    """

    text: str
    main: str
    headline: str
    reader: str
    kept: tuple[bool, ...]
    in_main: tuple[bool, ...]
    unseen: tuple[str, ...]
    letters: int
    main_letters: int
    quotes: tuple[int, ...] = ()
    quoted: tuple[bool, ...] = ()

    def explain(self) -> tuple[str, dict[str, int | float]]:
        """Return the name of the reason for this reader, and its numbers and shares."""
        if self.reader == EXTRACTOR:
            return "extractor", {"letters": self.letters}
        if self.reader == "none":
            return ("no_prose", {"many": len(self.kept)}) if self.kept else ("no_text", {})
        if not self.main_letters:
            return "no_main", {"letters": self.letters}
        numbers: dict[str, int | float] = {"held": self.main_letters, "letters": self.letters}
        if self.reader == "article":
            return "article", numbers
        if self.main_letters >= max(_LEAST_MAIN, _CREDIBLE * self.letters):
            return "menu", {**numbers, "share": _MENU}
        if self.main_letters < _LEAST_MAIN:
            return "too_few", {**numbers, "least": _LEAST_MAIN}
        return "too_little", {**numbers, "share": _CREDIBLE}


def read_blocks(blocks: list[Block], main_text: str) -> Reading:
    """Combine the visible lines with the main text of an extractor.

    >>> read_blocks([Block("Ferry", headline=True), Block("Menu", linked=4)], "").headline
    'Ferry'
    """
    lines, main_lines = [block.letters for block in blocks], _split(main_text)
    is_link = [block.is_link for block in blocks]
    in_main = [is_in and not block.frame for block, is_in in zip(blocks, _find_in(main_lines, lines), strict=True)]
    kept = [
        bool(line) and not block.frame and (main or not link)
        for block, line, main, link in zip(blocks, lines, in_main, is_link, strict=True)
    ]
    hidden = _hidden_lines(lines, main_lines, _LEAST_HIDDEN)
    unseen, more = [text for text, _ in hidden], sum(len(line) for _, line in hidden)
    count, main_count = (_count(lines, chosen) + more for chosen in (kept, in_main))
    links = _count(lines, map(and_, in_main, is_link))
    is_credible = main_count >= _LEAST_MAIN and main_count >= _CREDIBLE * count and links <= _MENU * main_count
    judged = [number for number, is_kept in enumerate(kept) if is_kept]
    quotes = find_quotes([blocks[number].text for number in judged], [blocks[number].quote for number in judged])
    is_quoted = {judged[number] for number in quotes}
    own = [is_in and number not in is_quoted for number, is_in in enumerate(in_main)]
    return Reading(
        text="\n".join((*_texts(blocks, kept), *unseen)),
        main="\n".join((*_texts(blocks, own), *unseen)) if is_credible else "",
        headline="\n".join(block.text for block in blocks if block.headline),
        reader="article" if is_credible else "prose" if count else "none",
        kept=tuple(kept),
        in_main=tuple(in_main),
        unseen=tuple(unseen),
        letters=count,
        main_letters=main_count,
        quotes=tuple(sorted(quotes)),
        quoted=tuple(number in is_quoted for number in range(len(blocks))),
    )


def locate_text(blocks: list[Block], text: str) -> Reading:
    """Find the text of the user's own extractor in the visible lines. The text itself is unchanged.

    >>> locate_text([Block("Ferry"), Block("Menu", linked=4)], "The ferry sails.\\nFerry").kept
    (True, False)
    """
    lines, own_lines = [block.letters for block in blocks], _split(text)
    return Reading(
        text=text,
        main="",
        headline="",
        reader=EXTRACTOR,
        kept=tuple(_find_in(own_lines, lines)),
        in_main=(False,) * len(blocks),
        unseen=tuple(text for text, _ in _hidden_lines(lines, own_lines, least=1)),
        letters=sum(len(line) for _, line in own_lines),
        main_letters=0,
    )


def _split(text: str) -> list[tuple[str, str]]:
    """Return the lines of an extractor's text, each with its letters."""
    lines = text.split("\n")
    return [(line, letters(line)) for line in lines]


def _find_in(main_text: list[tuple[str, str]], lines: list[str]) -> list[bool]:
    """For each visible line, return whether the main text has it, alone or within joined lines."""
    main = dict.fromkeys(line for _, line in main_text if line)
    visible = set(lines)
    # Joined in order, because the main text may also cut one visible line into several.
    joined = "".join(line for line in main if line not in visible)
    budget = _MAX_SCANNED // max(1, len(joined))
    found = []
    for line in lines:
        is_in = line in main
        if not is_in and len(line) >= _LEAST_PART and budget > 0:
            budget -= 1
            is_in = line in joined
        found.append(is_in)
    return found


def _hidden_lines(lines: list[str], main_text: list[tuple[str, str]], least: int) -> list[tuple[str, str]]:
    """Return the lines of the main text that are not visible and have at least ``least`` letters."""
    own, visible = set(lines), "".join(lines)
    budget = _MAX_SCANNED // max(1, len(visible))
    found = []
    for text, line in main_text:
        if len(line) >= least and line not in own and budget > 0:
            budget -= 1
            if line not in visible:
                found.append((text, line))
    return found


def _count(lines: list[str], chosen: Iterable[bool]) -> int:
    return sum(len(line) for line, is_in in zip(lines, chosen, strict=True) if is_in)


def _texts(blocks: list[Block], chosen: Iterable[bool]) -> list[str]:
    return [block.text for block, is_in in zip(blocks, chosen, strict=True) if is_in]


class LineRole(str, Enum):
    """How a line of a page is used; the value is its name in JSON."""

    #: Judged, and part of the article.
    ARTICLE = "article"
    #: Judged, but outside the article, or on a page without a credible one.
    PROSE = "prose"
    #: Judged though not visible: a paragraph that a script unfolds.
    UNSEEN = "unseen"
    #: Ignored, because it is on many pages.
    BOILERPLATE = "boilerplate"
    #: Ignored: a quote or a signature.
    QUOTE = "quote"
    #: Ignored: navigation or a footer.
    FRAME = "frame"
    #: Ignored: only links.
    LINKS = "links"
    #: Ignored: no letters, or the user's own extractor does not return it.
    OTHER = "other"


_IGNORED = (LineRole.QUOTE, LineRole.FRAME, LineRole.LINKS, LineRole.OTHER)


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its boilerplate sentences. A line of boilerplate only has that role itself.

    ``pages``: the least number of pages on which one of these sentences is.
    """

    role: LineRole
    parts: tuple[Part, ...]
    pages: int = 0

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(part.text for part in self.parts)


def classify_lines(
    blocks: list[Block], reading: Reading, boilerplate: Callable[[str], int], *, simplified: bool = False
) -> list[Line]:
    """Return the visible lines in order, then the judged lines that are not visible.

    ``boilerplate`` takes the ``own_letters`` of a sentence. It returns the number of its pages if the sentence is
    ignored as boilerplate, else 0.
    """
    roles = _line_roles(blocks, reading)
    visible = [(block.text, role) for block, role in zip(blocks, roles, strict=True)]
    unseen = [(text, LineRole.UNSEEN) for text in reading.unseen]
    return [_classify(text, role, boilerplate, simplified=simplified) for text, role in visible + unseen]


def _classify(text: str, role: LineRole, boilerplate: Callable[[str], int], *, simplified: bool) -> Line:
    if role in _IGNORED:
        return Line(role, (Part(text),))
    counts = []

    def mark(sentence: str) -> Mark:
        if not (pages := boilerplate(sentence)):
            return Mark.NONE
        counts.append(pages)
        return Mark.BOILERPLATE

    parts = tuple(mark_sentences(text, mark, simplified=simplified))
    own = any(own_letters(part.text) for part in parts if part.mark is Mark.NONE)
    return Line(role if own else LineRole.BOILERPLATE, parts, min(counts, default=0))


def _line_roles(blocks: list[Block], reading: Reading) -> Iterator[LineRole]:
    quoted = reading.quoted or (False,) * len(blocks)
    for block, kept, in_main, quote in zip(blocks, reading.kept, reading.in_main, quoted, strict=True):
        if quote:
            yield LineRole.QUOTE
        elif kept:
            yield LineRole.ARTICLE if in_main and reading.main else LineRole.PROSE
        elif block.frame:
            yield LineRole.FRAME
        else:
            yield LineRole.LINKS if block.is_link else LineRole.OTHER
