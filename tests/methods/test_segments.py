"""Segments: where each rule cuts, and which edits the cuts survive."""

from __future__ import annotations

from typing import Any

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keys import keys_of
from scrapy_neardup.methods.literature.segments import Segments, SegmentsParameters, equal_pieces, longest_pieces
from scrapy_neardup.model import Comparison, Page

PARAGRAPHS = [
    "河湾镇的新渡口星期六清晨正式开航，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来。",
    "卖豆浆的老周把摊子推到岸边，说自己等这条船等了十一年，今天的豆浆一碗也不收钱，喝完把碗放回来就行。",
    "旧渡船是用杉木造的，去年春天的大水冲断了缆绳，船撞在石墩上沉了下去，两岸的人从此只能绕道上游的铁桥。",
    "新船由镇上的船厂自己造，龙骨用了三根老樟木，船长说再大的水也不怕，只怕下雾，雾里要敲钟，一分钟敲三下。",
    "船票两元一张，老人和孩子不用买票，自行车和担子也可以推上船，装了活猪活鸭的要等最后一班，免得弄脏了甲板。",
]
ADDED = "本报记者昨天下午到码头上走了一走，看见候船室的墙刚刚刷过，长凳还没有干，门口已经排了十几个人。"


def page(text: str) -> Page:
    return Page("http://river.example/", text=text)


def judged(one: str, other: str, common: int = 0, **parameters: Any) -> Comparison:
    """Compared when the first ``common`` keys of both are on many originals."""
    method = Segments(SegmentsParameters(**parameters))
    a, b = method.fingerprint(page(one)), method.fingerprint(page(other))
    both = [key for key in a.keys if key in b.keys]
    return method.compare(a, b.sketch, frozenset(keys_of(both[:common])))


@pytest.mark.parametrize(
    ("text", "count", "at_least", "expected"),
    [
        ("", 3, 1, []),
        ("船", 3, 1, ["船"]),
        ("船来", 3, 1, ["船", "来"]),
        ("新渡口开航", 2, 1, ["新渡", "口开航"]),
        ("新渡口开航了", 3, 1, ["新渡", "口开", "航了"]),
        ("新渡口开航了", 3, 2, ["新渡", "口开", "航了"]),
        ("新渡口开航了", 3, 3, ["新渡口", "开航了"]),
        ("新渡口开航了", 3, 4, ["新渡口开航了"]),
    ],
)
def test_equal_pieces_are_as_long_as_each_other(text: str, count: int, at_least: int, expected: list[str]) -> None:
    assert equal_pieces(text, count, at_least) == expected


@pytest.mark.parametrize(
    ("paragraphs", "count", "at_least", "expected"),
    [
        ([], 3, 2, []),
        (["", ""], 3, 2, []),
        (["船"], 3, 2, ["船"]),
        (["船", "来", "了", "我们走"], 3, 2, ["了我们走", "船来"]),
        (["船来了", "走"], 3, 2, ["船来了"]),
        (["船来了", "我们", "渡口开航"], 2, 2, ["渡口开航", "船来了"]),
        (["船来了", "开航了"], 1, 2, ["开航了"]),
    ],
)
def test_small_paragraphs_are_joined_and_the_longest_kept(
    paragraphs: list[str], count: int, at_least: int, expected: list[str]
) -> None:
    assert longest_pieces(paragraphs, count, at_least) == expected


class TestParagraphs:
    TEXT = "\n".join(PARAGRAPHS[:4])

    @pytest.mark.parametrize("place", range(4))
    def test_one_edited_of_four_is_still_a_copy(self, place: int) -> None:
        edited = "\n".join(
            [*PARAGRAPHS[:place], PARAGRAPHS[place].replace("，", "也，", 1), *PARAGRAPHS[place + 1 : 4]]
        )
        found = judged(self.TEXT, edited)
        assert (found.similarity, found.duplicate, found.certain) == (0.75, True, True)

    def test_two_edited_are_too_many_unless_fewer_must_be_equal(self) -> None:
        edited = self.TEXT.replace("清晨", "早晨").replace("杉木", "松木")
        assert not judged(self.TEXT, edited).duplicate
        assert judged(self.TEXT, edited, equal=2).duplicate

    @pytest.mark.parametrize("place", [0, 2, 4])
    def test_one_added_anywhere_is_still_a_copy(self, place: int) -> None:
        longer = "\n".join([*PARAGRAPHS[:place], ADDED, *PARAGRAPHS[place:4]])
        assert judged(self.TEXT, longer, segments=5).similarity == 0.8
        assert judged(self.TEXT, longer, segments=5).duplicate

    def test_their_order_makes_no_difference(self) -> None:
        assert judged(self.TEXT, "\n".join(reversed(PARAGRAPHS[:4]))).similarity == 1.0

    @pytest.mark.parametrize("end", ["\n责任编辑：周明", "\n\n（完）\n记者 田禾"])
    def test_a_short_end_is_left_out(self, end: str) -> None:
        found = judged(self.TEXT, self.TEXT + end)
        assert (found.similarity, found.identical) == (1.0, False)

    def test_line_ends_of_any_kind_are_ends(self) -> None:
        assert judged(self.TEXT, self.TEXT.replace("\n", "\r\n\n\u3000\u3000") + "！\n也").similarity == 1.0


class TestLength:
    TEXT = "\n".join(PARAGRAPHS)

    def test_a_character_exchanged_is_one_piece_changed(self) -> None:
        assert judged(self.TEXT, self.TEXT.replace("杉木", "松木"), cut="length").similarity == 0.75
        assert judged(self.TEXT, self.TEXT.replace("杉木", "松木"), cut="length").duplicate

    def test_a_word_inserted_moves_the_cuts(self) -> None:
        inserted = self.TEXT.replace("正式", "终于正式")
        assert judged(self.TEXT, inserted, cut="length").similarity == 0.0
        assert judged(self.TEXT, inserted, cut="paragraphs").duplicate

    def test_line_ends_make_no_difference(self) -> None:
        other = "".join(PARAGRAPHS) + "\n完"
        assert judged(self.TEXT + "完", other, cut="length").identical


class TestFewPieces:
    def test_fewer_than_must_be_equal_must_all_be(self) -> None:
        two = "\n".join(PARAGRAPHS[:2])
        assert judged(two, f"{two}\n完").duplicate
        assert not judged(two, f"{PARAGRAPHS[0]}\n{PARAGRAPHS[2]}").duplicate

    def test_all_means_all_of_the_page_that_has_more(self) -> None:
        found = judged("\n".join(PARAGRAPHS[:2]), "\n".join(PARAGRAPHS[:4]))
        assert (found.similarity, found.duplicate) == (0.5, False)

    def test_a_page_in_one_line_is_one_piece(self) -> None:
        line = "".join(PARAGRAPHS)
        assert len(Segments().fingerprint(page(line)).keys) == 1
        assert not judged(line, line + "完").duplicate

    def test_the_same_piece_twice_counts_once(self) -> None:
        assert len(Segments().fingerprint(page("\n".join([PARAGRAPHS[0]] * 4))).keys) == 1

    def test_pages_without_letters_have_nothing_in_common_but_that(self) -> None:
        assert judged("。。。", "！").similarity == 1.0
        assert judged("。。。", PARAGRAPHS[0]).similarity == 0.0


class TestCommonPieces:
    ONE, OTHER = "\n".join(PARAGRAPHS[:4]), "\n".join([*PARAGRAPHS[:3], ADDED])

    def test_they_count_for_neither(self) -> None:
        assert judged(self.ONE, self.OTHER).duplicate
        found = judged(self.ONE, self.OTHER, common=1)
        assert found.similarity == pytest.approx(2 / 3)
        assert not found.duplicate

    def test_where_all_are_common_none_is_left(self) -> None:
        found = judged(self.ONE, self.ONE + "\n完", common=4)
        assert (found.similarity, found.duplicate) == (0.0, False)


def test_more_equal_pieces_than_there_are_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"segments: equal must be at most segments \(2\), not 3\."):
        SegmentsParameters(segments=2)
