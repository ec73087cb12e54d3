"""The dialogue of ``tune``: pairs on a terminal, one after the other, and what is answered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scrapy_neardup.commands.marking import printable
from scrapy_neardup.commands.output import write
from scrapy_neardup.commands.wording import line
from scrapy_neardup.evaluation.pair_lines import COPY, DIFFERENT, SKIP
from scrapy_neardup.report.tuning import AskedPair, AskedSide
from scrapy_neardup.text.marking import Mark, Part, cut

#: What is typed, and what it says.
KEYS = {"y": COPY, "n": DIFFERENT, "s": SKIP}
_WORDS = {"yes": "y", "no": "n", "skip": "s", "quit": "q"}
_QUESTION = "Is the later page a copy? [y]es, [n]o, [s]kip, [q]uit: "


def ask(
    pairs: Sequence[AskedPair],
    answered: int,
    keep: Callable[[Mapping[str, Any], str], None],
    *,
    limit: int,
    coloured: bool,
) -> int:
    """Show pairs until all are answered, or the reader has enough; returns how many were.

    ``answered``: pairs before these. ``keep`` gets each answer at once. ``limit``: characters shown of a text; 0: all.
    """
    many = answered + len(pairs)
    for number, pair in enumerate(pairs):
        head = f"\n{'─' * 72}\nPair {answered + number + 1} of {many}\n"
        write(
            head + "".join(_side(*one, limit, coloured) for one in zip(("EARLIER", "LATER"), pair.sides, strict=True))
        )
        said = _answer()
        if said is None:
            return number
        keep(pair.row, said)
    return len(pairs)


def _answer() -> str | None:
    """What was answered; None at the end."""
    while True:
        write(_QUESTION)
        typed = sys.stdin.readline()
        word = typed.strip().lower()
        key = _WORDS.get(word, word)
        if key in KEYS:
            return KEYS[key]
        if key == "q" or not typed:
            write("\n")
            return None


def _side(when: str, side: AskedSide, limit: int, coloured: bool) -> str:
    parts = cut(list(side.parts), limit) if limit else side.parts
    more = side.letters - sum(len(part.text) for part in parts)
    rest = f"… ({more:,} more characters)\n" if more > 0 else ""
    text = "".join(_shown(part, coloured) for part in parts)
    return f"\n{when}: {line(side.title)}\n{line(side.url or side.id)}\n\n{text}\n{rest}\n"


def _shown(part: Part, coloured: bool) -> str:
    """What both say is grey; without colours what one of them says stands in brackets."""
    shared, text = part.mark is Mark.SHARED, printable(part.text)
    if coloured:
        return f"\x1b[90m{text}\x1b[0m" if shared else text
    return text if shared else f"[[{text.rstrip()}]]{text[len(text.rstrip()) :]}"
