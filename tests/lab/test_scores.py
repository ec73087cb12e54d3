"""Figures by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from scrapy_neardup.lab.scores import Score, score

# Of ten duplicates seven are dropped, of 400 different documents three: precision 7 of 10, recall 7 of 10.
COUNTS = Counter(
    {
        ("pos", True): 7,
        ("pos", False): 3,
        ("neg", True): 3,
        ("neg", False): 397,
        ("repost", True): 4,
        ("repost", False): 1,
        ("template", True): 2,
        ("template", False): 6,
        ("grey", True): 50,
        ("grey", False): 20,
        ("skip", True): 5,
        ("skip", False): 2,
    }
)


def made(counts: dict[tuple[str, bool], int], seconds: float = 0.0, size: int = 0) -> Score:
    return score(counts, method="first", parameters={"letters": 5}, seconds=seconds, size=size)


def test_a_score_by_hand() -> None:
    assert made(COUNTS, seconds=1.5, size=50_000).as_dict() == {
        "method": "first",
        "parameters": {"letters": 5},
        "documents": 500,
        "missed": 3,
        "pos": 10,
        "false_drops": 3,
        "neg": 400,
        "false_per_10k": 75.0,
        "precision": 0.7,
        "recall": 0.7,
        "f1": 0.7,
        "reposts_dropped": 4,
        "reposts": 5,
        "templates_dropped": 2,
        "templates": 8,
        "ms_per_page": 3.0,
        "bytes_per_page": 100.0,
    }


@pytest.mark.parametrize(
    ("found", "pos", "false", "precision", "recall", "f1"),
    [
        (10, 10, 0, 1.0, 1.0, 1.0),
        (5, 10, 0, 1.0, 0.5, 2 / 3),
        (5, 5, 5, 0.5, 1.0, 2 / 3),
        (1, 4, 3, 0.25, 0.25, 0.25),
        (0, 10, 0, 1.0, 0.0, 0.0),
        (0, 10, 2, 0.0, 0.0, 0.0),
        (0, 0, 0, 1.0, 1.0, 0.0),
        (0, 0, 1, 0.0, 1.0, 0.0),
    ],
)
def test_precision_recall_and_f1(found: int, pos: int, false: int, precision: float, recall: float, f1: float) -> None:
    counts = {("pos", True): found, ("pos", False): pos - found, ("neg", True): false, ("neg", False): 20 - false}
    one = made(counts)
    assert (one.precision, one.recall, one.f1) == pytest.approx((precision, recall, f1))
    assert one.false_per_10k == 500 * false


def test_nothing_at_all_is_no_error() -> None:
    nothing = made({})
    assert (nothing.documents, nothing.false_per_10k, nothing.ms_per_page, nothing.bytes_per_page) == (0, 0, 0, 0)
