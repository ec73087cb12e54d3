"""How telling a word is: inverse document frequency, from the table that jieba ships."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def _table() -> tuple[dict[str, float], float]:
    """Word to IDF, and the median, which stands in for words that the table does not have."""
    idf: dict[str, float] = {}
    jieba = find_spec("jieba")  # found, not imported: that would write warnings about its source
    assert jieba is not None
    assert jieba.origin is not None
    with Path(jieba.origin).with_name("analyse").joinpath("idf.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, _, value = line.rpartition(" ")
            idf[word] = float(value)
    return idf, sorted(idf.values())[len(idf) // 2]


def core_words(words: list[str], count: int) -> list[str]:
    """The ``count`` words with the highest TF-IDF; equal weights in the order of their characters.

    >>> core_words(["公司", "召回", "电饭煲", "召回"], 2)
    ['召回', '电饭煲']
    """
    idf, median = _table()
    weight: dict[str, float] = {}
    for word in words:
        weight[word] = weight.get(word, 0.0) + idf.get(word, median)
    return sorted(weight, key=lambda word: (-weight[word], word))[:count]
