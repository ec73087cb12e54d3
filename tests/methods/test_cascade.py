"""The default method: copies and other pages, kinds, and the keys that find pages."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.model import Kind, Page
from tests.methods.cascade_pages import (
    ADDED,
    BELL,
    DEFAULTS,
    FERRY,
    FORM,
    LIGHTHOUSE,
    MILL,
    SECOND_FERRY,
    TITLE,
    common_keys,
    exact_jaccard,
    judged,
    page,
    respelled,
)

OTHER_TITLE = "等了十一年，船来了"


@pytest.mark.parametrize("title", [OTHER_TITLE, "", "河湾镇", "Ferry", "2024年的7件大事"])
@pytest.mark.parametrize("text", [FERRY, SECOND_FERRY, LIGHTHOUSE, "今天风大，渡船停航一天。"])
def test_the_same_letters_under_another_title_are_a_duplicate(text: str, title: str) -> None:
    original = page(text, site="a.example")
    copy = page(text.replace("，", " ,\n"), title, site="b.example")
    found = judged(copy, original)
    assert (found.duplicate, found.certain, found.identical, found.similarity) == (True, True, False, 1.0)
    assert found.kind is Kind.IDENTICAL
    assert common_keys(copy, original)


@pytest.mark.parametrize("share", [0.005, 0.01, 0.02, 0.03])
@pytest.mark.parametrize("text", [FERRY, BELL])
def test_a_copy_with_some_characters_changed_is_a_duplicate_and_found(text: str, share: float) -> None:
    for seed in range(20):
        copy, original = page(respelled(text, share, seed), site="a.example"), page(text, site="b.example")
        found = judged(copy, original)
        assert (found.duplicate, found.identical) == (True, False), (seed, found)
        assert common_keys(copy, original), seed


def test_a_translation_of_release_notes_is_no_copy_as_checksums_are_no_text() -> None:
    rng = random.Random(5)
    files = "\n".join(f"SHA512 ({kind}): {rng.randbytes(64).hex()}" for kind in ("gz", "xz", "zip"))
    texts = (
        "2.7 修好了渡船的锁，开航之前会敲钟。许多人帮助了我们，在此致谢。",
        "2.7 mends the lock of the ferry. Thank you!",
    )
    one, other = (page(f"{text}\n{files}", "River 2.7", site="a.example") for text in texts)
    assert not judged(other, one).duplicate


@settings(deadline=None, max_examples=40)
@given(st.permutations(FERRY.split("\n")))
def test_a_copy_with_its_paragraphs_in_another_order_is_a_duplicate(paragraphs: list[str]) -> None:
    copy = page("\n".join(paragraphs), OTHER_TITLE)
    assert judged(copy, page(FERRY)).duplicate
    assert len(common_keys(copy, page(FERRY))) >= 3


def test_a_copy_with_a_paragraph_more_or_less_is_a_duplicate() -> None:
    for more in (f"{FERRY}\n{ADDED}", f"{ADDED}\n{FERRY}", FERRY.replace("\n", f"\n{ADDED}\n", 1)):
        found = judged(page(more, OTHER_TITLE), page(FERRY))
        assert found.duplicate
        assert found.similarity < found.containment
        assert found.containment > 0.97
    for text in (FERRY, BELL, MILL):
        paragraphs = text.split("\n")
        for left_out in range(len(paragraphs)):
            less = "\n".join(paragraphs[:left_out] + paragraphs[left_out + 1 :])
            assert judged(page(less), page(text)).duplicate, (text[:9], left_out)


def test_another_article_with_the_same_head_is_no_copy() -> None:
    for text in [SECOND_FERRY, BELL, LIGHTHOUSE, MILL, ADDED]:
        head: dict[str, Any] = {"keywords": ("渡口", "开航"), "description": "新渡口清晨开航了"}
        one, other = page(FERRY, **head), page(text, **head)
        assert common_keys(one, other), text
        found = judged(one, other)
        assert not found.duplicate, text
        assert found.similarity < 0.15, text
        for title in (f"{TITLE}_河湾网", "新渡口，清晨开航！"):
            assert judged(page(text, title), page(FERRY)).kind is Kind.SAME_TITLE
        assert judged(page(text, OTHER_TITLE), page(FERRY)).kind is None
        assert judged(page(text, "港口工具库 - 排班"), page(FERRY, "港口工具库 - 计费")).kind is None


MAKERS = "晨光电器", "北岭车业", "云溪家居用品"
PRODUCTS = "电热水壶", "儿童自行车", "折叠梯"
FAULTS = (
    ("底座温控开关的触点不耐高温", "水烧干之后可能不断电", "更换底座"),
    ("前叉与车架的焊缝没有熔合", "受到颠簸时可能断裂", "加固前叉"),
    ("锁扣的弹簧在低温下失去弹性", "踩上去时可能突然合拢", "更换锁扣"),
)


def filled_in(dice: random.Random, which: int) -> tuple[str, str]:
    """The title and text of a recall, with figures drawn by chance."""
    fault, harm, remedy = FAULTS[which]
    count = f"{dice.randrange(2000, 60000)}件"
    text = FORM.format(
        maker=MAKERS[which],
        product=PRODUCTS[which],
        count=count,
        fault=fault,
        harm=harm,
        remedy=remedy,
        date=f"{dice.randrange(1, 13)}月{dice.randrange(1, 29)}日",
        phone=f"400-{dice.randrange(100, 1000)}-{dice.randrange(1000, 10000)}",
    )
    return f"{MAKERS[which]}召回{count}{PRODUCTS[which]}", text


def test_a_form_filled_in_for_another_product_is_no_copy_and_reported_twice_it_is_one() -> None:
    for seed in range(30):
        dice = random.Random(seed)
        (title, text), (other_title, other) = (filled_in(dice, which) for which in dice.sample(range(len(MAKERS)), 2))
        assert exact_jaccard(text, other) > 0.5, f"seed {seed}"
        assert not judged(page(text, title), page(other, other_title)).duplicate, f"seed {seed}"
        assert judged(page(text + ADDED, "召回"), page(text, title)).duplicate, f"seed {seed}"


def test_an_edited_copy_is_near_and_under_another_title_retitled() -> None:
    for text in [FERRY, BELL, MILL]:
        for seed in range(5):
            copy = respelled(text, 0.015, seed)
            original = page(text, "新渡口清晨正式开航", site="a.example")
            for title, kind in (
                ("新渡口清晨正式开航", Kind.NEAR),
                ("新渡口清晨正式开航了", Kind.NEAR),
                ("", Kind.NEAR),
                ("柳林村的果农高兴", Kind.RETITLED),
                ("Arrow Brook", Kind.RETITLED),
            ):
                found = judged(page(copy, title, site="b.example"), original)
                assert (found.duplicate, found.kind) == (True, kind), (seed, title)


def test_of_two_short_pages_from_html_neither_is_an_excerpt() -> None:
    """Each has more or less text around it."""
    line = SECOND_FERRY.split("\n")[0]
    for reader, kind in (("", Kind.EXCERPT), ("prose", None)):
        assert judged(page(line, "", reader=reader), page(SECOND_FERRY, "", reader=reader)).kind is kind


def test_a_third_of_an_article_is_an_excerpt_and_a_strange_notice_is_not() -> None:
    for text in [FERRY, BELL, MILL]:
        paragraphs = text.split("\n")
        length = len(paragraphs) // 3
        for start in range(0, len(paragraphs) - length + 1, 2):
            third = "\n".join(paragraphs[start : start + length])
            for title in (TITLE, OTHER_TITLE, ""):
                for new, old in ((page(third, title), page(text)), (page(text), page(third, title))):
                    found = judged(new, old)
                    assert (found.duplicate, found.kind) == (False, Kind.EXCERPT), text
        strange = "今天风大，渡船停航一天。", "Lost: a grey parrot, answers to Admiral."
        assert [judged(page(own, OTHER_TITLE), page(text)).kind for own in strange] == [None, None]


def test_different_titles_and_none_at_all_are_never_the_same_title() -> None:
    for one, other in (
        ("渡口 第 3 期", "渡口 第 4 期"),
        ("渡口开航", "渡口停航"),
        ("渡口开航", "柳林渡口开航"),
        ("The ferry", "The ferries"),
        ("渡口旧闻（上）", "渡口旧闻（下）"),
        ("大桥 甲", "大桥 乙"),
        *((none, same) for none in ("", " ", "！！！", "🚢") for same in (none, TITLE)),
    ):
        assert judged(page(BELL, one), page(FERRY, other)).kind is None, (one, other)


def keys(one: Page, **parameters: Any) -> tuple[int, ...]:
    return Cascade(CascadeParameters(**parameters)).fingerprint(one).keys


def test_a_page_has_keys_of_its_head_its_longest_sentences_and_its_shingles() -> None:
    bare, head = keys(page(FERRY, "")), {"keywords": ("渡口", "大桥"), "description": "河湾开航，柳林通船"}
    assert len(bare) == DEFAULTS.sentence_keys + DEFAULTS.shingle_keys
    assert keys(page(FERRY, "渡口", keywords=("大桥",))) == bare, "a head makes a key if it has two words"
    title, about = keys(page("", "新渡口大桥开航")), keys(page("", "", **head))
    assert len(title) == len(about) == 1
    assert keys(page(FERRY, "新渡口大桥开航", **head)) == (*title, *about, *bare)
    assert keys(page("", "大桥 渡口 公路")) == keys(page("", "公路 大桥 渡口")) != keys(page("", "公路 大桥"))
    for sentence_keys, shingle_keys in ((1, 1), (3, 20), (12, 1)):
        found = keys(page(FERRY, ""), sentence_keys=sentence_keys, shingle_keys=shingle_keys)
        assert len(found) == sentence_keys + shingle_keys
    half = FERRY[: len(FERRY) // 2]
    both = {*keys(page(half, "")), *bare[-DEFAULTS.shingle_keys :]}
    assert {*keys(page(FERRY, "", main=half, reader="article"))} == both, "the article's, and the shingles around it"
    once, often = (keys(page("渡口的船今天又开了第二班是空的" * n, ""))[-4:] for n in (3, 400))
    assert once == often, "a text that repeats itself"


def test_shingles_of_a_text_with_spaces_between_its_words_have_a_length_of_their_own() -> None:
    for text, length, other in [(FERRY, "", "_spaced"), (MILL, "_spaced", "")]:
        usual = keys(page(text))
        assert keys(page(text), **{f"key_shingle{other}": 17}) == usual
        assert not set(keys(page(text), **{f"key_shingle{length}": 17})[-4:]) & set(usual)


def test_shared_sentences_are_quoted_as_the_page_has_them() -> None:
    sketch = Cascade().fingerprint(page(FERRY)).sketch
    longest = FERRY.split("\n")[2].rstrip("。")
    assert Cascade().shared(page(f"{BELL}\n{longest}！"), sketch) == (longest,)
    assert Cascade().shared(page(FERRY), sketch, 1) == (longest,)
    assert Cascade().shared(page(BELL), sketch) == ()
