"""Pairs to label as one HTML file: one pair at a time, keys for answers, and a file of labels to save.

The template escapes strings of pages. The policy allows no other script and loads nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from scrapy_neardup.report.figures import language_of
from scrapy_neardup.report.formats import format_number
from scrapy_neardup.report.html import read_file, render
from scrapy_neardup.report.words import Words
from scrapy_neardup.text.marking import Mark, Part, mark_differences
from scrapy_neardup.untrusted import REPORT_URL, TITLE, clean_line, clean_text

#: Characters of a text to show.
SHOWN = 6_000


@dataclass(frozen=True, slots=True)
class QuestionSide:
    """One of two pages: the parts of its text; those in the other page are ``SHARED``."""

    id: str
    title: str
    url: str
    parts: tuple[Part, ...]
    letters: int

    @property
    def is_cut(self) -> bool:
        """Whether the text goes on."""
        return sum(len(part.text) for part in self.parts) < self.letters


@dataclass(frozen=True, slots=True)
class Question:
    """Two pages, the earlier one first, and their line in the file of labels."""

    sides: tuple[QuestionSide, QuestionSide]
    row: Mapping[str, Any]


def make_question(one: tuple[str, str, str, str], other: tuple[str, str, str, str], row: Mapping[str, Any]) -> Question:
    """Return the pair of two pages, each given as id, title, URL and text."""
    texts = [clean_text(text[: 2 * SHOWN]) for *_, text in (one, other)]
    parts = mark_differences(texts[0][:SHOWN], texts[1][:SHOWN])
    first, second = (
        QuestionSide(
            clean_line(id, REPORT_URL),
            clean_line(title, TITLE),
            clean_line(url, REPORT_URL),
            tuple(shown),
            max(len(cleaned), len(text)),
        )
        for (id, title, url, text), cleaned, shown in zip((one, other), texts, parts, strict=True)
    )
    return Question((first, second), row)


def render_questions(pairs: Sequence[Question], command: str, labels: str = "labels.jsonl", language: str = "") -> str:
    """Return the page, in the language of most pages unless another one is named.

    ``labels``: the file to save; ``command`` reads it.
    """
    rows = [dict(pair.row) for pair in pairs]
    sides = [side for pair in pairs for side in pair.sides]
    begins = ((side.title or "".join(part.text for part in side.parts)[:TITLE], side.url) for side in sides)
    words = Words(language or language_of(begins))
    data = {
        "rows": rows,
        "key": blake2b(json.dumps(rows).encode(), digest_size=8).hexdigest(),
        "labels": labels,
        "words": words.quoted_in(read_file("tuning.js")),
    }
    values = {
        "language": words.language,
        "say": words,
        "pairs": pairs,
        "shared": Mark.SHARED,
        "command": clean_line(command, REPORT_URL),
    }
    return render("tuning", values, {"number": format_number}, data)
