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

from scrapy_neardup.page.blocks import Block, letters_of

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


@dataclass(frozen=True, slots=True)
class Reading:
    """What a page says.

    ``text``: the lines that are judged. ``main``: those of them that are the article, if that could be told; else
    empty. ``headline``: its h1, a line each. ``reader``: how the text was found: ``article`` (prose, and a main text
    that can be believed), ``prose`` (without one) or ``none``. ``kept``: for each block whether it is part of the text.
    """

    text: str
    main: str
    headline: str
    reader: str
    kept: tuple[bool, ...]


def read(blocks: list[Block], main_text: str) -> Reading:
    """Put together what is visible and what an extractor holds for the main text.

    >>> read([Block("Ferry", headline=True), Block("Menu", linked=4)], "").headline
    'Ferry'
    """
    lines = [letters_of(block.text) for block in blocks]
    is_link = [block.linked > _LINKED * len(line) for block, line in zip(blocks, lines, strict=True)]
    in_main = [is_in and not block.frame for block, is_in in zip(blocks, _in_main(lines, main_text), strict=True)]
    kept = [
        bool(line) and not block.frame and (main or not link)
        for block, line, main, link in zip(blocks, lines, in_main, is_link, strict=True)
    ]
    unseen = _unseen(lines, main_text)
    hidden = sum(len(letters_of(line)) for line in unseen)
    count, main_count = (_count(lines, chosen) + hidden for chosen in (kept, in_main))
    links = _count(lines, map(and_, in_main, is_link))
    believed = main_count >= _LEAST_MAIN and main_count >= _CREDIBLE * count and links <= _MENU * main_count
    return Reading(
        text="\n".join((*_chosen(blocks, kept), *unseen)),
        main="\n".join((*_chosen(blocks, in_main), *unseen)) if believed else "",
        headline="\n".join(block.text for block in blocks if block.headline),
        reader="article" if believed else "prose" if count else "none",
        kept=tuple(kept),
    )


def _in_main(lines: list[str], main_text: str) -> list[bool]:
    """Which lines the main text holds, as a line of its own or as a part of one that was joined."""
    main = dict.fromkeys(map(letters_of, main_text.split("\n")))
    main.pop("", None)
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


def _unseen(lines: list[str], main_text: str) -> list[str]:
    """The lines of the main text that are not visible."""
    own, visible = set(lines), "".join(lines)
    budget = _LOOKING // max(1, len(visible))
    found = []
    for line in main_text.split("\n"):
        letters = letters_of(line)
        if len(letters) >= _LEAST_HIDDEN and letters not in own and budget > 0:
            budget -= 1
            if letters not in visible:
                found.append(line)
    return found


def _count(lines: list[str], chosen: Iterable[bool]) -> int:
    return sum(len(line) for line, is_in in zip(lines, chosen, strict=True) if is_in)


def _chosen(blocks: list[Block], chosen: Iterable[bool]) -> list[str]:
    return [block.text for block, is_in in zip(blocks, chosen, strict=True) if is_in]
