"""Words and numbers of a normalised text.

jieba segments Chinese without its hidden Markov model: on long runs without marks the model takes quadratic time, so a
hostile page could stop a crawl. rjieba, if installed, has the same dictionary and algorithm compiled: the same words in
a fifteenth of the time.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Set
from functools import cache, partial
from importlib.metadata import version

from scrapy_neardup.text.characters import HAN, HAN_CHARACTER, KATAKANA, SINGLES

_WORD = re.compile(rf"[{HAN}]+|[{KATAKANA}]+|[{SINGLES}]|[^\W_{HAN}{SINGLES}{KATAKANA}]+")
_HAN_RUN = re.compile(f"[{HAN}]+")
_NO_HAN_WORD = re.compile(rf"[{KATAKANA}{SINGLES}]|[^\W_{HAN}]")
_SPACED = re.compile(rf"[^\W_{HAN}{SINGLES}{KATAKANA}]+")
#: Occurrences of a word to check before the whole text is split.
_TRIES = 32
_NUMBER = re.compile(
    r"\d+(?:[.,:/]\d+)*|[〇零一二三四五六七八九十百千万亿]{2,}"
    r"|[一二两三四五六七八九十](?=[艘人台辆月日号路件起名家只条座所次岁年天个位])"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion)\b"
)


def segmenter_name() -> str:
    """Return name, version and mode of the segmenter for the recipe of a state; rjieba gives the same words."""
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
    # One call of the segmenter takes all: each call costs as much as ten characters. A line break is a word of its own.
    if _NO_HAN_WORD.search(normalized) is None:
        cut = _cut("\n".join(_HAN_RUN.findall(normalized)))
        return [word for word in cut if word != "\n"] if singles else [word for word in cut if len(word) > 1]
    runs = _WORD.findall(normalized)
    cut = _cut("\n".join([run for run in runs if HAN_CHARACTER.match(run)]))
    found, left = list[str](), iter(cut)
    for run in runs:
        if HAN_CHARACTER.match(run):
            found += [word for word in iter(left.__next__, "\n") if singles or len(word) > 1]
        else:
            found.append(run)
    return found


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


def _cut(chinese: str) -> list[str]:
    return _segmenter()(chinese) if chinese else []


@cache
def _segmenter() -> Callable[[str], list[str]]:
    try:
        import rjieba
    except ImportError:
        return jieba_cut()
    return partial(rjieba.cut, hmm=False)


@cache
def jieba_cut() -> Callable[[str], list[str]]:
    """Return jieba's segmentation, with the dictionary read from the package.

    jieba itself loads through a cache file in the shared temporary directory. Any local user can plant that file and so
    change every fingerprint unseen.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its source has invalid escapes, and it asks for pkg_resources
        import jieba
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return lambda run: tokenizer.lcut(run, HMM=False)
