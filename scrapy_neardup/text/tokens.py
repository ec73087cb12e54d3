"""Words and numbers of a normalised text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Set
from importlib.metadata import version

from scrapy_neardup.text import backend
from scrapy_neardup.text.characters import HAN, KATAKANA, SINGLES

_SPACED = re.compile(rf"[^\W_{HAN}{SINGLES}{KATAKANA}]+")
#: Occurrences of a word to check before the whole text is split.
_TRIES = 32
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
    return backend.active.segmenter.words(normalized, singles=singles)[0]


def spaced_words(normalized: str) -> list[str]:
    """Return the words between spaces, in order.

    >>> spaced_words("大桥 opened in 2024")
    ['opened', 'in', '2024']
    """
    return _SPACED.findall(normalized)


def has_spaced_word(normalized: str, word: str) -> bool:
    """Whether a word is one of the ``spaced_words`` of a text; faster than splitting the text.

    >>> has_spaced_word("大桥 opened in 2024", "opened"), has_spaced_word("大桥 reopened", "opened")
    (True, False)
    """
    at, begins = -1, _SPACED.fullmatch(word)
    for _ in range(_TRIES if begins else 0):
        if (at := normalized.find(word, at + 1)) < 0:
            return False
        run = _SPACED.match(normalized, at)
        if run is not None and run.end() == at + len(word) and not (at and _SPACED.match(normalized, at - 1, at)):
            return True
    return begins is not None and word in spaced_words(normalized)


def frequencies(found: Iterable[str], stop: Set[str] = frozenset()) -> dict[str, int]:
    """Count each word, in order of first occurrence, without the ``stop`` words."""
    return {word: count for word, count in Counter(found).items() if word not in stop}


def numbers(normalized: str) -> list[str]:
    """Return numbers in order: digits with inner points, English number words, longer Chinese ones.

    >>> numbers("2024年3月, 1,200.5 tons at 9:30, seven ships, 二十三人")
    ['2024', '3', '1,200.5', '9:30', 'seven', '二十三']
    """
    return _NUMBER.findall(normalized)
