"""nshash: which sentences count, how many must be equal, and the faults of the original that it has not."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.methods import make_method
from scrapy_neardup.methods.literature.nshash import NSHash, NSHashParameters
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.state.opening import open_store

DISCLAIMER = "本站转载的内容均已注明出处，如果涉及版权问题请作者在三十天之内与我们取得联系。"
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


def page(*sentences: str, url: str = "http://a.example/") -> Page:
    return Page(url, text="".join(sentences))


def agree(one: Page, other: Page, **parameters: object) -> tuple[bool, float]:
    method = make_method("nshash", parameters)
    found = method.compare(method.fingerprint(one), method.fingerprint(other).sketch, frozenset())
    return found.duplicate, found.similarity


def test_one_edited_sentence_of_five_is_still_a_copy() -> None:
    edited = [FERRY[0].replace("清晨", "早晨"), *FERRY[1:]]
    assert agree(page(*FERRY), page(*edited)) == (True, 0.8)


def test_one_edited_word_in_the_longest_sentence_escapes_the_rule_of_one() -> None:
    """The "Baidu" rule, n = 1: what the article sets out to mend."""
    longest = max(FERRY, key=len)
    edited = [sentence.replace("了", "过") if sentence == longest else sentence for sentence in FERRY]
    assert agree(page(*FERRY), page(*edited), n=1, equal=1) == (False, 0.0)
    assert agree(page(*FERRY), page(*edited))[0]


def test_a_shared_disclaimer_does_not_merge_pages_unless_asked_for() -> None:
    one, other = page(*FERRY, DISCLAIMER), page(*SCHOOL, DISCLAIMER)
    assert agree(one, other) == (False, 0.2)
    assert agree(one, other, equal=1) == (True, 0.2)


def test_a_page_that_is_little_but_a_disclaimer_is_no_copy_of_another_such_page() -> None:
    assert not agree(page("今天停航一天。", DISCLAIMER), page(*FERRY[:3], DISCLAIMER))[0]


def test_with_fewer_sentences_all_must_be_equal() -> None:
    assert agree(page(*FERRY[:2]), page(*FERRY[:2], "明天停航。"))[0]
    assert not agree(page(*FERRY[:2]), page(FERRY[0], SCHOOL[1]))[0]
    assert not agree(page(*FERRY[:2]), page(*FERRY[:3]))[0]


def test_short_pieces_and_empty_ones_are_no_sentences() -> None:
    """The original hashed the empty piece behind the last full stop, so that all short pages were the same."""
    for one, other in (("好。", "行。"), ("。。。", "！！"), ("", "。")):
        assert agree(page(one), page(other))[1] in (0.0, 1.0 if one.strip("。！") == other.strip("。！") else 0.0)
    method = NSHash()
    assert len(method.fingerprint(page("明天还有船。好。")).keys) == 1  # the whole body's


@pytest.mark.parametrize("end", ["。", "！", "？", "；", "!", "?", ";", "\n", ". "])
def test_a_sentence_ends_at_every_mark(end: str) -> None:
    sentences = [sentence.strip("。") for sentence in FERRY[:5]]
    assert len(NSHash().fingerprint(page(*(f"{sentence}{end}" for sentence in sentences))).keys) == 5


def test_numbers_and_addresses_are_not_cut() -> None:
    method = NSHash()
    text = "The fare is 3.50 for a trip to example.com and back: nobody under twelve pays at all"
    assert len(method.fingerprint(page(text)).keys) == 1


def test_the_longest_are_chosen_and_equal_lengths_by_their_characters() -> None:
    same_length = ["甲乙丙丁戊己庚辛壬癸", "子丑寅卯辰巳午未申酉", "天地玄黄宇宙洪荒日月"]
    method = make_method("nshash", {"n": 2, "equal": 1})
    keys = {method.fingerprint(page(*(f"{s}。" for s in order))).keys for order in (same_length, same_length[::-1])}
    assert len(keys) == 1
    assert len(keys.pop()) == 2


def test_md5_and_blake2b_agree_on_everything_but_the_keys() -> None:
    one, other = page(*FERRY), page(*FERRY[:4], *SCHOOL[:1])
    assert agree(one, other, hash="md5") == agree(one, other)
    keys = [make_method("nshash", {"hash": name}).fingerprint(one).keys for name in ("md5", "blake2b")]
    assert not {*keys[0]} & {*keys[1]}
    # The first eight bytes of MD5 of the UTF-8 letters.
    assert make_method("nshash", {"hash": "md5", "n": 1, "equal": 1}).fingerprint(
        page("abcdefghijklmnopqrstuvwxyz")
    ).keys == (0xC3FCD3D76192E400,)


@pytest.mark.parametrize("name", ["md5", "blake2b"])
def test_shared_sentences_are_shown_with_either_hash(name: str) -> None:
    method = make_method("nshash", {"hash": name})
    sketch = method.fingerprint(page(*FERRY)).sketch
    assert method.shared(page(*SCHOOL, FERRY[1]), sketch) == (FERRY[1].strip("。"),)


def test_a_common_sentence_counts_for_neither() -> None:
    method = make_method("nshash", {"equal": 1})
    one, other = method.fingerprint(page(*FERRY[:4], DISCLAIMER)), method.fingerprint(page(*SCHOOL[:4], DISCLAIMER))
    common = {*keys_of(one.keys)} & {*keys_of(other.keys)}
    assert len(common) == 1
    assert method.compare(one, other.sketch, frozenset()).duplicate
    assert not method.compare(one, other.sketch, frozenset(common)).duplicate


def test_more_equal_hashes_than_there_are_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"nshash: equal must be at most n \(2\), not 3"):
        NSHashParameters(n=2, equal=3)


def test_pages_of_a_group_answer_with_the_same_similar_id_and_ids_do_not_restart() -> None:
    """The original's ids began at 1 again after each opening, so that strangers of two runs shared one."""
    store = open_store("memory:", {})
    ids = []
    for run in range(2):
        detector = Detector(make_method("nshash", {}), store, who=f"crawl {run}")
        for name, sentences in (("ferry", FERRY), ("copy", FERRY[::-1]), ("school", SCHOOL)):
            changed = [sentence.replace("的", f"的第{run}") for sentence in sentences] if run else sentences
            verdict = detector.judge_now(page(*changed, url=f"http://{name}.example/{run}"), sealed=True)
            ids.append((verdict.kind, verdict.similar_id))
    kinds = [kind for kind, _ in ids]
    assert kinds == [Kind.UNIQUE, Kind.DUPLICATE, Kind.UNIQUE] * 2
    assert ids[0][1] == ids[1][1]
    assert ids[3][1] == ids[4][1]
    assert len({id for _, id in ids}) == 4
