"""Words and numbers of a normalised text.

Chinese is cut by jieba without its hidden Markov model: the model invents words out of unbroken runs
in time quadratic in their length, which a hostile page can use to stop a crawl.
"""

from __future__ import annotations

import logging
import re
import warnings
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jieba

_HAN = r"\u3400-\u9fff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_HAN}]+|[^\W_{_HAN}]+")
_NUMBER = re.compile(
    r"\d+(?:[.,:/]\d+)*|[〇零一二三四五六七八九十百千万亿]{2,}"
    r"|[一二两三四五六七八九十](?=[艘人台辆月日号路件起名家只条座所次岁年天个位])"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    r"|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion)\b"
)


def segmenter_name() -> str:
    """Name, version and mode of the segmenter, for the recipe of a state."""
    return f"jieba {version('jieba')} without HMM"


def words(normalized: str) -> list[str]:
    """Words in order: Chinese ones of two characters and more, Latin ones and numbers whole.

    >>> words("北京的大桥 opened in 2024")
    ['北京', '大桥', 'opened', 'in', '2024']
    """
    found: list[str] = []
    for run in _WORD.findall(normalized):
        if run[0] < "\u3400" or "\u9fff" < run[0] < "\U00020000":
            found.append(run)
        else:
            found += [word for word in _segmenter().cut(run, HMM=False) if len(word) > 1]
    return found


def numbers(normalized: str) -> list[str]:
    """Numbers in order, with their inner points: prices, dates, shares; English and longer Chinese words for them too.

    >>> numbers("2024年3月, 1,200.5 tons at 9:30, seven ships, 二十三人")
    ['2024', '3', '1,200.5', '9:30', 'seven', '二十三']
    """
    return _NUMBER.findall(normalized)


@cache
def _segmenter() -> jieba.Tokenizer:
    """A tokenizer of our own with the dictionary read from the package.

    jieba's own loading goes through a cache file in the shared temporary directory, which any local user
    can plant: the segmentation, and with it every fingerprint, would change unseen.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its source has invalid escapes, and it asks for pkg_resources
        import jieba
    jieba.setLogLevel(logging.CRITICAL)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer
