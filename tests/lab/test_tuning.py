"""Pairs to be labelled, and what labels say: against populations of which the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from scrapy_neardup.lab.candidates import (
    Candidate,
    Stratum,
    draw_pairs,
    find_candidates,
    make_strata,
    make_thresholds,
)
from scrapy_neardup.lab.documents import Document, open_rows
from scrapy_neardup.lab.estimates import Answer, estimate_thresholds, group_answers
from scrapy_neardup.lab.exact import Alike, GramFile
from scrapy_neardup.lab.pairs import Pair
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Page
from scrapy_neardup.page.urls import site_of
from tests.lab.corpus import article, document, drafts

PAGE = Page("a", "渡口开航", ("渡口",), text=article(1, chinese=True))


@pytest.fixture(scope="module")
def found() -> list[Candidate]:
    documents = [
        Document(Page(one["url"], one["title"], text=one["text"], site=site_of(one["url"]))) for one in drafts()
    ]
    with open_rows(GramFile) as sets:
        return find_candidates(documents, sets, make_thresholds("cascade", {}), 40)


def test_sketches_are_shared_where_the_threshold_has_no_part_in_them() -> None:
    for name in METHODS:
        tried = make_thresholds(name, {})
        sketches = {method.fingerprint(PAGE).sketch for method in tried.methods}
        assert len(sketches) == 1 or not tried.share_sketches, name
        assert tried.share_sketches == (tried.parameter in make_method(name, {}).decisions())
        assert tried.value == getattr(make_method(name, {}).parameters, tried.parameter)
        lenient_first = [getattr(method.parameters, tried.parameter) for method in tried.methods]
        assert lenient_first == list(tried.values), name
        sweep = type(tried.methods[0]).sweep
        assert [value for value in tried.values if value in sweep] == list(sweep), name


def test_each_page_is_held_against_the_earlier_one_that_it_is_most_like(found: list[Candidate]) -> None:
    assert len(found) > 18
    assert all(one.alike.b == one.alike.a + 24 for one in found if one.alike.jaccard > 0.45)
    assert len({one.alike.b for one in found}) == len(found)
    assert {one.same_site for one in found} == {True, False}
    for one in found:
        assert list(one.copy) == sorted(one.copy, reverse=True)  # the stricter, the fewer
        assert one.alike.jaccard < 1 or all(one.copy)


def test_a_page_that_the_method_drops_is_a_candidate_however_unlike() -> None:
    """The first letter is the same, by which the one method goes, and nothing else."""
    texts = "甲" + "渡口今天早上开航，第一班船是空的。" * 3, "甲" + "面包师傅把烤炉卖给了两位姐妹，邻居很高兴。" * 3
    for name, expected in (("cascade", []), ("tests.lab.methods.First", [Alike(0, 1, 0.0, 0.0)])):
        with open_rows(GramFile) as sets:
            found = find_candidates(
                [document(*one) for one in zip("ab", texts, strict=True)], sets, make_thresholds(name, {}), 40
            )
        assert [one.alike for one in found] == expected
        assert [one.copy for one in found] == [(True, False)] * len(expected)


def test_strata_hold_every_candidate_once_and_a_seed_draws_the_same(found: list[Candidate]) -> None:
    tried = make_thresholds("cascade", {})
    parts = make_strata(found, tried)
    assert sorted(place for one in parts for place in one.pairs) == list(range(len(found)))
    assert len({one.name for one in parts}) == len(parts)
    for one in parts:
        assert {found[place].copy for place in one.pairs} == {one.copy}
        assert len({found[place].same_site for place in one.pairs}) == 1
    tried = make_thresholds("cascade", {})
    parts = make_strata(found, tried)
    first = draw_pairs(parts, tried, 18, seed=3)
    assert first == draw_pairs(parts, tried, 18, seed=3)
    assert first != draw_pairs(parts, tried, 18, seed=4)
    assert len(first) == 18 == len({place for place, _ in first})
    assert {one.name for _, one in first} == {one.name for one in parts}
    assert len(draw_pairs(parts, tried, 1000, seed=3)) == len(found)


VALUES = (0.4, 0.5, 0.6, 0.7)
NOW = 1
#: Stratum, how many values call it copies, its pages, and how many of them are copies.
POPULATIONS = {
    "sharp": [("no", 0, 400, 0), ("1", 1, 20, 2), ("2", 2, 30, 15), ("3", 3, 20, 18), ("yes", 4, 200, 200)],
    "vague": [("no", 0, 300, 60), ("1", 1, 40, 20), ("2", 2, 40, 20), ("3", 3, 40, 20), ("yes", 4, 150, 120)],
}


def population(name: str) -> tuple[list[Stratum], list[np.ndarray[Any, np.dtype[np.bool_]]]]:
    made = POPULATIONS[name]
    parts = [Stratum(own, tuple(at < yes for at in range(4)), tuple(range(size))) for own, yes, size, _ in made]
    return parts, [np.arange(size) < copies for _, _, size, copies in made]


def labelled(
    parts: Sequence[Stratum], truth: Sequence[np.ndarray[Any, np.dtype[np.bool_]]], each: int, seed: int
) -> dict[str, list[Answer]]:
    random = np.random.default_rng(seed)
    return {
        part.name: [Answer(bool(copy), part.size / each) for copy in random.choice(copies, each, replace=False)]
        for part, copies in zip(parts, truth, strict=True)
    }


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("each", [3, 12])
def test_estimates_are_right_on_average_and_intervals_hold_the_truth(name: str, each: int) -> None:
    parts, truth = population(name)
    copies = np.array([one.sum() for one in truth])
    sizes = np.array([one.size for one in parts])
    called = np.array([one.copy for one in parts]).T
    wrong, missed = called @ (sizes - copies), ~called @ copies
    runs = 120
    found = [
        estimate_thresholds(parts, labelled(parts, truth, each, seed), VALUES, NOW).estimates for seed in range(runs)
    ]
    for at in range(len(VALUES)):
        assert found[0][at].called == sizes[called[at]].sum()
        for figure, true in (("wrong", wrong[at]), ("missed", missed[at])):
            figures = [getattr(run[at], figure) for run in found]
            assert all(one.low - 1e-9 <= one.estimate <= one.high + 1e-9 for one in figures)
            held = sum(one.low - 1e-9 <= true <= one.high + 1e-9 for one in figures)
            assert held >= 0.9 * runs, (figure, VALUES[at], held)
        for figure, true in (("wrong", wrong[at]), ("missed", missed[at])):
            estimates = np.array([getattr(run[at], figure).estimate for run in found])
            error = estimates.std() / np.sqrt(runs)
            assert abs(estimates.mean() - true) <= 4 * error + 1e-9


def test_complete_labels_give_exact_errors_and_the_best_value() -> None:
    parts, truth = population("sharp")
    all_of_it = {
        part.name: [Answer(bool(copy), 1.0) for copy in copies] for part, copies in zip(parts, truth, strict=True)
    }
    outlook = estimate_thresholds(parts, all_of_it, VALUES, NOW)
    wrong = [one.wrong for one in outlook.estimates]
    assert [(one.low, one.estimate, one.high) for one in wrong] == [(35, 35, 35), (17, 17, 17), (2, 2, 2), (0, 0, 0)]
    assert [one.missed.estimate for one in outlook.estimates] == [0, 2, 17, 35]
    assert VALUES[outlook.chosen] == 0.5  # 0.5 and 0.6 cost 19 each: of equals the nearer
    assert outlook.estimates[1].best == outlook.estimates[2].best == 0.5
    assert outlook.better == 0
    assert VALUES[estimate_thresholds(parts, all_of_it, VALUES, NOW, cost=3).chosen] == 0.6
    assert VALUES[estimate_thresholds(parts, all_of_it, VALUES, NOW, cost=100).chosen] == 0.7


def test_a_few_labels_are_not_enough_to_compare_values() -> None:
    parts, truth = population("sharp")
    assert not estimate_thresholds(parts, {}, VALUES, NOW).enough
    two = {part.name: [Answer(copy=True, weight=1.0)] * 2 for part in parts[:1]}
    assert not estimate_thresholds(parts, two, VALUES, NOW).enough
    many = estimate_thresholds(parts, labelled(parts, truth, 12, 1), VALUES, NOW)
    assert (many.enough, many.deciding) == (True, 12 * sum(len(set(one.copy)) > 1 for one in parts))
    of_one = labelled(parts, truth, 12, 1)
    smallest = min((one for one in parts if len(set(one.copy)) > 1), key=lambda one: one.size)
    alone = estimate_thresholds(parts, {smallest.name: of_one[smallest.name]}, VALUES, NOW)
    assert (alone.deciding, alone.enough) == (12, False)


def test_few_labels_are_enough_and_none_says_anything() -> None:
    part = [Stratum("2", (True, True, False, False), (1, 2, 3))]
    outlook = estimate_thresholds(part, {"2": [Answer(copy=True, weight=1.0)] * 3}, VALUES, NOW)
    assert (outlook.enough, outlook.safe) == (True, 1.0)
    part = [Stratum("2", (True, True, False, False), tuple(range(10)))]
    wrong = estimate_thresholds(part, {"2": [Answer(copy=False, weight=10.0)]}, VALUES, NOW).estimates[0].wrong
    assert (wrong.estimate, wrong.high) == (10, 10)
    assert 1 <= wrong.low < 5
    parts, truth = population("sharp")
    answers = labelled(parts, truth, 3, 1)
    del answers["no"]
    for one in estimate_thresholds(parts, answers, VALUES, NOW).estimates:
        assert one.missed.high >= 400
        assert one.missed.estimate >= 200
    nothing = estimate_thresholds(parts, {}, VALUES, NOW).estimates[0]
    assert (nothing.wrong.low, nothing.wrong.estimate, nothing.wrong.high) == (0, 135, 270)


def test_each_label_counts_for_its_share_of_the_stratum() -> None:
    labels = [
        Pair(a, "z", stratum=stratum, stratum_size=size, answer=answer)
        for a, stratum, size, answer in (
            ("p", "near", 6, "copy"),
            ("q", "near", 6, "different"),
            ("r", "near", 6, "skip"),
            ("s", "far", 50, "copy"),
        )
    ]
    where = {("p", "z"): "now here", ("r", "z"): "now here", ("s", "z"): "now here"}
    assert group_answers(labels, where) == {"now here": [Answer(True, 3.0), Answer(True, 50.0)]}
    where = {("q", "z"): "there"}
    assert group_answers(labels, where) == {"there": [Answer(False, 3.0)]}
