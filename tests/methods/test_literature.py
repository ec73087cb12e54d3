"""The published methods on examples of the papers, and on others that can be checked by hand.

``test_contract.py`` holds what all methods promise, and the golden fingerprints.
"""

from __future__ import annotations

import math
import random
import struct
from hashlib import blake2b, md5
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.literature.base import signature_of
from scrapy_neardup.methods.literature.pieces import equal_pieces, longest_pieces, text_beside_marks
from scrapy_neardup.methods.literature.terms import rarest, term_profile, weight_difference
from scrapy_neardup.methods.literature.vectors import SimHashParameters, cosine, cut_keys, prefix, vector
from scrapy_neardup.model import Comparison, Fingerprint, Page
from scrapy_neardup.text.lexicon import Lexicon, read_lexicon
from scrapy_neardup.text.normalize import normalize

NONE: frozenset[int] = frozenset()
FERRY = [
    "河湾镇的新渡口星期六清晨正式开航，结束了两岸居民绕道铁桥的日子。",
    "第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来。",
    "卖豆浆的老周把摊子推到岸边，说自己等这条船已经等了整整十一年。",
    "去年春天的大水冲断了旧船的缆绳，船撞在石墩上沉了下去。",
    "船票两元，老人和孩子免费，自行车也可以推上船来。",
    "明天还有船。",
]
SCHOOL = [
    "县农业站昨天在石桥乡办了一场嫁接比赛，来自十二个村的果农带着自己的剪刀前来。",
    "每人领三根砧木和三根接穗，要在半个小时里全部接好，评委不看速度。",
    "七十三岁的田奶奶用的是一把磨了三十年的小刀，她偏要用泡软的麻皮。",
    "评委只看切口是不是平整，形成层有没有对齐。",
    "一等奖是一把新的嫁接刀和两袋有机肥料，由乡长颁发。",
]
DISCLAIMER = "本站转载的内容均已注明出处，如果涉及版权问题请作者在三十天之内与我们取得联系。"
PARAGRAPHS = [
    "河湾镇的新渡口星期六清晨正式开航，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来。",
    "卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，今天的豆浆一碗也不收钱，喝完把碗放回来就行。",
    "旧渡船是用杉木造的，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去，两岸的人从此只能绕道上游的铁桥。",
    "新船由镇上的船厂自己造，龙骨用了三根老樟木，船长说再大的水也不怕，只怕下雾，雾里要敲钟，一分钟敲三下。",
]
ADDED = "本报记者昨天下午到码头上走了一走，看见候船室的墙刚刚刷过，长凳还没有干，门口已经排了十几个人。"
#: Of so many documents of 100 each word is known. From 0.2 to 0.8 of the IDF are words of 3 to 39 documents.
COUNTS = {"the": 100, "day": 40, "ferry": 39, "quay": 20, "buoy": 10, "渡口": 5, "lantern": 3, "rope": 2, "keel": 1}
TERMS = [f"term{number:02}" for number in range(40)]


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("lexicon") / "lexicon.txt"
    counts = {**COUNTS, **dict.fromkeys(TERMS, 10)}
    path.write_text("".join(f"{word} {math.log(100 / count)!r}\n" for word, count in counts.items()), "utf-8")
    return str(path)


def fingerprint(name: str, text: str, parameters: dict[str, Any], title: str = "") -> Fingerprint:
    return make_method(name, parameters).fingerprint(Page("http://river.example/", title, text=text))


def compared(
    name: str, parameters: dict[str, Any], one: str, other: str, titles: tuple[str, str] = ("", "")
) -> Comparison:
    prints = [fingerprint(name, text, parameters, title) for text, title in zip((one, other), titles, strict=True)]
    return make_method(name, parameters).compare(prints[0], prints[1].sketch, NONE)


def words(**counts: int) -> str:
    """Each word as often as that, with stop words between them."""
    return "。".join("的".join([f"，{word}，"] * times) for word, times in counts.items())


ARTICLE, SWAPPED, LIGHTER = (words(网页=a, 搜索=b, 引擎=c) for a, b, c in ((12, 10, 7), (10, 12, 7), (12, 10, 2)))
#: The square of the difference of the two vectors of weights by the sum of their squares.
LIGHTER_BY = weight_difference([12 / 29, 10 / 29, 7 / 29], [12 / 24, 10 / 24, 2 / 24])
PROFILE = {"percentage": 0.7, "sum_interval": 5}
#: 15 words, each once more often than the next.
RANKED = "渡船 缆绳 豆浆 铁桥 乘客 行李 柳树 石头 甲板 船长 码头 长凳 灯塔 水手 船票".split()  # noqa: SIM905
TEXT = "。".join(f"{word}，" * (15 - place) for place, word in enumerate(RANKED))

#: Method, parameters, two texts -> similarity, and whether one is a duplicate. Those with a lexicon have the one of
#: the fixture, unless they name another.
EXAMPLES: list[tuple[str, dict[str, Any], str, str, float, bool]] = [
    # Jaccard similarity of sets of shingles, by hand.
    ("shingle", {"n": 2}, "柳林渡口开船", "柳林渡口停船", 3 / 7, False),
    ("shingle", {"n": 2, "similarity": 0.42}, "柳林渡口开船", "柳林渡口停船", 3 / 7, True),
    ("shingle", {"n": 2, "similarity": 3 / 7}, "柳林渡口开船", "柳林渡口停船", 3 / 7, True),
    ("shingle", {"n": 1}, "船来船去", "去年船少", 2 / 5, False),
    ("shingle", {"n": 3}, "渡口渡口渡口", "渡口渡口", 1.0, True),  # repeated shingles count once
    ("shingle", {"n": 5}, "渡船", "渡船来", 0.0, False),  # a text shorter than n is one shingle
    ("shingle", {"n": 2}, "ferry", "merry", 3 / 5, False),
    ("shingle", {"features": "words", "n": 1}, "the lamp is lit", "the lamp is out", 3 / 5, False),
    ("shingle", {"features": "words", "n": 2}, "is lit the lamp", "the lamp is lit", 2 / 4, False),
    ("shingle", {"features": "words", "n": 1}, "渡船的价格", "渡船的颜色", 2 / 4, False),
    ("shingle", {"features": "words", "n": 8}, "the lamp", "the lamp!", 1.0, True),
    ("minhash", {"features": "words", "n": 1}, "the lamp was lit", "Lit: the lamp was", 1.0, True),
    ("supershingle", {"features": "words", "n": 1}, "the lamp was lit", "Lit: the lamp was", 1.0, True),
    # Vectors: the order of words is no evidence, and stop words are none.
    ("random_projection", {}, "The harbour lamp was lit last night.", "Lit: a harbour lamp, last night!", 1.0, True),
    ("simhash", {}, "The harbour lamp was lit last night.", "Lit: a harbour lamp, last night!", 1.0, True),
    ("cosine", {}, "day quay", "quay day.", 1.0, True),
    ("cosine", {}, "buoy keel", "buoy the keel the", 1.0, True),  # a word of every document has no weight
    ("cosine", {}, "buoy", "buoy keel", 1 / math.sqrt(5), False),  # the IDF of keel is twice that of buoy
    ("cosine", {}, "buoy buoy keel", "buoy keel", (2 + 4) / math.sqrt(8 * 5), False),
    ("cosine", {"similarity": 0.94}, "buoy buoy keel", "buoy keel", (2 + 4) / math.sqrt(8 * 5), True),
    ("cosine", {}, "buoy", "keel", 0.0, False),
    # The most frequent words: rare ones make no difference.
    ("term_profile", PROFILE, TEXT, f"{TEXT}，海豚", 1.0, True),
    ("term_profile", PROFILE, TEXT, TEXT.replace("船票", "海豚"), 1.0, True),
    ("term_profile", PROFILE, TEXT, TEXT.replace("缆绳", "海豚"), 0.0, False),
    ("term_profile", PROFILE, TEXT, TEXT + "，的，了，我们，因为" * 20, 1.0, True),
    ("term_profile", {}, "渡船今天停航", "柿子树下的嫁接比赛", 0.0, False),  # too few words
    ("term_profile", {}, "渡船今天停航", "渡船，今天停航！", 1.0, True),
    ("idf_terms", {"share": 0.75}, "the ferry the quay the buoy lantern", "lantern: buoy, quay! ferry", 1.0, True),
    ("idf_terms", {"share": 0.75}, "the ferry the quay the buoy lantern", "lantern: buoy, quay! keel", 0.0, False),
    ("idf_terms", {"lexicon": ""}, "新渡口星期六清晨开航", "新渡口，清晨开航，星期六", 1.0, True),
    # I-Match: neither order nor words outside the band, but one term more.
    ("imatch", {"min_terms": 4}, "ferry quay buoy lantern", "quay lantern, ferry ferry buoy", 1.0, True),
    ("imatch", {"min_terms": 4}, "ferry quay buoy lantern", "keel rope day: FERRY ｂuoy lantern quay other", 1.0, True),
    ("imatch", {"min_terms": 1}, "ferry quay buoy lantern", "ferry quay buoy", 0.0, False),
    ("imatch", {"min_terms": 1}, "ferry quay buoy lantern", "ferry quay buoy lantern 渡口", 0.0, False),
    ("imatch", {"min_terms": 3}, "ferry quay buoy", "buoy, quay; the ferry", 1.0, True),
    ("imatch", {"min_terms": 4}, "ferry quay buoy", "buoy, quay; the ferry", 0.0, False),
    ("imatch", {}, " ".join(TERMS[:10]), " ".join(TERMS[10:20]), 0.0, False),
    # Each rule of keywords, and what weights say.
    ("keywords", {"rule": "frequent", "n": 3}, ARTICLE, SWAPPED, 0.0, False),
    ("keywords", {"rule": "frequent", "n": 3}, ARTICLE, LIGHTER, 0.0, False),
    ("keywords", {"rule": "ordered", "n": 3}, ARTICLE, SWAPPED, 0.0, False),
    ("keywords", {"rule": "ordered", "n": 3}, ARTICLE, LIGHTER, 1.0, True),
    ("keywords", {"rule": "set", "n": 3}, ARTICLE, SWAPPED, 1.0, True),
    ("keywords", {"rule": "ordered_weights", "n": 3, "alpha": 0.04}, ARTICLE, SWAPPED, 0.0, False),
    ("keywords", {"rule": "ordered_weights", "n": 3, "alpha": 0.04}, ARTICLE, LIGHTER, 1 - LIGHTER_BY, False),
    ("keywords", {"n": 3, "alpha": 0.0137}, ARTICLE, SWAPPED, 1 - 8 / 586, True),
    ("keywords", {"n": 3, "alpha": 0.0136}, ARTICLE, SWAPPED, 1 - 8 / 586, False),
    ("keywords", {"n": 3, "alpha": 0.04}, ARTICLE, LIGHTER, 1 - LIGHTER_BY, False),
    ("keywords", {"rule": "any", "n": 3}, ARTICLE, SWAPPED, 1.0, True),
    ("keywords", {"n": 2}, words(网页=12, 搜索=10), words(网页=6, 搜索=5), 1.0, True),  # shares of all words
    ("keywords", {"n": 2, "alpha": 1.0}, words(网页=12, 搜索=10), words(渡船=12, 缆绳=10), 0.0, False),
    ("keywords", {"rule": "any", "n": 3}, "的，了，和，是", "在，也，就，都", 0.0, False),
    ("keywords", {"rule": "description"}, "渡" * 171 + "船", "渡" * 171 + "绳。停航", 1.0, True),  # 513 equal bytes
    ("keywords", {"rule": "description"}, "渡" * 169 + "船", "渡" * 169 + "绳", 0.0, False),
    # The longest sentences: 3 of 5 by default, the article's rule with equal=1, the "Baidu" rule with n=1.
    ("nshash", {}, "".join(FERRY), "".join(FERRY).replace("清晨", "早晨"), 0.8, True),
    ("nshash", {"n": 1, "equal": 1}, "".join(FERRY), "".join(FERRY).replace("清晨", "早晨"), 0.0, False),
    ("nshash", {}, "".join((*FERRY, DISCLAIMER)), "".join((*SCHOOL, DISCLAIMER)), 0.2, False),
    ("nshash", {"equal": 1}, "".join((*FERRY, DISCLAIMER)), "".join((*SCHOOL, DISCLAIMER)), 0.2, True),
    ("nshash", {}, f"今天停航一天。{DISCLAIMER}", "".join((*FERRY[:3], DISCLAIMER)), 1 / 4, False),
    ("nshash", {}, "".join(FERRY[:2]), "".join((*FERRY[:2], "明天停航。")), 1.0, True),  # fewer: all must be equal
    ("nshash", {}, "".join(FERRY[:2]), FERRY[0] + SCHOOL[1], 1 / 2, False),
    ("nshash", {}, "".join(FERRY[:2]), "".join(FERRY[:3]), 2 / 3, False),
    ("nshash", {}, "好。", "行。", 0.0, False),  # short pieces are no sentences
    # Segments: 3 of 4 by default.
    ("segments", {}, "\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS).replace("清晨", "早晨"), 0.75, True),
    ("segments", {"segments": 5}, "\n".join(PARAGRAPHS), "\n".join((PARAGRAPHS[0], ADDED, *PARAGRAPHS[1:])), 0.8, True),
    ("segments", {}, "\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS[::-1]), 1.0, True),
    ("segments", {}, "\n".join(PARAGRAPHS), "\r\n\n".join(PARAGRAPHS) + "\n（完）\n记者 田禾", 1.0, True),
    ("segments", {"cut": "length"}, "\n".join(PARAGRAPHS), "\n".join(PARAGRAPHS).replace("杉木", "松木"), 0.75, True),
    ("segments", {"cut": "length"}, "".join(PARAGRAPHS), "".join(PARAGRAPHS).replace("正式", "在雨里"), 0.5, False),
    ("segments", {}, "\n".join(PARAGRAPHS[:2]), "\n".join(PARAGRAPHS[:2]) + "\n完", 1.0, True),
    ("segments", {}, "\n".join(PARAGRAPHS[:2]), f"{PARAGRAPHS[0]}\n{PARAGRAPHS[2]}", 0.5, False),
    ("segments", {}, "\n".join(PARAGRAPHS[:2]), "\n".join(PARAGRAPHS), 0.5, False),
    ("segments", {}, "".join(PARAGRAPHS), "".join(PARAGRAPHS) + "完", 0.0, False),  # a page in one line is one piece
    ("punctuation", {"min_marks": 2}, "旧渡船来了，乘客上岸。", "新渡船来了，乘客都上岸。", 3 / 4.5, True),
    ("punctuation", {"min_marks": 3}, "旧渡船来了，乘客上岸。", "新渡船来了，乘客都上岸。", 0.0, False),
]


@pytest.mark.parametrize(
    ("name", "parameters", "one", "other", "similarity", "duplicate"),
    EXAMPLES,
    ids=[f"{example[0]}-{number}" for number, example in enumerate(EXAMPLES)],
)
def test_examples(
    lexicon: str, name: str, parameters: dict[str, Any], one: str, other: str, similarity: float, duplicate: bool
) -> None:
    if name in ("cosine", "idf_terms", "imatch"):
        parameters = {"lexicon": lexicon, **parameters}
    found = compared(name, parameters, one, other)
    assert found.similarity == pytest.approx(similarity, abs=1e-6)
    assert found.duplicate is duplicate


#: Parameters by which hardly anything is unlike.
LAX: dict[str, dict[str, Any]] = {
    "shingle": {"similarity": 0.01},
    "minhash": {"similarity": 0.01},
    "supershingle": {"equal": 1},
    "simhash": {"distance": 8},
    "random_projection": {"similarity": 0.5},
    "cosine": {"similarity": 0.1},
    "term_profile": {},
    "keywords": {"rule": "any", "alpha": 1.0},
    "nshash": {"equal": 1},
    "segments": {"equal": 1},
}


def test_a_text_without_features_is_like_no_other() -> None:
    for name, lax in (*LAX.items(), ("shingle", {"similarity": 0.01, "features": "words"})):
        for text in ("", "！？……", " \n"):
            for one, other in ((text, "".join(FERRY)), ("".join(FERRY), text)):
                assert compared(name, lax, one, other) == Comparison(0.0, 0.0, False, False, False), (name, text, one)


def test_shingles_have_a_containment_and_the_smallest_are_keys() -> None:
    assert compared("shingle", {"n": 2}, "柳林渡口", "柳林渡口开船").containment == 1.0
    assert compared("shingle", {"n": 2}, "柳林渡口开船", "柳林渡口停船").containment == pytest.approx(3 / 5)
    everything = fingerprint("shingle", FERRY[0] * 2, {"keys": 255}).keys
    assert list(everything) == sorted(set(everything))
    assert fingerprint("shingle", FERRY[0] * 2, {"keys": 4}).keys == everything[:4]


# -- hashes that the papers print, or that follow from their words ----------------------------------------------------

PUBLISHED = "a7eb9d92a83cf438881915e0bc2df70b"


def first64(data: bytes) -> int:
    return int.from_bytes(md5(data).digest()[:8], "big")


@pytest.mark.parametrize(
    ("name", "parameters", "text", "keys"),
    [
        ("keywords", {"rule": "frequent", "n": 3}, ARTICLE, [int(PUBLISHED[:16], 16)]),
        ("keywords", {"rule": "ordered_weights", "n": 3}, ARTICLE, [first64("网页 搜索 引擎".encode())]),
        ("keywords", {"n": 3}, ARTICLE, [first64("引擎 搜索 网页".encode())]),
        ("keywords", {"rule": "set", "n": 3}, ARTICLE, [first64("引擎 搜索 网页".encode())]),
        ("keywords", {"rule": "ordered", "n": 2}, "缆绳，渡船，豆浆", [first64("渡船 缆绳".encode())]),
        ("keywords", {}, "渡船，缆绳", [first64("渡船 缆绳".encode())]),
        ("term_profile", PROFILE, TEXT, [first64(" ".join(sorted(RANKED[:10], reverse=True)).encode())]),
        ("nshash", {"hash": "md5", "n": 1, "equal": 1}, "abcdefghijklmnopqrstuvwxyz", [0xC3FCD3D76192E400]),
        (
            "imatch",
            {"min_terms": 5},
            "One day by the ferry a keel, rope, lantern, buoy of 渡口 quay. Ferry!",
            [OPEN.of("imatch 0 buoy ferry lantern quay 渡口")],
        ),
        ("imatch", {"min_terms": 4}, "ferry quay buoy", [OPEN.of("ferryquaybuoy")]),
        ("imatch", {"low": 0.0, "high": 0.2, "min_terms": 1}, " ".join(COUNTS), [OPEN.of("imatch 0 day the")]),
        ("imatch", {"low": 0.49, "high": 0.65, "min_terms": 1}, " ".join(COUNTS), [OPEN.of("imatch 0 buoy")]),
        ("imatch", {"low": 0.8, "high": 1.0, "min_terms": 1}, " ".join(COUNTS), [OPEN.of("imatch 0 keel rope")]),
    ],
)
def test_keys(lexicon: str, name: str, parameters: dict[str, Any], text: str, keys: list[int]) -> None:
    given = {"lexicon": lexicon, **parameters} if name == "imatch" else parameters
    assert list(fingerprint(name, text, given).keys) == keys


def test_the_classic_hash_of_rare_terms_is_the_key_and_a_collision_no_duplicate(lexicon: str) -> None:
    string = "lantern buoy quay ferry"
    for name in CLASSIC:
        parameters = {"lexicon": lexicon, "hash": name, "share": 0.8}
        found = fingerprint("idf_terms", "the ferry, the buoy, the quay: ferry! lantern", parameters)
        value = classic_hash(name, string)
        assert found.keys == (value,)
        assert found.sketch.endswith(value.to_bytes(4, "big") + blake2b(string.encode(), digest_size=16).digest())
    # "0r" and "20" have the same value in DJB: 33 * 48 + 114 = 33 * 50 + 48.
    one, other = ("the ferry to berth 000r", "the ferry to berth 0020")
    parameters = {"lexicon": lexicon, "hash": "djb"}
    assert fingerprint("idf_terms", one, parameters).keys == fingerprint("idf_terms", other, parameters).keys
    assert not compared("idf_terms", parameters, one, other).duplicate


def signs(weights: dict[int, int]) -> int:
    """The fingerprint of SimHash as the papers write it: a counter for each bit, and its sign."""
    totals = [sum(weight if one >> bit & 1 else -weight for one, weight in weights.items()) for bit in range(64)]
    return sum((total > 0) << bit for bit, total in enumerate(totals))


def test_simhash_adds_up_words_by_frequency_or_tfidf_under_any_hash(tmp_path: Path) -> None:
    def bits(text: str, **parameters: Any) -> int:
        return int.from_bytes(signature_of(fingerprint("simhash", text, parameters).sketch), "big")

    expected = signs({OPEN.of("ferry"): 2, OPEN.of("bridge"): 1, OPEN.of("village"): 1})
    assert bits("the ferry and the bridge, the ferry of the village") == expected
    for name in CLASSIC:
        values = {classic_hash(name, word, 64): 1 for word in ("ferry", "bridge", "渡口")}
        assert bits("ferry bridge 渡口", hash=name) == signs(values)
    path = tmp_path / "stop.txt"
    path.write_text("# ours\nBridge  # at the end\n\n", encoding="utf-8")
    assert bits("the ferry, the bridge", stop_words=str(path)) == signs({OPEN.of("the"): 1 + 1, OPEN.of("ferry"): 1})
    idf = read_lexicon("").weight
    chosen = {OPEN.of("嫁接"): round(idf("嫁接") * 1024), OPEN.of("渡口"): round(idf("渡口") * 1024)}
    # A common word says little, even twice.
    assert bits("渡口，发展，嫁接，发展", features="tfidf", top=2) == signs(chosen)


def test_all_methods_with_stop_words_read_them_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stop.txt"
    path.write_text("渡船\n缆绳\n", encoding="utf-8")
    for name in ("simhash", "random_projection", "cosine", "term_profile", "keywords"):
        parameters: dict[str, Any] = {"percentage": 1.0, "sum_interval": 1} if name == "term_profile" else {}
        assert not compared(name, parameters, "渡船，豆浆，铁桥", "缆绳，豆浆，铁桥").duplicate, name
        parameters["stop_words"] = str(path)
        assert compared(name, parameters, "渡船，豆浆，铁桥", "缆绳，豆浆，铁桥").duplicate, name


# -- pieces, words and prefixes ---------------------------------------------------------------------------------------


def test_a_text_is_cut_into_pieces_and_words_are_chosen() -> None:
    pieces = {("", 3): "", ("船", 3): "船", ("船来", 0): "船来", ("新渡口开航", 2): "新渡 口开航"}
    assert {one: " ".join(equal_pieces(*one)) for one in pieces} == pieces
    longest = {("", 3): "", ("船", 3): "船", ("船 来 了 我们走", 3): "了我们走 船来", ("船来了 走", 3): "船来了"}
    longest |= {("船来了 我们 渡口开航", 2): "渡口开航 船来了", ("船来了 开航了", 1): "开航了"}
    assert {(text, n): " ".join(longest_pieces(text.split(" "), n, 2)) for text, n in longest} == longest
    beside = {
        "新渡口开航": (0, ""),
        "开航！船来了？": (2, "开航船来来了"),
        "好，好，开航了": (2, "好好好开航"),
        "开航！！！船来了": (3, "开航船来"),
        "开航；船来了：走、停": (0, ""),
        "The ferry is back, they said today.": (2, "isbacktheysaidsaidtoday"),
        "票价3.5元，在example.com买，一年1,200张。": (3, "5元在examplecom买一年200张"),
        "等……船来了...走。": (1, "了走"),
    }
    assert {text: text_beside_marks(normalize(text)) for text in beside} == beside
    table = Lexicon({"the": 0.0, "ferry": 0.5, "quay": 0.9, "渡口": 0.9, "buoy": 1.6}, unknown=2.3)
    ranked = ["keel", "buoy", "quay", "渡口", "ferry", "the"]
    for share, count in ((1.0, 6), (0.9, 5), (0.7, 4), (0.5, 3), (0.1, 1)):
        assert rarest(set(ranked), table, share) == ranked[:count], share
    assert len(rarest([f"word{number}" for number in range(10)], table, 0.7)) == 7  # 0.7 * 10 is a little less
    for different, percentage, interval, count in ((109, 0.5, 10, 50), (99, 0.5, 10, 40), (100, 0.29, 1, 29)):
        assert len(term_profile({f"word{number}": 1 for number in range(different)}, percentage, interval)) == count


def test_a_prefix_ends_where_the_rest_is_shorter_than_the_limit() -> None:
    for weights, similarity, expected in (
        ([1.0], 1.0, 1),
        ([0.6, 0.8], 0.8, 2),  # a rest of just the limit is not shorter
        ([0.43589, 0.9], 0.9, 2),  # 0.9 in 24 bits is less than 0.9
        ([0.5, 0.5, 0.5, 0.5], 0.75, 2),
        ([0.5, 0.5, 0.5, 0.5], 0.4, 4),
    ):
        assert prefix(np.array(weights, np.float32), similarity) == expected, (weights, similarity)


def test_vectors_of_long_pages_and_of_words_with_one_hash() -> None:
    hashes = np.random.default_rng(3).integers(0, 2**64, 1000, dtype=np.uint64)
    keys, packed = vector(hashes, np.arange(1000, 0, -1) / 100, np.ones(1000), 0.5)
    assert keys == hashes[:255].tolist()
    assert len(packed) == 8 * 1000
    twins = np.array([5 << 32 | 1, 5 << 32 | 2, 9 << 32], np.uint64)
    _, packed = vector(twins, np.array([1.0, 2.0, 2.0]), np.ones(3), 0.8)
    assert len(packed) == 16
    assert cosine(packed, packed) == pytest.approx(8 / 9, abs=1e-6)  # the lighter twin is left out


# -- keys that many pages share are no evidence -----------------------------------------------------------------------


def test_a_common_key_counts_for_neither() -> None:
    for name, parameters, one, other in [
        ("nshash", {"equal": 1}, "".join((*FERRY[:4], DISCLAIMER)), "".join((*SCHOOL[:4], DISCLAIMER))),
        ("segments", {}, "\n".join(PARAGRAPHS), "\n".join((*PARAGRAPHS[:3], ADDED))),
        ("punctuation", {}, "，".join(FERRY), "，".join(FERRY).replace("慢慢", "缓缓")),
    ]:
        method = make_method(name, parameters)
        new, old = (
            fingerprint(name, text, parameters, "新渡口" if name == "punctuation" else "") for text in (one, other)
        )
        shared = [key for key in new.keys if key in old.keys]
        before = method.compare(new, old.sketch, NONE)
        assert before.duplicate, name
        assert not method.compare(new, old.sketch, frozenset(keys_of(shared))).duplicate, name
        assert method.compare(new, old.sketch, frozenset(keys_of(shared[:1]))).similarity < before.similarity, name


# -- titles and descriptions ------------------------------------------------------------------------------------------

TITLE = "新渡口清晨开航"
MARKED = (
    "河湾镇的新渡口清晨开航，第一班船载着乘客慢慢驶来。卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年！"
    "旧渡船去年沉了，两岸的人只能绕道铁桥。船票多少钱一张？老人和孩子不用买票，自行车也可以推上船。"
)
#: A word beside a mark in each of the three pieces.
EDITS = (("第一班", "第三班"), ("旧渡船", "老渡船"), ("自行车", "三轮车"))


def test_punctuation_weighs_a_title_three_halves_and_a_piece_one() -> None:
    for titles, pieces, weight in [
        ((TITLE, TITLE), (), 4.5),
        ((TITLE, f"{TITLE}_河湾网"), (1,), 3.5),
        ((TITLE, "新渡口，清晨开航！"), (0, 2), 2.5),
        ((TITLE, TITLE), (0, 1, 2), 1.5),
        ((TITLE, "停航"), (), 3.0),
        (("", ""), (1,), 2.0),  # empty titles are not equal
        (("！", "。"), (1,), 2.0),
    ]:
        other = MARKED.replace("慢慢", "缓缓")  # as the same letters alone would be enough
        for piece in pieces:
            other = other.replace(*EDITS[piece])
        for threshold, hash in ((3.0, "blake2b"), (3.0, "md5"), (2.5, "blake2b")):
            found = compared("punctuation", {"threshold": threshold, "hash": hash}, MARKED, other, titles)
            assert found.similarity == pytest.approx(weight / 4.5)
            assert found.duplicate is (weight >= threshold)


def test_equal_descriptions_are_enough_and_never_cut() -> None:
    method = make_method("keywords", {"rule": "description"})

    def judged(one: tuple[str, str], other: tuple[str, str]) -> bool:
        new, old = (method.fingerprint(Page("", description=about, text=text)) for about, text in (one, other))
        return method.compare(new, old.sketch, NONE).duplicate

    assert judged(("新渡口清晨开航。", ARTICLE), ("新渡口，清晨开航！", "渡船，缆绳"))
    assert not judged(("新渡口清晨开航。", ARTICLE), ("停航", SWAPPED))
    assert not judged(("新渡口清晨开航", ARTICLE), ("新渡口清晨开航"[:0], f"{ARTICLE}船"))
    assert not judged(("渡" * 300 + "船", "网页"), ("渡" * 300 + "口", "搜索"))


def test_sentences_end_at_every_mark_and_are_shown() -> None:
    for name in ["md5", "blake2b"]:
        method = make_method("nshash", {"hash": name})
        sketch = fingerprint("nshash", "".join(FERRY), {"hash": name}).sketch
        assert method.shared(Page("", text="".join((*SCHOOL, FERRY[1]))), sketch) == (FERRY[1].strip("。"),), name
    for end in ("。", "！", "？", "；", "!", "?", ";", "\n", ". "):
        text = "".join(f"{sentence.strip('。')}{end}" for sentence in FERRY[:5])
        assert len(fingerprint("nshash", text, {}).keys) == 5, end


# -- lexicons and refused parameters ----------------------------------------------------------------------------------


def test_another_language_needs_a_lexicon() -> None:
    for name in ["imatch", "idf_terms"]:
        with pytest.raises(LexiconNeeded, match="parameter 'lexicon'"):
            fingerprint(name, "The lighthouse will be lit again next month, 20 years after its keeper left.", {})
        for more in ("", "，。！", " ".join(map(str, range(1000))), "def moor(ferry, quay): return quay.berth"):
            assert fingerprint(name, f"{''.join(FERRY)}\n{more}", {}).keys
        assert fingerprint(name, "，。！", {}).keys == (OPEN.of(""),)


@pytest.mark.parametrize("name", ["imatch", "idf_terms", "cosine", "simhash"])
def test_a_file_that_is_no_lexicon_is_refused_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ferry\t3\n")
    with pytest.raises(SettingsError, match=r"words\.txt"):
        make_method(name, {"lexicon": str(tmp_path / "words.txt")})


def test_parameters_that_do_not_go_together_are_refused() -> None:
    given: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("minhash", {"permutations": 24}, "bands"),
        ("supershingle", {"supershingles": 3, "equal": 4}, "equal"),
        ("simhash", {"distance": 3, "blocks": 3}, "blocks"),
        ("simhash", {"distance": 3, "blocks": 14}, "blocks"),
        ("random_projection", {"bits": 100}, "bits"),
        ("imatch", {"low": 0.8, "high": 0.8}, "high"),
        ("keywords", {"rule": "set,ordered"}, "rule"),
        ("nshash", {"n": 2}, "equal"),
        ("segments", {"segments": 2}, "equal"),
    )
    for name, parameters, wrong in given:
        with pytest.raises(SettingsError, match=f"{name}: .*{wrong}"):
            make_method(name, parameters)


def test_two_equal_super_shingles_of_six_make_a_duplicate() -> None:
    def agreed(equal: int, other: tuple[int, ...]) -> tuple[float, bool]:
        """The equal ones that the similarity speaks for, and the verdict."""
        sketches = [
            bytes([n]) + bytes(12) + struct.pack(">6Q", *one) for n, one in enumerate(((1, 2, 3, 4, 5, 6), other))
        ]
        method = make_method("supershingle", {"equal": equal})
        found = method.compare(Fingerprint((), sketches[0]), sketches[1], NONE)
        return round(6 * found.similarity**14, 9), found.duplicate

    assert agreed(2, (1, 20, 30, 40, 50, 6)) == (2, True)
    assert agreed(2, (1, 20, 30, 40, 50, 60)) == (1, False)
    assert agreed(3, (1, 20, 30, 40, 50, 6)) == (2, False)


# Estimates on many random pairs: their errors, and how often two pages share a key


def test_simhashes_within_the_distance_share_a_table() -> None:
    for distance, blocks, tables, width in [
        (0, 0, 1, 64),
        (1, 0, 2, 32),
        (3, 0, 4, 16),
        (3, 6, 20, 31),
        (6, 0, 28, 16),
        (8, 0, 165, 16),
    ]:
        masks, chance = SimHashParameters(distance=distance, blocks=blocks).tables, random.Random(distance)
        assert len(set(masks)) == len(masks) == tables
        assert min(mask.bit_count() for mask in masks) == width
        for _ in range(300):
            flips = sum(1 << place for place in chance.sample(range(64), distance))
            assert any(not mask & flips for mask in masks), distance


@pytest.mark.parametrize(
    ("name", "parameters", "bits", "most"),
    [
        ("simhash", {"distance": 0}, 64, 0),
        ("simhash", {"distance": 3}, 64, 3),
        ("random_projection", {"similarity": 240 / 256}, 256, 16),
        ("random_projection", {"similarity": 1.0, "bits": 384}, 384, 0),
    ],
)
def test_the_number_of_different_bits_decides(name: str, parameters: dict[str, float], bits: int, most: int) -> None:
    method, chance, size = make_method(name, parameters), random.Random(4), bits // 8
    value = chance.getrandbits(bits)
    for different in (0, 1, most, most + 1, bits):
        flipped = value ^ sum(1 << bit for bit in chance.sample(range(bits), different))
        one, other = (bytes([n]) + bytes(12) + v.to_bytes(size, "big") for n, v in enumerate((value, flipped)))
        found = method.compare(Fingerprint((), one), other, NONE)
        assert (found.similarity, found.duplicate) == (1 - different / bits, different <= most)


def test_a_key_changes_with_the_bits_of_its_run_alone() -> None:
    for tables, width in [(16, 16), (3, 60), (8, 64)]:
        bits, value = 256, random.Random(7).getrandbits(256)
        keys = cut_keys(value, bits, tables, width, OPEN)
        assert len(set(cut_keys(0, bits, tables, width, OPEN))) == tables  # equal bits in another run are another key
        for bit in range(bits):
            changed = cut_keys(value ^ 1 << bit, bits, tables, width, OPEN)
            expected = [(bit - table * bits // tables) % bits < width for table in range(tables)]
            assert [one != other for one, other in zip(keys, changed, strict=True)] == expected, tables


@pytest.mark.slow
@pytest.mark.parametrize("similarity", [0.3, 0.8, 0.95])
def test_the_prefix_filter_finds_every_pair_that_brute_force_finds(similarity: float) -> None:
    """Of texts over one vocabulary, in families of five: of each word how often it stands in the text."""
    chance, size, texts = np.random.default_rng(1), 2000, list[npt.NDArray[np.float64]]()
    hashes, idf = chance.integers(0, 2**64, size, dtype=np.uint64), chance.choice([0.5, 1.0, 3.0, 6.0, 11.95], size)
    for family in range(60):
        drawn = [chance.geometric(0.5, size) * (chance.permutation(size) < 5 + 3 * family) for _ in range(2)]
        texts += [np.where(chance.random(size) < share, *drawn) * 1.0 for share in (0.0, 0.02, 0.1, 0.3, 0.6)]
    signatures = [vector(hashes[text > 0], idf[text > 0], text[text > 0], similarity) for text in texts]
    exact = np.array([text * idf / np.linalg.norm(text * idf) for text in texts])
    exact, above = exact @ exact.T, 0
    for one, other in combinations(range(len(texts)), 2):
        if exact[one, other] >= similarity:
            above += 1
            assert not set(signatures[one][0]).isdisjoint(signatures[other][0])
            assert cosine(signatures[one][1], signatures[other][1]) == pytest.approx(exact[one, other], abs=2e-6)
    assert above > 50
    assert max(len(keys) for keys, _ in signatures) < 255
    assert sum(len(keys) for keys, _ in signatures) < np.count_nonzero(texts)
