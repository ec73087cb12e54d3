"""Chinese pages made of dictionary words at random: no two alike, as long as a news article, repeatable."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.resources import files
from itertools import accumulate

from scrapy_neardup.model import Page


def vocabulary(size: int = 20_000) -> tuple[list[str], list[int]]:
    """The most frequent words of jieba's dictionary, with their frequencies added up."""
    lines = files("jieba").joinpath("dict.txt").read_text(encoding="utf-8").splitlines()
    rows = [(word, int(count)) for word, count, *_ in map(str.split, lines)]
    rows = sorted(rows, key=lambda row: -row[1])[:size]
    return [word for word, _ in rows], list(accumulate(count for _, count in rows))


def pages(count: int, letters: int = 1500, seed: int = 1) -> Iterator[Page]:
    """Pages of about ``letters`` characters in sentences and paragraphs, with title, keywords and description."""
    words, weights = vocabulary()
    chance = random.Random(seed)

    def phrase(length: int) -> str:
        found = ""
        while len(found) < length:
            found += "".join(chance.choices(words, cum_weights=weights, k=max(1, (length - len(found)) // 2)))
        return found[:length]

    for number in range(count):
        sentences: list[str] = []
        while sum(map(len, sentences)) < letters:
            end = "。\n" if len(sentences) % 5 == 4 else "。"
            sentences.append(f"{phrase(chance.randint(6, 30))}，{phrase(chance.randint(6, 30))}{end}")
        yield Page(
            f"https://news{number % 50}.example.com/2026/{number % 12 + 1:02d}/article-{number}.html",
            phrase(18),
            tuple(phrase(4) for _ in range(4)),
            phrase(60),
            "".join(sentences),
        )
