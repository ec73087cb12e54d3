"""Words of a text, and its core words. The Python version and the compiled one return the same words.

jieba cuts Chinese without its hidden Markov model. On long text without punctuation the model takes quadratic time, so
a hostile page could stop a crawl. The dictionary alone decides. The compiled module reads it and cuts in the same way.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.text.characters import HAN, HAN_CHARACTER, KATAKANA, SINGLES

_WORD = re.compile(rf"[{HAN}]+|[{KATAKANA}]+|[{SINGLES}]|[^\W_{HAN}{SINGLES}{KATAKANA}]+")


def jieba_file(name: str) -> Path:
    """Return the path of a file of jieba without importing it, which takes long and warns about invalid escapes."""
    jieba = find_spec("jieba")
    assert jieba is not None
    assert jieba.origin is not None
    return Path(jieba.origin).parent / name


def jieba_weights() -> Path:
    """Return the path of jieba's table: lines of a word, a space and its inverse document frequency."""
    return jieba_file("analyse/idf.txt")


def read_weights(path: Path) -> tuple[dict[str, float], float]:
    """Read lines of a word, a space and its weight; return the weights and their upper median."""
    with path.open(encoding="utf-8") as lines:
        table = {word: float(value) for word, _, value in (line.rpartition(" ") for line in lines)}
    return table, _upper_median(list(table.values()))


def _upper_median(values: list[float]) -> float:
    """Return the median; of two middle values the larger one."""
    middle = len(values) // 2
    return float(np.partition(np.array(values, np.float64), middle)[middle])


class Segmenter:
    """The reference version: cuts Chinese by a dictionary and other text by a pattern, and ranks words by weights."""

    def __init__(self, dictionary: Path | None = None, weights: Path | None = None) -> None:
        """Take the paths of two tables in the form of jieba's, by default jieba's own."""
        self._files = dictionary or jieba_file("dict.txt"), weights or jieba_weights()

    def words(self, normalized: str, *, singles: bool = False, core: int = 0) -> tuple[list[str], list[str]]:
        """Return the words of a text, see ``tokens.words``, and its core words, see ``lexicon.core_words``.

        A word that the table lacks has the median weight of the table.
        """
        found = list[str]()
        for run in _WORD.findall(normalized):
            is_cut = HAN_CHARACTER.match(run) is not None
            found += [word for word in self._cut(run) if singles or len(word) > 1] if is_cut else [run]
        return found, self._core_of(found, core) if core else []

    def core_words(self, normalized: str, count: int) -> list[str]:
        """Return the core words alone."""
        return self.words(normalized, core=count)[1]

    def _core_of(self, words: list[str], count: int) -> list[str]:
        table, unknown = self._weights
        weights: dict[str, float] = {}
        for word in words:
            weights[word] = weights.get(word, 0.0) - table.get(word, unknown)
        return [word for _, word in sorted(zip(weights.values(), weights, strict=True))[:count]]

    @cached_property
    def _weights(self) -> tuple[dict[str, float], float]:
        return read_weights(self._files[1])

    @cached_property
    def _cut(self) -> Callable[[str], list[str]]:
        """jieba's segmentation, without its cache file in the shared temporary directory.

        Any local user can plant that file and so change every fingerprint unseen.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its source has invalid escapes, and it asks for pkg_resources
            import jieba
        jieba.setLogLevel(logging.CRITICAL)
        tokenizer = jieba.Tokenizer(str(self._files[0]))
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.initialized = True
        return lambda run: tokenizer.lcut(run, HMM=False)


class NativeSegmenter(Segmenter):
    """The same in the compiled module."""

    def __init__(
        self, kernels: Kernels, known: Any, dictionary: Path | None = None, weights: Path | None = None
    ) -> None:
        """``known``: the module's table of characters."""
        super().__init__(dictionary, weights)
        self._kernels = kernels
        self._known = known

    def words(self, normalized: str, *, singles: bool = False, core: int = 0) -> tuple[list[str], list[str]]:
        lexicon, unknown = self._lexicon
        return self._kernels.words(self._known, normalized, lexicon, singles, core, unknown, True)

    def core_words(self, normalized: str, count: int) -> list[str]:
        lexicon, unknown = self._lexicon
        return self._kernels.words(self._known, normalized, lexicon, False, count, unknown, False)[1]

    @cached_property
    def _lexicon(self) -> tuple[Any, float]:
        dictionary, table = (file.read_text(encoding="utf-8") for file in self._files)
        # Most beginnings of words are words.
        lexicon, weights = self._kernels.lexicon(dictionary, table, dictionary.count("\n") + table.count("\n"))
        return lexicon, _upper_median(weights)
