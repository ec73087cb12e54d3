"""How telling a word is: inverse document frequency (IDF), from the table that jieba ships or from pages of one's own.

A lexicon file is UTF-8 text: a line of JSON that says what it is and how it was counted, then a line for each word: the
word, a tab, and the number of documents that hold it. The words are those of the shared normalisation and segmentation.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from scrapy_neardup.errors import NearDupError, SettingsError
from scrapy_neardup.text.tokens import has_han, segmenter_name

#: What the first line of a lexicon file says it is, and in which version of this form.
FORMAT = "scrapy-neardup lexicon"
VERSION = 1

#: A text of which one word in so many is Chinese is a Chinese one.
_CHINESE_SHARE = 10


class LexiconNeeded(NearDupError):
    """The built-in table does not know the language of a text."""


class Lexicon:
    """Words with their IDF."""

    def __init__(self, idf: Mapping[str, float], unknown: float, *, chinese_only: bool = False) -> None:
        """``unknown``: the IDF of words that are not there; ``chinese_only``: it knows no other language."""
        self.idf = idf
        self.unknown = unknown
        self.lowest, self.highest = min(idf.values()), max(idf.values())
        self._chinese_only = chinese_only

    def weight(self, word: str) -> float:
        """The IDF of a word."""
        return self.idf.get(word, self.unknown)

    def check_language(self, words: Collection[str]) -> None:
        """Raise LexiconNeeded if a text is in a language that was not counted.

        Numbers are of no language; and among the words of a Chinese page that quotes much code few are Chinese.
        """
        told = [word for word in words if not word.isdecimal()]
        if self._chinese_only and _CHINESE_SHARE * sum(map(has_han, told)) < len(told):
            raise LexiconNeeded(
                "The built-in table of word frequencies is Chinese and this text is not. Count a lexicon on pages of "
                "its language (scrapy neardup lexicon PAGES.jsonl -o lexicon.tsv) and name it in the parameter "
                "'lexicon'."
            )


@cache
def jieba_lexicon() -> Lexicon:
    """jieba's table of Chinese words; its median stands in for words that are not there, as in jieba itself."""
    idf: dict[str, float] = {}
    jieba = find_spec("jieba")  # found, not imported: that would write warnings about its source
    assert jieba is not None
    assert jieba.origin is not None
    with Path(jieba.origin).with_name("analyse").joinpath("idf.txt").open(encoding="utf-8") as lines:
        for line in lines:
            word, _, value = line.rpartition(" ")
            idf[word] = float(value)
    return Lexicon(idf, sorted(idf.values())[len(idf) // 2], chinese_only=True)


@lru_cache(maxsize=4)
def lexicon(path: str = "") -> Lexicon:
    """The lexicon in a file; without a path jieba's. Raises SettingsError where the file is no lexicon of ours."""
    if not path:
        return jieba_lexicon()
    try:
        with Path(path).open(encoding="utf-8") as lines:
            head = json.loads(next(lines))
            if head["format"] != FORMAT or head["version"] != VERSION:
                raise ValueError(f"it says that it is {head['format']!r} in version {head['version']!r}")
            if head["segmenter"] != segmenter_name():
                raise ValueError(f"its words were cut by {head['segmenter']}, ours are by {segmenter_name()}")
            documents = int(head["documents"])
            rows = (line.rstrip("\n").rpartition("\t") for line in lines)
            idf = {word: math.log(documents / int(count)) for word, _, count in rows}
        return Lexicon(idf, math.log(documents))
    except (OSError, ValueError, KeyError, TypeError, StopIteration, ZeroDivisionError) as error:
        raise SettingsError(
            f"{path} is no lexicon that can be used here: {str(error) or 'it is empty'}. Make one: "
            "scrapy neardup lexicon PAGES.jsonl -o lexicon.tsv"
        ) from error


class LexiconBuilder:
    """Counts in how many documents each word stands."""

    def __init__(self) -> None:
        self.documents = 0
        self._counts: Counter[str] = Counter()

    def add(self, words: Iterable[str]) -> None:
        """Count one document's words, each once."""
        self.documents += 1
        self._counts.update(set(words))

    def write(self, path: Path, *, at_least: int = 2) -> int:
        """Write the words of at least so many documents, the commonest first; returns how many those are.

        The file is there whole or not at all. Raises NearDupError if no word stands in so many documents.
        """
        rows = sorted((-count, word) for word, count in self._counts.items() if count >= at_least)
        if not rows:
            raise NearDupError(
                f"No word stands in {at_least} of the {self.documents} documents. Give more documents, or keep "
                "words of fewer of them (--at-least 1)."
            )
        head = {"format": FORMAT, "version": VERSION, "segmenter": segmenter_name(), "documents": self.documents}
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
        with unfinished.open("w", encoding="utf-8", newline="\n") as out:
            out.write(json.dumps(head, ensure_ascii=False) + "\n")
            out.writelines(f"{word}\t{-count}\n" for count, word in rows)
        unfinished.replace(path)
        return len(rows)


def core_words(words: list[str], count: int) -> list[str]:
    """The ``count`` words with the highest TF-IDF; equal weights in the order of their characters.

    >>> core_words(["公司", "召回", "电饭煲", "召回"], 2)
    ['召回', '电饭煲']
    """
    table = jieba_lexicon()
    weight: dict[str, float] = {}
    for word in words:
        weight[word] = weight.get(word, 0.0) + table.weight(word)
    return sorted(weight, key=lambda word: (-weight[word], word))[:count]
