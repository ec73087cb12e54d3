"""Stop words, and the inverse document frequency of words, for the published methods."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from itertools import islice
from pathlib import Path

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.tokens import read_weights

_CHINESE = (
    "的 了 和 是 在 也 就 都 而 及 与 或 着 被 把 给 让 向 从 到 于 对 为 以 之 其 此 该 这 那 哪 个 们 我 "
    "你 他 她 它 您 谁 啊 吧 呢 吗 呀 很 更 最 太 又 再 还 才 只 不 没 无 非 有 将 会 能 可 要 想 说 等 中 "
    "上 下 里 后 前 内 外 时 年 月 日 并 但 若 如 因 由 所 则 却 即 且 地 得 我们 你们 他们 她们 它们 咱们 "
    "自己 大家 这个 那个 这些 那些 这样 那样 这里 那里 什么 怎么 怎样 如何 为什么 哪些 多少 一个 一些 一种 "
    "一样 没有 不是 不会 不能 就是 还是 但是 而且 因为 所以 如果 虽然 然而 或者 以及 并且 由于 因此 于是 "
    "不过 只是 只有 可以 可能 应该 已经 正在 非常 十分 其中 其他 之后 之前 之间 以后 以前 以上 以下 进行 "
    "通过 根据 关于 对于 作为 成为 表示 认为 目前 现在 同时 今天 昨天 此外 另外 例如 比如 等等 随着 按照 "
    "为了 一直 一定 一起"
)
_ENGLISH = (
    "a about after all also an and any are as at be because been before being but by can could did do does "
    "for from had has have he her here him his how i if in into is it its just may me more most my no nor "
    "not now of off on one only or other our out over own said same she should so some such than that the "
    "their them then there these they this those through to too under until up very was we were what when "
    "where which while who whom why will with would you your"
)
_SHORT_LIST = frozenset((*_CHINESE.split(), *_ENGLISH.split()))


@lru_cache(maxsize=8)
def read_stop_words(path: str = "") -> frozenset[str]:
    """Read stop words from a UTF-8 file, one a line, ``#`` before a remark; without a path our short list.

    Raises SettingsError if the file cannot be read.
    """
    if not path:
        return _SHORT_LIST
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The stop words in {path} cannot be read ({error}). Name a UTF-8 file.") from error
    return frozenset(word for line in lines if (word := normalize(line.partition("#")[0]).strip()))


#: A text is Chinese if one word in this many is.
_CHINESE_SHARE = 10


class Lexicon:
    """Words with their inverse document frequency (IDF)."""

    def __init__(self, idf: dict[str, float], unknown: float, *, chinese_only: bool = False) -> None:
        """Take the IDF of words, and of ``unknown`` ones; ``chinese_only``: it knows no other language."""
        self.idf = idf
        self.unknown = unknown
        self.lowest, self.highest = min(idf.values()), max(idf.values())
        self._chinese_only = chinese_only

    def weight(self, word: str) -> float:
        return self.idf.get(word, self.unknown)

    def check_language(self, words: Collection[str]) -> None:
        """Raise LexiconNeeded if the lexicon does not know the language of a text.

        Numbers have no language. A tenth of Chinese words is needed: a Chinese page may quote much code.
        """
        in_some_language = len(words) - sum(map(str.isdecimal, words))
        needed = -(-in_some_language // _CHINESE_SHARE)
        chinese = filter(HAN_CHARACTER.match, words)
        if self._chinese_only and len(list(islice(chinese, needed))) < needed:
            raise LexiconNeeded(
                "no_lexicon",
                "The built-in table of word frequencies is Chinese, but this text is not. Name a file for its language "
                "in the parameter 'lexicon'. Each line is a word, a space and its inverse document frequency.",
            )


@lru_cache(maxsize=4)
def read_lexicon(path: str) -> Lexicon:
    """Read a file with a word, a space and its IDF in each line; without a path jieba's table of Chinese words.

    A word that the file lacks has the median, as in jieba. Raises SettingsError for other files.
    """
    if not path:
        return Lexicon(*read_weights(), chinese_only=True)
    try:
        table, unknown = read_weights(Path(path))
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} is no usable lexicon: {error}. {_FORM}") from error
    if not all(word.strip() and math.isfinite(weight) for word, weight in table.items()):
        raise SettingsError(f"{path} is no usable lexicon: a line has no word or no finite number. {_FORM}")
    return Lexicon(table, unknown)


_FORM = "Write a word, a space and its inverse document frequency in each line, in UTF-8."
