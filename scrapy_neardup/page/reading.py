"""Which of what a page shows is to be judged.

No single reader is enough. Main-content extraction finds the article on pages that look like articles, and elsewhere a
teaser, the footer or nothing: on pages of 421 sites its text lacks one phrase in eight that the article must hold. What
a page shows, less its links and what it marks as frame, lacks one in fifty, but holds the frame's own prose; the guard
against boilerplate takes that off once it has stood on enough pages. So both are asked: the prose, to which the main
text adds its lines, is the text that is judged; and the main text is a second view of it, where it can be believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import and_

from scrapy_neardup.page.blocks import Block
from scrapy_neardup.text.normalize import letters_each
from scrapy_neardup.text.quotes import find_quotes

#: The share of links from which a line is one: a menu, a teaser, a list of related pages.
_LINKED = 0.8
#: Main text is believed from this many letters and this share of the judged text on: with less it is a caption or a
#: teaser, and most of what a reader sees is something else.
_LEAST_MAIN = 60
_CREDIBLE = 0.5
#: The share of links beyond which main text is none: then the page has no article, and the extractor gave its menus.
_MENU = 0.3
#: Letters from which a line of the main text that is not visible (a paragraph that a script unfolds) is taken over, and
#: from which a line is looked for within the lines of the main text, which may have been joined.
_LEAST_HIDDEN = 12
_LEAST_PART = 8
#: Characters that such looking may pass over: strangers choose how long lines and text are.
_LOOKING = 100_000_000

#: The reader's name where the text is that of the user's own extractor.
EXTRACTOR = "extractor"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says.

    ``text``: the lines that are judged. ``main``: those of them that are the article, if that could be told; else
    empty. ``headline``: its h1, a line each. ``reader``: how the text was found: ``article`` (prose, and a main text
    that can be believed), ``prose`` (without one), ``none``, or ``extractor`` (the user's own).

    ``kept``: for each block whether it is part of the text. ``in_main``: whether the main text holds it. ``unseen``:
    lines of the text that are no block. ``letters``: letters and digits of the text; ``main_letters``: those that the
    main text holds. ``quotes``: the numbers of those lines of the text that are quotes; the main text is without them.
    ``quoted``: the same for each block.
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

    def explanation(self) -> tuple[str, dict[str, int | float]]:
        """Why the page is read by this reader: the name of the explanation, and the numbers and shares in it."""
        if self.reader == EXTRACTOR:
            return "extractor", {"letters": self.letters}
        if self.reader == "none":
            return ("no_prose", {"many": len(self.kept)}) if self.kept else ("no_text", {})
        if not self.main_letters:
            return "no_main", {"letters": self.letters}
        held: dict[str, int | float] = {"held": self.main_letters, "letters": self.letters}
        if self.reader == "article":
            return "article", held
        if self.main_letters >= max(_LEAST_MAIN, _CREDIBLE * self.letters):
            return "menu", {**held, "share": _MENU}
        if self.main_letters < _LEAST_MAIN:
            return "too_few", {**held, "least": _LEAST_MAIN}
        return "too_little", {**held, "share": _CREDIBLE}


def read(blocks: list[Block], main_text: str) -> Reading:
    """Put together what is visible and what an extractor holds for the main text.

    >>> read([Block("Ferry", headline=True), Block("Menu", linked=4)], "").headline
    'Ferry'
    """
    lines, main = _letters(blocks), _cut(main_text)
    is_link = [is_link_line(block, line) for block, line in zip(blocks, lines, strict=True)]
    in_main = [is_in and not block.frame for block, is_in in zip(blocks, _in_main(lines, main), strict=True)]
    kept = [
        bool(line) and not block.frame and (main or not link)
        for block, line, main, link in zip(blocks, lines, in_main, is_link, strict=True)
    ]
    hidden = _unseen(lines, main)
    unseen, more = [text for text, _ in hidden], sum(len(line) for _, line in hidden)
    count, main_count = (_count(lines, chosen) + more for chosen in (kept, in_main))
    links = _count(lines, map(and_, in_main, is_link))
    believed = main_count >= _LEAST_MAIN and main_count >= _CREDIBLE * count and links <= _MENU * main_count
    judged = [number for number, is_kept in enumerate(kept) if is_kept]
    quotes = find_quotes([blocks[number].text for number in judged], [blocks[number].told for number in judged])
    is_quoted = {judged[number] for number in quotes}
    own = [is_in and number not in is_quoted for number, is_in in enumerate(in_main)]
    return Reading(
        text="\n".join((*_chosen(blocks, kept), *unseen)),
        main="\n".join((*_chosen(blocks, own), *unseen)) if believed else "",
        headline="\n".join(block.text for block in blocks if block.headline),
        reader="article" if believed else "prose" if count else "none",
        kept=tuple(kept),
        in_main=tuple(in_main),
        unseen=tuple(unseen),
        letters=count,
        main_letters=main_count,
        quotes=tuple(sorted(quotes)),
        quoted=tuple(number in is_quoted for number in range(len(blocks))),
    )


def read_own(blocks: list[Block], text: str) -> Reading:
    """How the text of a user's own extractor, which is judged as it is, stands in what is visible.

    >>> read_own([Block("Ferry"), Block("Menu", linked=4)], "The ferry sails.\\nFerry").kept
    (True, False)
    """
    lines, own = _letters(blocks), _cut(text)
    return Reading(
        text=text,
        main="",
        headline="",
        reader=EXTRACTOR,
        kept=tuple(_in_main(lines, own)),
        in_main=(False,) * len(blocks),
        unseen=tuple(text for text, _ in _unseen(lines, own, least=1)),
        letters=sum(len(line) for _, line in own),
        main_letters=0,
    )


def is_link_line(block: Block, line: str) -> bool:
    """Whether a line, of these letters, is nothing but links: an entry of a menu, a teaser, one of related pages."""
    return block.linked > _LINKED * len(line)


def _letters(blocks: list[Block]) -> list[str]:
    """The letters and digits of each line, by which it is known whatever stands between them."""
    return letters_each([block.text for block in blocks])


def _cut(text: str) -> list[tuple[str, str]]:
    """The lines of an extractor's text, each with its letters."""
    lines = text.split("\n")
    return list(zip(lines, letters_each(lines), strict=True))


def _in_main(lines: list[str], main_text: list[tuple[str, str]]) -> list[bool]:
    """Which lines the main text holds, as a line of its own or as a part of one that was joined."""
    main = dict.fromkeys(line for _, line in main_text if line)
    visible = set(lines)
    # In their order and with nothing between them: a visible line may also be cut into several there.
    joined = "".join(line for line in main if line not in visible)
    budget = _LOOKING // max(1, len(joined))
    found = []
    for line in lines:
        is_in = line in main
        if not is_in and len(line) >= _LEAST_PART and budget > 0:
            budget -= 1
            is_in = line in joined
        found.append(is_in)
    return found


def _unseen(lines: list[str], main_text: list[tuple[str, str]], least: int = _LEAST_HIDDEN) -> list[tuple[str, str]]:
    """The lines of the main text, of ``least`` letters and more, that are not visible."""
    own, visible = set(lines), "".join(lines)
    budget = _LOOKING // max(1, len(visible))
    found = []
    for text, line in main_text:
        if len(line) >= least and line not in own and budget > 0:
            budget -= 1
            if line not in visible:
                found.append((text, line))
    return found


def _count(lines: list[str], chosen: Iterable[bool]) -> int:
    return sum(len(line) for line, is_in in zip(lines, chosen, strict=True) if is_in)


def _chosen(blocks: list[Block], chosen: Iterable[bool]) -> list[str]:
    return [block.text for block, is_in in zip(blocks, chosen, strict=True) if is_in]
