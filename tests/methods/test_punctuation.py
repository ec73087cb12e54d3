"""What stands beside the marks, how it is weighed, and which edits it survives."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.methods.literature.punctuation import Punctuation, PunctuationParameters, text_beside_marks, thirds
from scrapy_neardup.model import Comparison, Page
from scrapy_neardup.text.normalize import normalize

TITLE = "新渡口清晨开航"
TEXT = (
    "河湾镇的新渡口清晨开航，第一班船载着乘客慢慢驶来。卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年！"
    "旧渡船去年沉了，两岸的人只能绕道铁桥。船票多少钱一张？老人和孩子不用买票，自行车也可以推上船。"
)


def judged(one: str, other: str, titles: tuple[str, str] = ("", ""), **parameters: Any) -> Comparison:
    method = Punctuation(PunctuationParameters(**parameters))
    a, b = (
        method.fingerprint(Page("http://river.example/", title, text=text))
        for title, text in zip(titles, (one, other), strict=True)
    )
    return method.compare(a, b.sketch, frozenset())


@pytest.mark.parametrize(
    ("text", "marks", "string"),
    [
        ("", 0, ""),
        ("新渡口开航", 0, ""),
        ("新渡口开航。", 1, "开航"),
        ("新渡口开航，第一班船", 1, "开航第一"),
        ("开航！船来了？", 2, "开航船来来了"),
        ("好，好，开航了", 2, "好好好开航"),
        ("开航！！！船来了", 3, "开航船来"),
        ("“开航，”他说：“走。”", 2, "开航他说说走"),
        ("开航；船来了：走、停", 0, ""),
        ("The ferry is back, they said today.", 2, "isbacktheysaidsaidtoday"),
        ("票价3.5元，在example.com买，一年1,200张。", 3, "5元在examplecom买一年200张"),
        ("It cost 3.5 million. Nobody paid", 1, "5millionnobodypaid"),
        ("等……船来了...走。", 1, "了走"),
        ("第1，2班", 0, ""),
        ("渡口，River Radio开播", 1, "渡口riverradio"),
    ],
)
def test_two_characters_or_words_stand_on_each_side_of_a_mark(text: str, marks: int, string: str) -> None:
    assert text_beside_marks(normalize(text)) == (marks, string)


@pytest.mark.parametrize(
    ("string", "expected"),
    [
        ("", []),
        ("开航", []),
        ("开航了", ["开", "航", "了"]),
        ("渡口开航", ["渡", "口", "开航"]),
        ("渡口开航船来", ["渡口", "开航", "船来"]),
    ],
)
def test_three_pieces_are_as_long_as_each_other(string: str, expected: list[str]) -> None:
    assert thirds(string) == expected


def changed(*pieces: int) -> str:
    """The text with another word beside a mark in these of its three pieces."""
    words = (("第一班", "第三班"), ("旧渡船", "老渡船"), ("自行车", "三轮车"))
    text = TEXT
    for piece in pieces:
        text = text.replace(*words[piece])
    return text


class TestWeights:
    #: The same title, the pieces that are changed -> the weight that is left.
    CASES = (
        (True, (), 4.5),
        (False, (), 3.0),
        (True, (0,), 3.5),
        (True, (1,), 3.5),
        (True, (2,), 3.5),
        (False, (1,), 2.0),
        (True, (0, 2), 2.5),
        (True, (0, 1, 2), 1.5),
        (False, (0, 1, 2), 0.0),
    )

    @pytest.mark.parametrize(("same", "pieces", "weight"), CASES)
    def test_a_title_weighs_three_halves_and_a_piece_one(
        self, same: bool, pieces: tuple[int, ...], weight: float
    ) -> None:
        other = changed(*pieces).replace("慢慢", "缓缓")  # for the same letters alone would be enough
        found = judged(TEXT, other, (TITLE, TITLE if same else "停航"))
        assert found.similarity == pytest.approx(weight / 4.5)
        assert found.duplicate == (weight >= 3)

    def test_the_threshold_may_be_another(self) -> None:
        one, other = TEXT, changed(0, 2)
        assert judged(one, other, (TITLE, TITLE), threshold=2.5).duplicate
        assert not judged(one, other, (TITLE, TITLE), threshold=2.6).duplicate

    def test_titles_agree_without_the_site_and_their_marks(self) -> None:
        found = judged(TEXT, changed(1), (f"{TITLE}_河湾网", "新渡口，清晨开航！"))
        assert found.similarity == pytest.approx(3.5 / 4.5)
        assert found.duplicate

    def test_empty_titles_do_not_agree(self) -> None:
        assert judged(TEXT, changed(1)).similarity == pytest.approx(2 / 4.5)
        assert judged(TEXT, changed(1), ("！", "。")).similarity == pytest.approx(2 / 4.5)

    def test_common_titles_and_pieces_weigh_nothing(self) -> None:
        method = Punctuation()
        one = method.fingerprint(Page("http://a.example/", TITLE, text=TEXT))
        other = method.fingerprint(Page("http://b.example/", TITLE, text=changed(1)))
        shared = keys_of(key for key in one.keys if key in other.keys)
        assert len(shared) == 3
        found = [method.compare(one, other.sketch, frozenset({key})) for key in shared]
        assert [round(each.similarity * 4.5, 9) for each in found] == [2.0, 2.5, 2.5]
        assert not any(each.duplicate for each in found)


class TestEdits:
    def test_words_away_from_the_marks_make_no_difference(self) -> None:
        other = TEXT.replace("载着乘客", "坐着客人").replace("等这条船", "盼这条船")
        found = judged(TEXT, other)
        assert found.similarity == pytest.approx(3 / 4.5)
        assert (found.duplicate, found.identical) == (True, False)

    def test_a_mark_more_moves_the_cuts(self) -> None:
        assert judged(TEXT, TEXT.replace("乘客慢慢", "乘客，慢悠悠"), (TITLE, TITLE)).similarity == pytest.approx(
            1.5 / 4.5
        )

    def test_pieces_agree_in_their_own_place_alone(self) -> None:
        one = "渡口，柳林。" * 12
        assert text_beside_marks(normalize(one))[1] != text_beside_marks(normalize(one * 2))[1]
        assert judged(one + "豆浆", one + one).similarity < 1


class TestFewMarks:
    def test_they_make_no_pieces(self) -> None:
        text, other = "旧渡船来了，乘客上岸。", "新渡船来了，乘客都上岸。"
        assert judged(text, other, min_marks=2).duplicate
        assert judged(text, other, min_marks=3).similarity == 0.0

    def test_an_exact_copy_is_found_under_any_title(self) -> None:
        method = Punctuation()
        one, other = (
            method.fingerprint(Page("http://a.example/", title, text="渡船停航")) for title in (TITLE, "停航")
        )
        assert set(one.keys) & set(other.keys)
        assert method.compare(one, other.sketch, frozenset()).duplicate

    def test_the_same_title_is_no_duplicate(self) -> None:
        found = judged("渡船停航", "渡船开航", (TITLE, TITLE))
        assert found.similarity == pytest.approx(1.5 / 4.5)
        assert not found.duplicate


@pytest.mark.parametrize("name", ["blake2b", "md5"])
def test_either_hash_will_do(name: str) -> None:
    assert judged(TEXT, changed(1), (TITLE, TITLE), hash=name).similarity == pytest.approx(3.5 / 4.5)


def test_the_hashes_have_keys_of_their_own() -> None:
    blake2b, md5 = (
        Punctuation(PunctuationParameters(hash=name)).fingerprint(Page("http://a.example/", TITLE, text=TEXT)).keys
        for name in ("blake2b", "md5")
    )
    assert (len(blake2b), len(md5), set(blake2b) & set(md5)) == (4, 4, set())
