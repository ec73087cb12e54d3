"""Words and numbers of a normalised text, and its core words.

jieba cuts Chinese without its hidden Markov model. On long text without punctuation the model takes quadratic time, so
a hostile page could stop a crawl. So only the dictionary decides. The compiled module reads it and cuts alike.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable
from functools import cache, cached_property
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.text.characters import HAN, HAN_CHARACTER, KATAKANA, SINGLES, known_characters

_SPACED = re.compile(rf"[^\W_{HAN}{SINGLES}{KATAKANA}]+")
_WORD = re.compile(rf"[{HAN}]+|[{KATAKANA}]+|[{SINGLES}]|{_SPACED.pattern}")
#: The characters with which a number begins stand first: most others are passed over in half the time.
_NUMBER = re.compile(
    r"(?=[\dbefhmnost〇零一二两三四五六七八九十百千万亿])(?:"
    r"\d+(?:[.,:/]\d+)*|[〇零一二三四五六七八九十百千万亿]{2,}"
    r"|[一二两三四五六七八九十](?=[艘人台辆月日号路件起名家只条座所次岁年天个位])"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion)\b)"
)


def segmenter_name() -> str:
    """Return name, version and mode of the segmenter for the recipe of a state."""
    return f"jieba {version('jieba')} without HMM"


def words(normalized: str, *, singles: bool = False) -> list[str]:
    """Return the words in order: Chinese ones of at least two characters, or with ``singles`` all.

    Words between spaces, numbers and runs of katakana stay whole. In scripts without spaces and dictionary, such as
    Thai or hiragana, each letter is a word.

    >>> words("北京的大桥 opened in 2024")
    ['北京', '大桥', 'opened', 'in', '2024']
    >>> words("アプリの更新")
    ['アプリ', 'の', '更新']
    """
    return segmenter().words(normalized, singles=singles)


def core_words(normalized: str, count: int) -> list[str]:
    """Return the ``count`` words of a text with the highest TF-IDF; of equal weight in the order of their characters.

    >>> core_words("公司召回电饭煲,召回", 2)
    ['召回', '电饭煲']
    """
    return segmenter().core_words(normalized, count) if normalized else []  # without loading the dictionary


def words_and_core(normalized: str, count: int) -> tuple[list[str], list[str]]:
    """Return ``words`` and ``core_words`` of a text in the time of one."""
    return segmenter().words_and_core(normalized, count) if normalized else ([], [])


def spaced_words(normalized: str) -> list[str]:
    """Return the words between spaces, in order.

    >>> spaced_words("大桥 opened in 2024")
    ['opened', 'in', '2024']
    """
    return _SPACED.findall(normalized)


def numbers(normalized: str) -> list[str]:
    """Return numbers in order: digits with inner points, English number words, longer Chinese ones.

    >>> numbers("2024年3月, 1,200.5 tons at 9:30, seven ships, 二十三人")
    ['2024', '3', '1,200.5', '9:30', 'seven', '二十三']
    """
    return _NUMBER.findall(normalized)


def jieba_file(name: str) -> Path:
    """Return the path of a file of jieba without importing it, which takes long and warns about invalid escapes."""
    jieba = find_spec("jieba")
    assert jieba is not None
    assert jieba.origin is not None
    return Path(jieba.origin).parent / name


def read_weights(path: Path | None = None) -> tuple[dict[str, float], float]:
    """Read lines of a word, a space and its IDF, by default jieba's; return the weights and their upper median.

    Raises OSError or ValueError for another file.
    """
    with (path or jieba_file("analyse/idf.txt")).open(encoding="utf-8") as lines:
        table = {word: float(value) for word, _, value in (line.rpartition(" ") for line in lines)}
    if not table:
        raise ValueError("it has no line")
    return table, sorted(table.values())[len(table) // 2]


@cache
def segmenter() -> Segmenter:
    """Return the segmenter with jieba's own tables."""
    return Segmenter(jieba_file("dict.txt"), jieba_file("analyse/idf.txt"))


class Segmenter:
    """Cuts Chinese by a dictionary and other text by a pattern, and ranks words by weights.

    It takes the paths of two tables in the form of jieba's. A word without a weight has the median of all weights.
    """

    def __init__(self, dictionary: Path, weights: Path) -> None:
        self._files = dictionary, weights

    def words(self, normalized: str, *, singles: bool = False) -> list[str]:
        return self._read(normalized, singles, 0, True)[0]

    def words_and_core(self, normalized: str, count: int) -> tuple[list[str], list[str]]:
        return self._read(normalized, False, count, True)

    def core_words(self, normalized: str, count: int) -> list[str]:
        return self._read(normalized, False, count, False)[1]

    def _read(self, normalized: str, singles: bool, count: int, are_all_wanted: bool) -> tuple[list[str], list[str]]:
        if (kernels := compiled.kernels) is not None:
            lexicon = self._native or self._lexicon(kernels)
            return kernels.words(known_characters(), normalized, lexicon, singles, count, are_all_wanted)
        found, weights = list[str](), dict[str, float]()
        for run in _WORD.findall(normalized):
            is_cut = HAN_CHARACTER.match(run) is not None
            found += [word for word in self._cut(run) if singles or len(word) > 1] if is_cut else [run]
        if count:
            table, unknown = self._weights
            for word in found:
                weights[word] = weights.get(word, 0.0) - table.get(word, unknown)
        return found, [word for _, word in sorted(zip(weights.values(), weights, strict=True))[:count]]

    @cached_property
    def _weights(self) -> tuple[dict[str, float], float]:
        return read_weights(self._files[1])

    _native: Any = None

    def _lexicon(self, kernels: Kernels) -> Any:
        """Read both tables into the compiled module."""
        dictionary, weights = (file.read_bytes() for file in self._files)
        # Most beginnings of words are words.
        self._native = kernels.lexicon(dictionary, weights, dictionary.count(b"\n") + weights.count(b"\n"))
        return self._native

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
