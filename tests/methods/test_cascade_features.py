"""What the default method weighs: each feature, the score that they make, the rule that decides, the explanation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.methods.cascade.features import Features, compare
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.rules import score as weighted
from scrapy_neardup.methods.cascade.sketch import Sketch
from scrapy_neardup.model import Fingerprint, Kind
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.tokens import words
from tests.methods.cascade_pages import (
    BELL,
    DEFAULTS,
    FERRY,
    MILL,
    NONE,
    SECOND_FERRY,
    TITLE,
    explained,
    judged,
    page,
    replaced,
    scattered,
    unpacked,
    values,
)

WEIGHTS = {
    "similarity": 1.0,
    "form": -DEFAULTS.by_site,
    "gone": -2 * DEFAULTS.by_gone,
    "same_title": DEFAULTS.by_title,
    "reworded": DEFAULTS.by_reworded,
}

# One feature at a time, by sketches that differ in one part

ONE = unpacked(Cascade().fingerprint(page(FERRY)).sketch)
OTHER = unpacked(Cascade().fingerprint(page(scattered(FERRY, 0.66, 1))).sketch)
WORDS, OTHERS = frozenset({4, 8, 12}), frozenset({4, 16})


def features(one: Sketch, other: Sketch, common: frozenset[int] = NONE) -> Features:
    return compare(one, other, Fingerprint((), b""), common, DEFAULTS)


def score(one: Sketch, other: Sketch) -> float:
    return weighted(features(one, other), DEFAULTS)


def test_a_feature_moves_the_score_as_its_weight_says() -> None:
    unlike = bytes(255 - byte for byte in ONE.minwise)
    cases: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], float]] = [
        ("similarity", {}, {"minwise": unlike}, {"minwise": ONE.minwise}, 1.0),
        ("same_title", {"title": 7, "site": 7}, {"title": 8, "site": 7}, {"title": 7, "site": 7}, 1.0),
        ("same_title", {"title": 0}, {"title": 0}, {"title": 9}, 0.0),
        ("form", {"site": 7}, {"site": 9}, {"site": 7}, 1.0),
        ("form", {"site": 7}, {"site": 9}, {"site": 0}, 1.0),
        ("form", {"site": 0}, {"site": 0}, {"site": 9}, 0.0),
    ]
    for name, one, low, high, step in cases:
        new = replace(ONE, words=WORDS, **one)
        less, more = (replace(OTHER, **{"words": WORDS, **to}) for to in (low, high))
        assert getattr(features(new, more), name) - getattr(features(new, less), name) == pytest.approx(step)
        assert score(new, more) - score(new, less) == pytest.approx(step * WEIGHTS[name]), name


# The same by pages

HALF = replaced(FERRY, BELL, 4, 0)


def test_of_an_unknown_site_texts_and_titles_tell_a_form() -> None:
    for other, title, form in [
        # A part of the article: it is cut. As much of another text: it may be rewritten, or a form.
        (FERRY[: len(FERRY) * 2 // 3], "", 0.0),
        (HALF, "", 0.5),
        (HALF, "新渡口清晨正式开航", 0.5),
        # What speaks for a form: the same title again, another title, other numbers.
        (HALF, "新渡口清晨开航", 1.0),
        (HALF, "石坝小学", 1.0),
        (HALF, "新渡口清晨开航 7", 0.5),
    ]:
        new = page(FERRY, "新渡口清晨开航" if title else "")
        assert values(explained(new, page(other, title)))["form"] == form
        assert values(explained(page(FERRY, site="a.example"), page(other, title, site="b.example")))["form"] == 0.0


def test_a_lookalike_under_another_title_shows_that_common_text_may_be_a_template() -> None:
    method = Cascade()
    new, old = page(FERRY, ""), page(FERRY[: len(FERRY) * 2 // 3], "")
    fingerprint, sketch = method.fingerprint(new), method.fingerprint(old).sketch
    assert method.compare(fingerprint, sketch, NONE).duplicate
    assert not method.compare(replace(fingerprint, in_form=True), sketch, NONE).duplicate


def test_a_title_word_that_stands_in_one_text_alone_asks_for_more_similarity() -> None:
    mine, only = (
        next(word for word in words(normalize(one)) if word not in other and not word.isascii())
        for one, other in ((FERRY, HALF), (HALF, FERRY))
    )
    for title, other, gone in (
        ("渡口", "渡口", 0.0),
        ("小学", "山神", 0.0),
        (mine, "渡口", 0.5),
        (f"{mine} 渡口", "渡口 小学", 0.5),
        ("渡口", only, 0.5),
        (mine, only, 1.0),
    ):
        found = explained(page(FERRY, title), page(HALF, other))
        assert values(found)["gone"] == gone, (title, other)
    told = explained(page(FERRY, mine), page(HALF, only), least=0.0)
    assert "two notices" in told.decision


# The rule that decides


def test_background_under_another_title_and_opening_makes_a_follow_up_on_the_same_site() -> None:
    """Between sites the same is a copy with another beginning."""
    text = f"{FERRY}\n{SECOND_FERRY}"
    news = "\n".join([*BELL.split("\n")[:3], *text.split("\n")[3:]])
    one, old = page(news, "渡口和木匠", site="a.example"), page(text, site="a.example")
    assert not judged(one, old).duplicate
    assert judged(replace(one, site="b.example"), old).duplicate


def test_in_the_middle_band_the_score_is_held_against_the_base() -> None:
    for text in [FERRY, MILL]:
        for seed in range(5):
            one, other = page(scattered(text, 0.66, seed)), page(text)
            reached = explained(one, other).score
            assert 0.3 < reached < 0.8, f"seed {seed}"
            free: dict[str, Any] = {"certain": 1.0, "least": 0.0}
            assert judged(one, other, base=reached - 0.001, **free).duplicate, f"seed {seed}"
            assert not judged(one, other, base=reached + 0.001, **free).duplicate, f"seed {seed}"
            assert not judged(one, other, base=reached - 0.001, **free).certain, f"seed {seed}"


def test_below_the_least_similarity_no_score_makes_a_copy() -> None:
    one, other = page(HALF), page(FERRY)
    similarity = judged(one, other).similarity
    assert 0.3 < similarity < DEFAULTS.least
    assert judged(one, other, base=0.0, least=similarity).duplicate
    assert not judged(one, other, base=0.0, least=similarity + 0.001).duplicate


def test_texts_are_short_below_so_many_shingles() -> None:
    one, other = page(f"{SECOND_FERRY}\n河湾网"), page(SECOND_FERRY)
    length = int(values(explained(one, other))["length"])
    assert "one word" in explained(one, other, short=length + 1).decision
    assert "one word" not in explained(one, other, short=length).decision


def test_between_sites_an_earlier_page_must_contain_more_of_a_page_under_another_title() -> None:
    more = "\n".join([FERRY, *BELL.split("\n")[:4]])
    for title, copy in ((TITLE, True), ("石坝小学的铜钟", False)):
        assert judged(page(more, title, site="b.example"), page(FERRY, site="a.example")).duplicate is copy


# Explanations


def test_an_explanation_fits_the_verdict() -> None:
    text = SECOND_FERRY.split("\n")[0]
    for new, old, decision in [
        (page(FERRY), page(FERRY, "渡口"), "are identical"),
        (page(f"{text}\n编辑：小周"), page(text), "with the same numbers"),
        (page(text, "果农高兴"), page(text, "木匠造船"), "their titles differ"),
        (page(f"{text}共3人。"), page(f"{text}共5人。"), "Here the numbers differ"),
        (page(text), page(text.replace("孩子", "老人")), "the sentences differ"),
        (page(HALF), page(FERRY), "of the whole texts"),
        (page(scattered(FERRY, 0.9, 1)), page(FERRY), "reaches 0.52"),
        (page(scattered(FERRY, 0.55, 1), "渡口", site="a"), page(FERRY, "开航", site="a"), "is below 0.52"),
    ]:
        told, found = explained(new, old), judged(new, old)
        assert decision in told.decision, told
        assert {one.name: one.weight for one in told.features if one.weight} == pytest.approx(WEIGHTS)
        assert all(one.meaning for one in told.features)
        assert told.needed == DEFAULTS.base
        assert (told.score >= told.needed) is found.duplicate or "0.52" not in decision
        if found.kind is not Kind.IDENTICAL:
            assert (found.similarity, found.containment) == (values(told)["similarity"], values(told)["containment"])
        assert found.duplicate is (decision in ("are identical", "with the same numbers", "reaches 0.52"))
