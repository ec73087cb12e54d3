"""What the default method takes for a copy and what not, its sketch, its layout and the limits of its parameters."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.methods.cascade import Cascade, CascadeParameters, _Sketch
from scrapy_neardup.methods.minwise import jaccard, sketch
from scrapy_neardup.model import Comparison, Page
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import shingles

DEFAULTS = CascadeParameters()
#: Bytes of a sketch that are the min-wise one.
MINWISE = DEFAULTS.bins * DEFAULTS.bits // 8

TITLE = "新渡口清晨开航"
FERRY = """河湾镇的新渡口星期六清晨正式开航，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来。
天还没有亮，码头上就站满了人。卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，今天的豆浆不收钱。
旧渡船是一九八二年造的木船，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去，两岸的人从此只能绕道上游的铁桥，来回要走四十公里。
镇上原本打算修一座公路桥，勘察队来看过两次，发现河床下面全是流沙，打桩的费用比全镇五年的收入还要多，计划只好搁下。
新船由县里的船厂承造，船身用铝合金焊成，长二十四米，可以同时装下八辆小货车，遇到枯水期也不会搁浅。
船长姓罗，年轻时在海上跑过货轮，退休以后回到老家。他说河里的水比海里的水脾气更怪，每天开船之前都要放一只空瓶子试水。
按照现在的安排，渡船每天往返十四趟，早上五点半开第一班，晚上九点收班，赶集的日子再加四趟。学生凭证件免费，农用车收半价。
柳林村的果农最高兴。往年梨子熟了，运到镇上要颠簸大半天，到了市场已经碰坏三成。现在过河只要七分钟，清早摘下的梨，中午就能摆上县城的柜台。
渡口旁边还盖了一间候船室，墙上挂着旧渡船的照片和那根断掉的缆绳。老人们坐在长椅上，一边等船一边给孩子们讲从前撑篙过河的故事。
负责渡口的何主任说，第一个月先试运行，票价和班次都还可以改，意见箱就钉在候船室门口，谁都可以往里面投纸条。
夜里收班以后，船就系在候船室下面的铁桩上，由住在码头边的一对老夫妻看守。他们养的黄狗认得每一位船员，见了生人才叫。"""
SECOND_FERRY = """下游的沙洲村也要有自己的渡船了。昨天下午，村里的木匠把新船的龙骨抬进晒谷场，全村的孩子都跑来看。
这条船不用铁也不用铝，全部用山上的老杉木，缝隙里填的是桐油和麻丝，要晾足两个月才能下水。
领头的木匠姓尤，今年六十八岁，他的祖父和父亲都是造船的，家里还留着一本画满尺寸的旧账簿。
钱是村民一户一户凑的，出不起钱的人家出力气，两位在外地打工的年轻人寄回来一台二手的柴油机。
沙洲四面是水，夏天涨水的时候孩子们要停课半个月。有了这条船，老师说，以后只有刮台风才会放假。"""
LIGHTHOUSE = """\
The lighthouse on Gannet Point will be lit again next month, twenty years after its keeper locked the door.
Volunteers have spent three winters scraping salt from the lens, which was ground in 1874 and weighs as much as a van.
The old clockwork that turned it could not be saved, so a retired bicycle maker built a new one out of chains.
Ships no longer need the light, the harbour master says, but the people below it missed the beam on their ceilings.
Visitors may climb the hundred and twelve steps on Sundays, provided they carry a bucket of coal up for the stove."""
ADDED = "另据了解，县里打算明年在下游的沙洲再建一座码头，方便对岸的学校组织学生春游。"

FORM = """{maker}日前向市场监督管理部门备案了召回计划，决定自{date}起召回部分{product}，涉及数量共计{count}。
本次召回范围内的{product}由于{fault}，{harm}，存在安全隐患。{maker}将为召回范围内的用户免费{remedy}，以消除安全隐患。
本次召回活动是在市场监督管理部门启动缺陷调查的情况下开展的。受调查影响，生产者决定采取召回措施，以保护消费者的人身和财产安全。
在完成维修之前，请用户立即停止使用涉及的产品，将产品放置在儿童接触不到的地方，并与就近的服务网点联系，以免发生意外。
用户可以拨打客户服务热线{phone}进行咨询，热线的服务时间为工作日上午九点至下午六点，也可以登录生产者的网站了解本次召回的详细情况。
此外，消费者还可以登录召回信息平台或者关注公众号，了解更多信息，反映召回活动实施过程中的问题或者提交其他缺陷线索。"""
KETTLE = {
    "maker": "晨光电器",
    "date": "3月15日",
    "product": "电热水壶",
    "count": "21480台",
    "fault": "底座温控开关的触点不耐高温",
    "harm": "水烧干之后可能不断电",
    "remedy": "更换底座",
    "phone": "400-112-3456",
}
BICYCLE = {
    "maker": "北岭车业",
    "date": "9月2日",
    "product": "儿童自行车",
    "count": "6395辆",
    "fault": "前叉与车架的焊缝没有熔合",
    "harm": "受到颠簸时可能断裂",
    "remedy": "加固前叉",
    "phone": "800-907-6621",
}
COMMON_CHARACTERS = (
    "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"
)


def page(text: str, title: str = TITLE, **more: Any) -> Page:
    return Page("http://river.example/", title, text=text, **more)


def judged(one: Page, other: Page, common: frozenset[int] = frozenset(), **parameters: Any) -> Comparison:
    method = Cascade(CascadeParameters(**parameters))
    return method.compare(method.fingerprint(one), method.fingerprint(other).sketch, common)


def common_keys(one: Page, other: Page) -> frozenset[int]:
    return frozenset(Cascade().fingerprint(one).keys) & frozenset(Cascade().fingerprint(other).keys)


def exact_jaccard(one: str, other: str) -> float:
    a, b = (set(shingles(letters(normalize(text)), 5).tolist()) for text in (one, other))
    return len(a & b) / len(a | b)


def edited(text: str, share: float, seed: int) -> str:
    """The text with that share of its characters replaced by other common ones, here and there."""
    dice, chars = random.Random(seed), list(text)
    places = [place for place, char in enumerate(chars) if "\u4e00" <= char <= "\u9fff"]
    for place in dice.sample(places, round(share * len(places))):
        chars[place] = dice.choice(COMMON_CHARACTERS.replace(chars[place], ""))
    return "".join(chars)


class TestCopies:
    @pytest.mark.parametrize("title", ["等了十一年，船来了", "", "河湾镇", "Ferry", "2024年的7件大事"])
    @pytest.mark.parametrize("text", [FERRY, SECOND_FERRY, LIGHTHOUSE])
    def test_a_copy_under_another_title_is_a_duplicate(self, text: str, title: str) -> None:
        original, copy = page(text), page(text, title)
        found = judged(copy, original)
        assert (found.duplicate, found.certain, found.identical, found.similarity) == (True, True, False, 1.0)
        assert len(common_keys(copy, original)) >= 3

    @pytest.mark.parametrize("share", [0.005, 0.01, 0.02, 0.03])
    def test_a_copy_with_some_characters_changed_is_a_duplicate_and_found(self, share: float) -> None:
        assert len(FERRY) > 600
        for seed in range(25):
            copy = page(edited(FERRY, share, seed))
            found = judged(copy, page(FERRY))
            assert found.duplicate, (seed, found)
            assert not found.identical
            assert common_keys(copy, page(FERRY)), seed

    @settings(deadline=None, max_examples=40)
    @given(st.permutations(FERRY.split("\n")))
    def test_a_copy_with_its_paragraphs_in_another_order_is_a_duplicate(self, paragraphs: list[str]) -> None:
        copy = page("\n".join(paragraphs), "等了十一年，船来了")
        assert judged(copy, page(FERRY)).duplicate
        assert len(common_keys(copy, page(FERRY))) >= 3

    @pytest.mark.parametrize("text", [f"{FERRY}\n{ADDED}", f"{ADDED}\n{FERRY}", FERRY.replace("\n", f"\n{ADDED}\n", 1)])
    def test_a_copy_with_another_title_and_one_more_paragraph_is_a_duplicate(self, text: str) -> None:
        found = judged(page(text, "等了十一年，船来了"), page(FERRY))
        assert found.duplicate
        assert found.containment > 0.97
        assert found.similarity < found.containment

    def test_a_copy_without_one_paragraph_is_a_duplicate(self) -> None:
        paragraphs = FERRY.split("\n")
        for left_out in range(len(paragraphs)):
            copy = "\n".join(paragraphs[:left_out] + paragraphs[left_out + 1 :])
            assert judged(page(copy), page(FERRY)).duplicate

    def test_a_copy_set_in_other_lines_is_identical(self) -> None:
        copy = FERRY.replace("\n", "").replace("。", "。\n\n　　")
        assert judged(page(copy), page(FERRY)).identical

    def test_a_text_in_english_is_treated_alike(self) -> None:
        copy = LIGHTHOUSE.replace("retired", "former").replace("bucket of coal", "sack of coal")
        assert judged(page(copy, "A light returns"), page(LIGHTHOUSE)).duplicate


class TestOthers:
    @pytest.mark.parametrize("text", [SECOND_FERRY, LIGHTHOUSE, ADDED])
    def test_another_article_under_the_same_head_is_none(self, text: str) -> None:
        head = {"keywords": ("渡口", "开航"), "description": "新渡口清晨开航了"}
        one, other = page(FERRY, **head), page(text, **head)
        assert common_keys(one, other)
        found = judged(one, other)
        assert not found.duplicate
        assert found.similarity < 0.15

    def test_a_form_filled_in_for_another_product_is_none(self) -> None:
        kettle, bicycle = FORM.format(**KETTLE), FORM.format(**BICYCLE)
        assert 0.5 < exact_jaccard(kettle, bicycle) < 0.65
        one = page(kettle, "晨光电器召回21480台电热水壶")
        other = page(bicycle, "北岭车业召回6395辆儿童自行车")
        found = judged(one, other)
        assert not found.duplicate
        assert 0.4 < found.similarity < 0.75

    def test_the_same_form_reported_twice_is_a_duplicate(self) -> None:
        text = FORM.format(**KETTLE)
        assert judged(page(text + ADDED, "电热水壶召回"), page(text, "晨光电器召回21480台电热水壶")).duplicate

    @pytest.mark.parametrize(
        ("notice", "one", "other"),
        [
            ("There were {} coal barges waiting at the lock", "three", "seven"),
            ("There were {} coal barges waiting at the lock this morning, the harbour office said", "3", "7"),
            ("There were {} coal barges waiting at the lock this morning, the harbour office said", "three", "seven"),
            ("Line {} will not stop at Mill Lane on Monday. Please use the stop at the church.", "12", "14"),
            ("The pool on Reed Street is closed on {} May for cleaning, the season tickets stay valid.", "4", "5"),
            ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "13", "17"),
            ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "十三", "十七"),
            ("今天码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请车辆绕行北门。", "３", "７"),
            ("因检修水管，{}日上午停水，请各家提前蓄水，老人和病人可以到候船室领开水。", "5", "6"),
        ],
    )
    def test_a_short_notice_with_another_number_is_none(self, notice: str, one: str, other: str) -> None:
        for title in ("通知", ""):
            assert not judged(page(notice.format(one), title), page(notice.format(other), title)).duplicate

    def test_a_longer_notice_with_another_chinese_digit_is_none(self) -> None:
        notice = (
            "今天早上码头上停着{}艘运粮船，港务处说下午装完货就开船离港，请前往集市的车辆提前绕行北门，"
            "夜间的渡船照常开行，票价不变，如有疑问可以到候船室询问值班员。"
        )
        assert not judged(page(notice.format("三")), page(notice.format("七"))).duplicate

    def test_a_short_notice_with_the_same_numbers_and_one_word_more_is_a_duplicate(self) -> None:
        notice = "今天码头上停着13艘运粮船，港务处说下午装完货就开船离港，请来往的车辆绕行北门，夜间渡船照常开行。"
        assert judged(page(notice + "特此通知"), page(notice)).duplicate


class TestEvidence:
    """What agrees or not besides the shingles, at a similarity where that decides."""

    #: Half of the article is another one, and the longest sentences are not.
    HALF = "\n".join([*FERRY.split("\n")[:6], *SECOND_FERRY.split("\n")])

    def needs(self, one: Page, other: Page, common: frozenset[int] = frozenset(), **weights: float) -> bool:
        only = {"by_title": 0.0, "by_sentences": 0.0, "by_numbers": 0.0, "by_title_numbers": 0.0, **weights}
        return judged(one, other, common, **only).duplicate

    def halves(self, base_above: float, **titles: str) -> tuple[Page, Page, float]:
        one, other = page(FERRY, titles.get("one", TITLE)), page(self.HALF, titles.get("other", TITLE))
        similarity = judged(one, other).similarity
        assert 0.25 < similarity < 0.7
        return one, other, similarity + base_above

    def test_similarity_is_held_against_the_base(self) -> None:
        one, other, base = self.halves(0.0)
        assert self.needs(one, other, base=base)
        assert not self.needs(one, other, base=base + 0.001)

    def test_the_same_title_words_make_up_for_similarity(self) -> None:
        one, other, base = self.halves(0.1)
        assert self.needs(one, other, base=base, by_title=0.11)
        assert not self.needs(one, other, base=base, by_title=0.09)
        assert not self.needs(one, replace(other, title="柳林村的果农高兴"), base=base, by_title=0.11)

    def test_a_missing_title_counts_as_half_of_one(self) -> None:
        one, other, base = self.halves(0.1, other="")
        assert self.needs(one, other, base=base, by_title=0.21)
        assert not self.needs(one, other, base=base, by_title=0.19)

    def test_sentences_in_common_make_up_for_similarity(self) -> None:
        one, other, base = self.halves(0.1)
        assert self.needs(one, other, base=base, by_sentences=1.0)
        assert not self.needs(one, other, base=base)

    def test_sentences_under_common_keys_are_no_evidence(self) -> None:
        # With as many keys as sentences in the sketch all that the two have in common can be known to be common.
        keys = {"sentence_keys": 12, "max_sentences": 12}
        one, other, base = self.halves(0.1)
        method = Cascade(CascadeParameters(**keys))
        common = frozenset(method.fingerprint(one).keys) & frozenset(method.fingerprint(other).keys)
        assert common
        assert self.needs(one, other, base=base, by_sentences=1.0, **keys)
        assert not self.needs(one, other, common, base=base, by_sentences=1.0, **keys)

    def test_other_numbers_ask_for_more_similarity(self) -> None:
        text = "昨天的集市上来了{}位果农，卖掉梨子{}公斤，收入{}元，摊位从桥头一直摆到候船室门口。\n"
        figures = text.format(217, 8400, 33600), text.format(184, 6150, 24600)
        one, other = page(figures[0] + FERRY), page(figures[1] + FERRY)
        plain = {"certain": 1.0, "base": judged(one, other).similarity - 0.01}
        assert self.needs(one, other, **plain)
        assert not self.needs(one, other, by_numbers=1.0, **plain)
        same = page(figures[0] + FERRY + ADDED)
        assert self.needs(one, same, by_numbers=1.0, **plain)

    def test_titles_with_other_numbers_ask_for_more_similarity(self) -> None:
        one, other, base = self.halves(-0.01, one="渡口 第 3 期", other="渡口 第 4 期")
        assert self.needs(one, other, base=base)
        assert not self.needs(one, other, base=base, by_title_numbers=0.05)
        assert self.needs(one, replace(other, title="渡口 第 3 期"), base=base, by_title_numbers=0.05)
        assert self.needs(one, replace(other, title="渡口开航"), base=base, by_title_numbers=0.05)

    def test_what_is_certain_asks_for_nothing_else(self) -> None:
        one, other, _ = self.halves(0.0)
        similarity = judged(one, other).similarity
        assert judged(one, other, base=1.0, certain=similarity).certain
        assert not judged(one, other, base=1.0, certain=similarity + 0.001).duplicate


class TestKeys:
    def test_there_is_one_for_the_title_one_for_the_rest_of_the_head_and_some_for_the_body(self) -> None:
        full = Cascade().fingerprint(page(FERRY, "新渡口大桥开航", keywords=("渡口", "大桥"), description="河湾开航"))
        assert len(full.keys) == 1 + 1 + DEFAULTS.sentence_keys + DEFAULTS.shingle_keys

    def test_a_head_of_one_word_makes_none(self) -> None:
        bare = Cascade().fingerprint(page(FERRY, "", keywords=()))
        assert len(bare.keys) == DEFAULTS.sentence_keys + DEFAULTS.shingle_keys
        assert Cascade().fingerprint(page(FERRY, "渡口", keywords=("大桥",))).keys == bare.keys

    def test_the_order_of_title_words_makes_no_difference(self) -> None:
        one, other = (Cascade().fingerprint(page("", title)) for title in ("大桥 渡口 公路", "公路 大桥 渡口"))
        assert one.keys == other.keys != ()

    def test_the_same_words_in_title_and_keywords_make_two_keys(self) -> None:
        found = Cascade().fingerprint(page("", "大桥 渡口", keywords=("大桥", "渡口")))
        assert len(found.keys) == 2

    @pytest.mark.parametrize(("sentence_keys", "shingle_keys"), [(1, 1), (1, 6), (3, 1), (3, 20)])
    def test_their_number_is_that_of_the_parameters(self, sentence_keys: int, shingle_keys: int) -> None:
        method = Cascade(CascadeParameters(sentence_keys=sentence_keys, shingle_keys=shingle_keys))
        assert len(method.fingerprint(page(FERRY, "")).keys) == sentence_keys + shingle_keys

    def test_a_text_that_repeats_itself_has_the_keys_of_its_period(self) -> None:
        once, often = (Cascade().fingerprint(page("渡口的船今天又开了第二班是空的" * n, "")) for n in (3, 400))
        assert set(once.keys[-DEFAULTS.shingle_keys :]) == set(often.keys[-DEFAULTS.shingle_keys :])


def pair(dice: np.random.Generator, size: int, similarity: float) -> tuple[npt.NDArray[np.uint64], ...]:
    """Two sets of about that size and of exactly the similarity that their sizes allow."""
    both = round(2 * size * similarity / (1 + similarity))
    hashes = dice.integers(0, 2**64, 2 * size - both, np.uint64)
    return hashes[:size], hashes[size - both :]


class TestMinwise:
    @pytest.mark.parametrize("similarity", [0.0, 0.2, 0.5, 0.65, 0.8, 0.95, 1.0])
    @pytest.mark.parametrize("size", [50, 100, 300, 1000, 3000])
    def test_the_estimate_is_near_the_similarity_of_the_sets(self, size: int, similarity: float) -> None:
        dice = np.random.default_rng(size)
        for _ in range(10):
            one, other = pair(dice, size, similarity)
            exact = len(np.intersect1d(one, other)) / len(np.union1d(one, other))
            assert exact == pytest.approx(similarity, abs=0.02)
            assert jaccard(sketch(one, 512, 2), sketch(other, 512, 2), 2) == pytest.approx(exact, abs=0.1)

    @pytest.mark.parametrize("bits", [1, 2, 4, 8])
    def test_the_estimate_is_right_on_average(self, bits: int) -> None:
        dice = np.random.default_rng(17)
        errors = []
        for _ in range(200):
            one, other = pair(dice, int(dice.integers(50, 3000)), float(dice.uniform(0.3, 1)))
            exact = len(np.intersect1d(one, other)) / len(np.union1d(one, other))
            errors.append(jaccard(sketch(one, 512, bits), sketch(other, 512, bits), bits) - exact)
        assert len(errors) == 200
        assert abs(float(np.mean(errors))) < 0.02

    @pytest.mark.parametrize(("bins", "bits"), [(64, 1), (64, 8), (512, 2), (512, 4), (4096, 1), (4096, 8)])
    def test_its_size_is_that_of_its_parameters(self, bins: int, bits: int) -> None:
        for count in (0, 1, 7, 5000):
            hashes = np.random.default_rng(count).integers(0, 2**64, count, np.uint64)
            packed = sketch(hashes, bins, bits)
            assert len(packed) == bins * bits // 8
            assert jaccard(packed, packed, bits) == 1.0

    def test_neither_order_nor_repetition_makes_a_difference(self) -> None:
        hashes = np.random.default_rng(3).integers(0, 2**64, 400, np.uint64)
        again = np.concatenate((hashes[::-1], hashes[:100]))
        assert sketch(again, 512, 2) == sketch(hashes, 512, 2)

    def test_its_argument_is_left_alone(self) -> None:
        hashes = np.arange(1, 90, dtype=np.uint64)
        sketch(hashes, 512, 2)
        assert hashes.tolist() == list(range(1, 90))

    def test_an_empty_set_has_a_sketch_of_zeros(self) -> None:
        assert sketch(np.array([], np.uint64), 512, 2) == bytes(128)

    @given(st.binary(min_size=128, max_size=128), st.binary(min_size=128, max_size=128), st.sampled_from([1, 2, 4, 8]))
    def test_any_two_sketches_have_a_similarity_between_0_and_1(self, one: bytes, other: bytes, bits: int) -> None:
        found = jaccard(one, other, bits)
        assert 0.0 <= found <= 1.0
        assert found == jaccard(other, one, bits)


HALF_WORD = st.integers(0, 2**16 - 1)
WORD = st.integers(0, 2**32 - 1)


class TestLayout:
    @settings(deadline=None)
    @given(
        st.integers(0, 2**64 - 1),
        WORD,
        WORD,
        st.binary(max_size=64),
        st.dictionaries(WORD, st.integers(0, 255), max_size=255),
        st.frozensets(HALF_WORD, max_size=255),
        st.frozensets(HALF_WORD, max_size=255),
    )
    def test_what_is_packed_is_unpacked(
        self,
        body: int,
        title: int,
        count: int,
        minwise: bytes,
        sentences: dict[int, int],
        numbers: frozenset[int],
        words: frozenset[int],
    ) -> None:
        whole = _Sketch(body, title, count, minwise, sentences, numbers, words)
        packed = whole.pack()
        assert len(packed) == 19 + len(minwise) + 5 * len(sentences) + 2 * len(numbers) + 2 * len(words)
        assert _Sketch.unpack(packed, len(minwise)) == whole

    def test_the_bytes_are_those_that_are_written_down(self) -> None:
        whole = _Sketch(1, 2, 3, b"\xaa\xbb", {5: 60, 4: 50}, frozenset((8, 6)), frozenset((9,)))
        assert whole.pack().hex(" ", 1) == (
            "00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 03 02 02 01 aa bb "
            "00 00 00 05 00 00 00 04 3c 32 00 06 00 08 00 09"
        )

    def test_a_page_keeps_no_more_than_its_parameters_allow(self) -> None:
        text = "".join(f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时。" for n in range(100, 400))
        title = " ".join(f"word{n}" for n in range(40))
        few = CascadeParameters(max_sentences=1, max_numbers=2, max_title_words=3)
        for p in (DEFAULTS, few):
            whole = _Sketch.unpack(Cascade(p).fingerprint(page(text, title)).sketch, MINWISE)
            kept = len(whole.sentences), len(whole.numbers), len(whole.words)
            assert kept == (p.max_sentences, p.max_numbers, p.max_title_words)

    def test_a_sentence_longer_than_a_byte_can_say_is_kept(self) -> None:
        long = "船" * 300
        whole = _Sketch.unpack(Cascade().fingerprint(page(f"{long}。{FERRY}")).sketch, MINWISE)
        assert list(whole.sentences.values())[0] == 255  # noqa: RUF015  # the first one is the longest
        assert Cascade().shared(page(long), Cascade().fingerprint(page(long)).sketch) == (long,)
