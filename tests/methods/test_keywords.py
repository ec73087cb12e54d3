"""The rules of parts 1 and 3 for pages with the same frequent words, on counts that can be checked by hand."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.literature.keywords import Keywords, KeywordsParameters, weight_difference
from scrapy_neardup.model import Comparison, Page

PUBLISHED = "a7eb9d92a83cf438881915e0bc2df70b"


def text(**counts: int) -> str:
    """Each word as often as that, and stop words between them, which make no difference."""
    return "。".join("的".join([f"，{word}，"] * times) for word, times in counts.items())


ARTICLE = text(网页=12, 搜索=10, 引擎=7)
SWAPPED = text(网页=10, 搜索=12, 引擎=7)
LIGHTER = text(网页=12, 搜索=10, 引擎=2)


def page(body: str, description: str = "") -> Page:
    return Page("http://river.example/", "", (), description, body)


def judged(one: str | Page, other: str | Page, **parameters: Any) -> Comparison:
    method = Keywords(KeywordsParameters(**parameters))
    a, b = (method.fingerprint(page(each) if isinstance(each, str) else each) for each in (one, other))
    assert bool(set(a.keys) & set(b.keys)) or not method.compare(a, b.sketch, frozenset()).duplicate
    return method.compare(a, b.sketch, frozenset())


def keys(body: str, **parameters: Any) -> tuple[int, ...]:
    return Keywords(KeywordsParameters(**parameters)).fingerprint(page(body)).keys


def test_the_published_example_has_the_published_fingerprint() -> None:
    assert md5("网页12搜索10引擎7\n".encode("gbk")).hexdigest() == PUBLISHED
    assert keys(ARTICLE, rule="frequent", n=3) == (int(PUBLISHED[:16], 16),)


@pytest.mark.parametrize(
    ("rule", "string"), [("ordered", "网页 搜索 引擎"), ("set", "引擎 搜索 网页"), ("set_weights", "引擎 搜索 网页")]
)
def test_the_other_rules_hash_the_words_alone(rule: str, string: str) -> None:
    assert keys(ARTICLE, rule=rule, n=3) == (OPEN.md5(string.encode()),)


#: Rule -> whether it takes the swapped and the lighter page for the article's one, with alpha = 0.04. The squares of
#: the weights' differences by the sums of squares: 8 / 586 = 0.014 for the one, for the other 0.048 as is found below.
VERDICTS = {
    "frequent": (False, False),
    "ordered": (False, True),
    "set": (True, True),
    "ordered_weights": (False, False),
    "set_weights": (True, False),
    "frequent,ordered": (False, True),
    "ordered,set_weights": (True, True),
    "any": (True, True),
}


@pytest.mark.parametrize(("rule", "expected"), VERDICTS.items(), ids=VERDICTS)
def test_each_rule_takes_what_it_says(rule: str, expected: tuple[bool, bool]) -> None:
    found = tuple(judged(ARTICLE, other, rule=rule, n=3, alpha=0.04).duplicate for other in (SWAPPED, LIGHTER))
    assert found == expected


@pytest.mark.parametrize("rule", VERDICTS)
def test_every_rule_takes_the_same_words_in_another_order_of_the_text(rule: str) -> None:
    other = text(引擎=7, 网页=12, 搜索=10)
    found = judged(page(ARTICLE, "船"), page(other, "河"), rule=rule, n=3)
    assert (found.similarity, found.duplicate) == (1.0, True)


class TestWeights:
    def test_they_are_shares_of_all_words(self) -> None:
        assert judged(text(网页=12, 搜索=10), text(网页=6, 搜索=5), n=2, alpha=0.001).similarity == pytest.approx(1.0)
        assert judged(text(网页=12, 搜索=10), text(网页=12, 搜索=10, 渡船=9), n=2).similarity < 0.98

    def test_the_similarity_is_how_near_they_are(self) -> None:
        assert judged(ARTICLE, SWAPPED, n=3).similarity == pytest.approx(1 - 8 / 586)
        a, b = [12 / 29, 10 / 29, 7 / 29], [12 / 24, 10 / 24, 2 / 24]
        expected = sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) / sum(x * x for x in a + b)
        assert expected == pytest.approx(0.0482, abs=0.0001)
        assert judged(ARTICLE, LIGHTER, n=3).similarity == pytest.approx(1 - expected)

    def test_the_difference_must_be_below_alpha(self) -> None:
        assert judged(ARTICLE, SWAPPED, n=3, alpha=0.0137).duplicate
        assert not judged(ARTICLE, SWAPPED, n=3, alpha=0.0136).duplicate

    def test_without_an_equal_hash_they_say_nothing(self) -> None:
        found = judged(text(网页=12, 搜索=10), text(渡船=12, 缆绳=10), n=2, alpha=1.0)
        assert (found.similarity, found.duplicate) == (0.0, False)

    def test_vectors_at_right_angles_differ_by_one(self) -> None:
        assert weight_difference([1.0, 0.0], [0.0, 2.0]) == 1.0


class TestKeywords:
    def test_stop_words_are_none(self) -> None:
        assert keys("的的的的，我们，渡船，渡船，缆绳", rule="set", n=2) == (OPEN.md5("渡船 缆绳".encode()),)

    def test_those_of_a_file_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "stop.txt").write_text("渡船\n", encoding="utf-8")
        found = keys("的，的，渡船，渡船，缆绳", rule="ordered", n=2, stop_words=str(tmp_path / "stop.txt"))
        assert found == (OPEN.md5("的 缆绳".encode()),)

    def test_equally_frequent_words_go_by_their_characters(self) -> None:
        assert keys("缆绳，渡船，豆浆", rule="ordered", n=2) == (OPEN.md5("渡船 缆绳".encode()),)

    def test_a_page_may_have_fewer(self) -> None:
        assert keys("渡船，缆绳", n=10) == (OPEN.md5("渡船 缆绳".encode()),)

    def test_a_page_without_any_has_no_hash(self) -> None:
        found = judged("的，了，和，是", "在，也，就，都", rule="any", n=3)
        assert (found.similarity, found.duplicate) == (0.0, False)

    def test_the_more_are_asked_for_the_fewer_pages_agree(self) -> None:
        one, other = text(网页=12, 搜索=10, 引擎=7, 渡船=2), text(网页=12, 搜索=10, 引擎=7, 缆绳=2)
        assert [judged(one, other, n=n).duplicate for n in (2, 3, 4, 5)] == [True, True, False, False]


class TestDescriptions:
    def test_equal_ones_are_enough(self) -> None:
        one, other = page(ARTICLE, "新渡口清晨开航。"), page("渡船，缆绳", "新渡口，清晨开航！")
        assert judged(one, other, rule="description").duplicate
        assert not judged(one, page(SWAPPED, "停航"), rule="description").duplicate

    def test_without_one_the_first_512_bytes_are_compared(self) -> None:
        opening = "".join(chr(0x4E00 + number) for number in range(171))  # 513 bytes
        assert judged(f"{opening}渡船", f"{opening}缆绳。停航", rule="description").duplicate
        assert not judged(f"{opening[:169]}渡船", f"{opening[:169]}缆绳", rule="description").duplicate

    def test_a_description_is_not_compared_with_a_text(self) -> None:
        assert not judged(page(ARTICLE, "新渡口清晨开航"), page(ARTICLE + "船"), rule="description").duplicate

    def test_it_may_be_short_and_is_never_cut(self) -> None:
        long = "渡" * 300
        assert not judged(page("网页", f"{long}船"), page("搜索", f"{long}口"), rule="description").duplicate


def test_a_page_is_filed_by_the_rules_asked_for_alone() -> None:
    assert len(keys(ARTICLE, rule="any", n=3)) == 4
    assert len(keys(ARTICLE, rule="set,set_weights", n=3)) == 1
    assert keys(ARTICLE, rule="ordered_weights", n=3) == keys(ARTICLE, rule="ordered", n=3)


@pytest.mark.parametrize("rule", ["", "sets", "set;ordered", "set,"])
def test_an_unknown_rule_is_refused_with_those_there_are(rule: str) -> None:
    with pytest.raises(
        SettingsError, match="keywords: rule must be one or more of frequent, description, ordered, set"
    ):
        KeywordsParameters(rule=rule)
