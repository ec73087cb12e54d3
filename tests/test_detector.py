"""The detector: candidates, common keys, witnesses, pages that are still on their way."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

from scrapy_neardup.detector import Detector, Ruling
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Kind, Page
from scrapy_neardup.stores import Store, close_store, open_store

WORDS = re.findall(
    r"\w+",
    """
    渔港 灯塔 修缮 志愿 老人 图书 阅览 夜间 开放 河道 清淤 水位 上涨 茶园 采摘 工人 合作 价格 稳定 列车 停靠 站台 乘客
    学校 食堂 菜单 学生 投票 球场 草坪 更换 比赛 推迟 博物馆 陶罐 出土 年代 专家 意见 桥面 铺装 车辆 绕行 公告 市民 反映
""",
)


def story(seed: int, sentences: int = 16) -> list[str]:
    """Sentences of an article that has nothing to do with that of another seed."""
    chance = random.Random(seed)
    return ["".join(chance.choices(WORDS, k=12)) + f"{chance.randint(100, 999)}。" for _ in range(sentences)]


def page(name: str, sentences: list[str], title: str = "", canonical: str = "") -> Page:
    return Page(f"http://{name}.example/", title or name, text="".join(sentences), canonical=canonical)


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:", {})
    yield opened
    close_store(opened)


@pytest.fixture
def detector(store: Store) -> Detector:
    return Detector(make_method("cascade", {}), store, min_letters=40, who="test")


def judged(detector: Detector, wanted: Page) -> Ruling:
    """The ruling on a page whose item comes through."""
    ruling = detector.check(wanted)
    if ruling.reservation is not None:
        detector.commit(ruling.reservation, sealed=True)
    assert ruling.verdict is not None
    return ruling


def kind(detector: Detector, wanted: Page) -> Kind:
    verdict = judged(detector, wanted).verdict
    assert verdict is not None
    return verdict.kind


def test_a_copy_names_its_original_and_a_sentence_that_both_share(detector: Detector) -> None:
    text = story(1)
    judged(detector, page("first", text))
    verdict = judged(detector, page("second", [*text[1:], "本站转载。"])).verdict
    assert verdict is not None
    assert verdict.match is not None
    assert (verdict.kind, verdict.match.url) == (Kind.DUPLICATE, "http://first.example/")
    assert verdict.match.similarity > 0.85
    assert set(verdict.match.shared) <= {sentence.rstrip("。") for sentence in text}
    assert len(verdict.match.shared) == 3


def test_a_sentence_that_many_originals_share_is_no_evidence_and_its_postings_stop_growing(
    detector: Detector, store: Store
) -> None:
    disclaimer = (
        "本文仅代表作者个人观点与本站立场无关转载请注明出处如有侵权请在三十日内与编辑部联系我们将及时处理" * 2 + "。"
    )
    key = make_method("cascade", {}).fingerprint(Page("", text=disclaimer)).keys[0]
    for number in range(METHODS["cascade"].common + 20):
        assert kind(detector, page(f"site{number}", [*story(100 + number), disclaimer])) is Kind.UNIQUE
    assert len(store.postings(key, 1000)) == METHODS["cascade"].common


def test_a_copy_of_a_copy_is_found_through_its_witness_and_named_a_copy_of_the_original(detector: Detector) -> None:
    text, other = story(1, 40), story(2, 40)
    judged(detector, page("first", text, "标题甲"))
    second = judged(detector, page("second", text[:34] + other[:4], "标题甲")).verdict
    third = judged(detector, page("third", text[3:32] + other[:6], "标题乙")).verdict
    assert second is not None
    assert third is not None
    assert second.match is not None
    assert second.match.similarity < 0.9
    assert (third.kind, third.match and third.match.url) == (Kind.DUPLICATE, "http://first.example/")
    assert second.similar_id == third.similar_id


def test_a_page_found_through_a_witness_is_no_witness(detector: Detector, store: Store) -> None:
    text, other = story(1, 40), story(2, 40)
    judged(detector, page("first", text, "标题甲"))
    judged(detector, page("second", text[:34] + other[:4], "标题甲"))
    judged(detector, page("third", text[3:32] + other[:6], "标题乙"))
    second, third = store.find("http://second.example/"), store.find("http://third.example/")
    assert second is not None
    assert third is not None
    assert second.sketch
    assert not third.sketch


def test_a_witness_counts_only_while_its_original_is_there(detector: Detector, store: Store) -> None:
    text, other = story(1, 40), story(2, 40)
    first = judged(detector, page("first", text, "标题甲")).verdict
    judged(detector, page("second", text[:34] + other[:4], "标题甲"))
    assert first is not None
    detector.withdraw(first.id)
    assert kind(detector, page("third", text[3:32] + other[:6], "标题乙")) is Kind.UNIQUE


def test_the_canonical_link_proposes_a_candidate_and_the_text_decides(detector: Detector) -> None:
    method = make_method("cascade", {"shingle_keys": 1, "sentence_keys": 1, "core_words": 1})
    poor = Detector(method, open_store("memory:", {}), min_letters=40, who="test")
    text = story(1, 12)
    judged(poor, page("first", text))
    # Every sentence is touched, so that the poor keys miss the page, though its shingles are much the same.
    touched = [sentence[:14] + "的" + sentence[14:] for sentence in text]
    named = page("second", touched, "first", canonical="http://first.example/")
    assert not set(method.fingerprint(named).keys) & set(method.fingerprint(page("first", text)).keys)
    assert kind(poor, named) is Kind.DUPLICATE
    assert kind(poor, page("third", story(9), canonical="http://first.example/")) is Kind.UNIQUE


def test_a_near_duplicate_of_a_page_on_its_way_is_told_to_wait_for_it(detector: Detector) -> None:
    text = story(1)
    first = detector.check(page("first", text)).reservation
    assert first is not None
    assert detector.check(page("second", text)).blocker is first
    assert detector.check(page("first", text)).blocker is first
    told: list[bool] = []
    first.when_settled(lambda: told.append(True))
    detector.release(first)
    assert told == [True]
    assert kind(detector, page("second", text)) is Kind.UNIQUE
    assert kind(detector, page("first", text)) is Kind.DUPLICATE


def test_two_detectors_on_one_store_see_each_others_pages_on_their_way(detector: Detector, store: Store) -> None:
    other = Detector(make_method("cascade", {}), store, min_letters=40, who="other")
    first = detector.check(page("first", story(1))).reservation
    assert first is not None
    assert other.check(page("second", story(1))).blocker is first


def test_the_same_url_is_unchanged_or_updated_and_never_its_own_duplicate(detector: Detector, store: Store) -> None:
    text = story(1)
    assert kind(detector, page("first", text, "标题")) is Kind.UNIQUE
    assert kind(detector, page("first", text, "标题")) is Kind.UNCHANGED
    assert kind(detector, page("first", [*text, "更正一处。"], "标题")) is Kind.UPDATED
    assert kind(detector, page("first", [*text, "更正一处。"], "新的标题")) is Kind.UPDATED
    assert store.pages == 1
    assert kind(detector, page("second", [*text, "更正一处。"])) is Kind.DUPLICATE
    assert kind(detector, page("second", [*text, "更正一处。"])) is Kind.DUPLICATE
    assert store.pages == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "no_text"), (" \n ", "no_text"), ("一张照片。", "too_short"), ("首页\n新闻\n" * 40, "too_short")],
)
def test_a_page_with_too_little_prose_is_not_judged(detector: Detector, text: str, reason: str) -> None:
    for _ in range(2):
        verdict = detector.check(Page("http://a.example/", text=text)).verdict
        assert verdict is not None
        assert (verdict.kind, verdict.reason) == (Kind.UNJUDGED, reason)


def test_an_original_that_became_a_copy_keeps_its_place_for_those_that_stand_on_it(
    detector: Detector, store: Store
) -> None:
    judged(detector, page("first", story(1)))
    judged(detector, page("second", story(2)))
    judged(detector, page("third", story(2)))
    assert kind(detector, page("second", story(1))) is Kind.DUPLICATE
    verdict = judged(detector, page("fourth", story(2))).verdict
    assert verdict is not None
    assert verdict.match is not None
    assert verdict.match.url == "http://second.example/"


def test_a_page_with_too_little_text_passes_again_only_if_its_html_has_changed(
    detector: Detector, store: Store
) -> None:
    def gallery(html: int, name: str = "a") -> Page:
        return Page(f"http://{name}.example/", "渔港", text="一张照片。", html=html)

    assert kind(detector, gallery(1)) is Kind.UNJUDGED
    assert kind(detector, gallery(1)) is Kind.UNCHANGED
    assert kind(detector, gallery(2)) is Kind.UNJUDGED
    assert kind(detector, gallery(2)) is Kind.UNCHANGED
    assert kind(detector, gallery(2, "b")) is Kind.UNJUDGED
    assert kind(detector, page("a", story(1))) is Kind.UNIQUE
    assert store.pages == 2


def test_a_page_that_cannot_be_judged_does_not_take_the_place_of_its_own_text(detector: Detector, store: Store) -> None:
    assert kind(detector, page("a", story(1))) is Kind.UNIQUE
    assert kind(detector, Page("http://a.example/", html=7)) is Kind.UNJUDGED
    assert kind(detector, page("a", story(1))) is Kind.UNCHANGED
    assert store.pages == 1


def test_an_unjudged_page_whose_item_is_lost_is_not_seen(detector: Detector) -> None:
    gallery = Page("http://a.example/", html=7)
    first = detector.check(gallery).reservation
    assert first is not None
    assert detector.check(gallery).blocker is first
    detector.release(first)
    assert kind(detector, gallery) is Kind.UNJUDGED
