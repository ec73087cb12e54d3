"""Digests of sample texts that identify a segmenter or a converter in the recipe of a state.

A version number says little: a new dictionary may cut differently in its third digit, a new build the same in its
first. So the recipe holds a digest of these texts after segmentation or conversion. If the digest is the same under
another version, the state is accepted with a warning; else it is refused.

A sample proves nothing: new words that it lacks go unnoticed. Then a page is still nearly equal to its earlier text, so
it may pass once more, but no other article is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from hashlib import blake2b

from scrapy_neardup.text.normalize import simplify
from scrapy_neardup.text.tokens import words

#: Names, new words, numbers, measures, idioms, ambiguous runs, other scripts: segmenters disagree on these.
TEXTS = (
    "河湾镇的新渡口星期六清晨正式开航，第一班船载着36位乘客和他们的行李，从对岸的柳林村慢慢驶来。",
    "卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年：“今天的豆浆不收钱！”",
    "南京市长江大桥下的研究生命起源的研究所，乒乓球拍卖完了，结婚的和尚未结婚的都来登记。",
    "县农业站昨天在石桥乡办了一场嫁接比赛，评委不看速度，只看切口是不是平整、形成层有没有对齐。",
    "网民用移动支付买直播间里的新能源汽车，人工智能大模型给出了三点五折的优惠券。",
    "欧阳建国和司马小兰在北京大学生物系念博士，明年九月一日毕业，白天鹅在水里游。",
    "镇上的老戏院在周末放映最后一场电影，放映师把那台用了四十年的机器擦得发亮，心满意足地关掉了灯。",
    "River Radio 88.4 FM在河湾镇试播，C++程序员用Python3写了脚本，售价1,200.50元，增长了百分之七点五。",
    "わたしは渡し船に乗りました。เรือข้ามฟาก 나룻배가 다시 떠났다",
)
TRADITIONAL = (
    "鎮上的老戲院在週末放映最後一場電影，放映師把那台用了四十年的機器擦得發亮，然後親手關掉了燈。",
    "觀眾坐滿了樓上樓下，有人帶著當年的票根，沿著後面的臺階走下來，頭髮乾了，發現皇后已經走後。",
    "這裏的麵條和麪粉、裡面的鐘錶與鍾情、乾坤與干涉、台灣與臺北，着手整理資料。",
)


def digest(parts: Iterable[str]) -> str:
    """Return 16 hexadecimal digits for a sequence of strings."""
    hashed = blake2b(digest_size=8)
    for part in parts:
        packed = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(packed) + packed)
    return hashed.hexdigest()


@cache
def segmenter_sample() -> str:
    """Return the digest of the segmented texts; loads the dictionary, as the first page would."""
    return digest(word for text in TEXTS for word in (*words(text, singles=True), "\n"))


@cache
def converter_sample() -> str:
    """Return the digest of the converted texts; raises SettingsError without a converter."""
    return digest(map(simplify, TRADITIONAL))
