"""The profile of frequent words: its order, and how its length is rounded."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.methods.literature.term_profile import TermProfile, TermProfileParameters, term_profile
from scrapy_neardup.model import Comparison, Page

WORDS = [
    "渡船",
    "缆绳",
    "豆浆",
    "铁桥",
    "乘客",
    "行李",
    "柳树",
    "石头",
    "甲板",
    "船长",
    "码头",
    "长凳",
    "灯塔",
    "水手",
    "船票",
]
#: Each word once more often than the next: 15 times the first, once the last.
TEXT = "。".join(f"{word}，" * (15 - place) for place, word in enumerate(WORDS))


def page(text: str) -> Page:
    return Page("http://river.example/", text=text)


def judged(one: str, other: str, **parameters: Any) -> Comparison:
    method = TermProfile(TermProfileParameters(**parameters))
    return method.compare(method.fingerprint(page(one)), method.fingerprint(page(other)).sketch, frozenset())


@pytest.mark.parametrize(
    ("different", "percentage", "interval", "expected"),
    [
        (100, 0.5, 10, 50),
        (109, 0.5, 10, 50),
        (99, 0.5, 10, 40),
        (100, 0.29, 1, 29),
        (10, 0.7, 1, 7),
        (30, 0.1, 1, 3),
        (19, 0.5, 10, 0),
        (20, 0.5, 10, 10),
        (15, 1.0, 4, 12),
        (0, 1.0, 1, 0),
    ],
)
def test_the_number_of_words_is_rounded_down_to_the_interval(
    different: int, percentage: float, interval: int, expected: int
) -> None:
    counts = {f"word{number}": 1 for number in range(different)}
    assert len(term_profile(counts, percentage, interval)) == expected


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        (1, ["渡船"]),
        (2, ["豆浆", "渡船"]),
        (3, ["铁桥", "豆浆", "渡船"]),
        (4, ["铁桥", "豆浆", "缆绳", "渡船"]),
        (5, ["铁桥", "豆浆", "缆绳", "渡船", "停航"]),
    ],
)
def test_the_frequent_come_first_then_the_last_in_order_of_characters(take: int, expected: list[str]) -> None:
    counts = {"停航": 1, "缆绳": 1, "豆浆": 2, "渡船": 3, "铁桥": 1}
    assert term_profile(counts, take / 5, 1) == expected


def test_the_key_is_the_md5_of_the_profile() -> None:
    profile = " ".join(sorted(WORDS[:10], reverse=True))
    expected = md5(profile.encode()).digest()[:8]
    found = TermProfile(TermProfileParameters(percentage=0.7, sum_interval=5)).fingerprint(page(TEXT))
    assert found.keys == (int.from_bytes(expected, "big"),)
    assert found.sketch.endswith(expected)


def test_rare_words_more_or_less_make_no_difference() -> None:
    parameters = {"percentage": 0.7, "sum_interval": 5}
    for other in (f"{TEXT}，海豚", TEXT.replace("船票", "海豚")):
        found = judged(TEXT, other, **parameters)
        assert (found.similarity, found.duplicate, found.identical) == (1.0, True, False)


def test_frequent_ones_do() -> None:
    found = judged(TEXT, TEXT.replace("缆绳", "海豚"), percentage=0.7, sum_interval=5)
    assert (found.similarity, found.duplicate) == (0.0, False)


def test_stop_words_are_not_counted(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {"percentage": 0.7, "sum_interval": 5}
    assert judged(TEXT, TEXT + "，的，了，我们，因为" * 20, **parameters).duplicate
    (tmp_path / "stop.txt").write_text("海豚\n", encoding="utf-8")
    parameters["stop_words"] = str(tmp_path / "stop.txt")
    assert judged(TEXT, TEXT + "，海豚" * 20, **parameters).duplicate
    assert not judged(TEXT, TEXT + "，我们" * 20, **parameters).duplicate


def test_pages_of_too_few_words_are_not_all_the_same() -> None:
    found = judged("渡船今天停航", "柿子树下的嫁接比赛")
    assert (found.similarity, found.duplicate) == (0.0, False)
    assert judged("渡船今天停航", "渡船，今天停航！").duplicate
