"""Words that say nothing about what a text is about."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.text.normalize import normalize

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
_OWN = frozenset((*_CHINESE.split(), *_ENGLISH.split()))


@lru_cache(maxsize=8)
def stop_words(path: str = "") -> frozenset[str]:
    """Stop words from a UTF-8 file, one a line, ``#`` before a remark; without a path a small list of our own.

    Raises SettingsError where the file cannot be read.
    """
    if not path:
        return _OWN
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The stop words in {path} cannot be read ({error}). Name a UTF-8 file.") from error
    return frozenset(word for line in lines if (word := normalize(line.partition("#")[0]).strip()))
