"""What the default method weighs: each feature, the score that they make, the rule that decides, the explanation."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scrapy_neardup.methods.cascade.features import Features, compare
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.rules import score as weighted
from scrapy_neardup.methods.cascade.sketch import Numbers, Sketch
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Likeness, Page
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.tokens import words
from tests.methods.cascade_pages import (
    BELL,
    DEFAULTS,
    FERRY,
    LIGHTHOUSE,
    MILL,
    NONE,
    SECOND_FERRY,
    TITLE,
    explained,
    judged,
    page,
    replaced,
    respelled,
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
    "numbers": -DEFAULTS.by_numbers,
}

# One feature at a time, by sketches that differ in one part

ONE = unpacked(Cascade().fingerprint(page(FERRY)).sketch)
OTHER = unpacked(Cascade().fingerprint(page(scattered(FERRY, 0.66, 1))).sketch)
#: The lowest bit says that a title word is a number.
WORDS, OTHERS, NUMBERS = frozenset({4, 8, 12}), frozenset({4, 16}), frozenset({13, 17, 21})


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
        ("form", {"site": 7}, {"site": 9}, {"site": 0, "words": OTHERS}, 1.0),
        ("form", {"site": 0}, {"site": 0}, {"site": 9}, 0.0),
    ]
    for name, one, low, high, step in cases:
        new = replace(ONE, words=WORDS, **one)
        less, more = (replace(OTHER, **{"words": WORDS, **to}) for to in (low, high))
        assert getattr(features(new, more), name) - getattr(features(new, less), name) == pytest.approx(step)
        assert score(new, more) - score(new, less) == pytest.approx(step * WEIGHTS[name]), name


def test_numbers_that_differ_weigh_less_in_a_longer_text() -> None:
    for one, other, length, expected in [
        ({11, 13}, {11, 13}, 150, 0.0),
        ({11, 13}, {11, 13, 15, 17}, 150, 0.0),
        ({11, 13}, {15, 17}, 150, 1.0),
        ({11, 13}, {11, 17}, 200, 0.5),
        ({11, 13}, {15, 17}, 200, 1.0),
        ({11, 13}, {15, 17}, 400, 0.5),
        ({11, 13}, set(), 150, 0.0),
        (set(), {11, 13}, 150, 0.0),
        (set(), set(), 150, 0.0),
    ]:
        new = replace(ONE, numbers=Numbers(frozenset(one)), shingles=length, whole=length)
        for shorter in (length, length // 2):
            old = replace(OTHER, numbers=Numbers(frozenset(other)), shingles=shorter, whole=shorter)
            assert features(new, old).numbers == features(old, new).numbers == pytest.approx(expected)
            same = replace(old, numbers=new.numbers)
            assert score(new, old) - score(new, same) == pytest.approx(-DEFAULTS.by_numbers * expected)


def test_the_share_of_sentences_is_without_those_under_common_keys() -> None:
    for one, other, common, expected in [
        ({1, 2}, {1, 2}, (), 1.0),
        ({1, 2}, {1}, (), 1.0),
        ({1, 2}, {1, 3}, (), 0.5),
        ({1, 2, 3}, {1, 4, 5, 6}, (), 1 / 3),
        ({1, 2}, {3}, (), 0.0),
        ({1}, set(), (), 0.0),
        ({1, 2}, {1, 2}, (1,), 1.0),
        ({1, 2}, {1, 3}, (1,), 0.0),
        ({1, 2}, {1, 3}, (2**40 + 1,), 0.0),
        ({1}, {1}, (1,), 0.0),
        ({1}, {1}, (7,), 1.0),
    ]:
        new, old = replace(ONE, sentences=frozenset(one)), replace(OTHER, sentences=frozenset(other))
        for there, back in ((new, old), (old, new)):
            assert features(there, back, common=frozenset(common)).sentences == pytest.approx(expected)


def test_titles_are_compared_by_words_or_as_a_whole() -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], float]] = [
        ({"words": WORDS}, {"words": WORDS}, 1.0),
        ({"words": WORDS}, {"words": OTHERS}, 1 / 4),
        ({"words": WORDS}, {"words": NUMBERS}, 0.0),
        ({"words": WORDS, "title": 1}, {"words": NONE, "title": 0}, 0.5),
        ({"words": NONE, "title": 0}, {"words": NONE, "title": 0}, 0.5),
        ({"words": NONE, "title": 5}, {"words": NONE, "title": 5}, 1.0),
        ({"words": NONE, "title": 5}, {"words": WORDS, "title": 6}, 0.0),
    ]
    for one, other, expected in cases:
        new, old = replace(ONE, **one), replace(OTHER, **other)
        assert features(new, old).title == features(old, new).title == pytest.approx(expected), (one, other)


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


def test_an_opening_is_alike_if_a_sentence_of_it_stands_anywhere_in_the_other_page() -> None:
    for one, other, alike in [
        ((1, 2, 3, 4, 5, 6), (9, 8, 6), True),
        ((1, 2, 3, 4, 5, 6), (9, 8, 7, 1), True),
        ((1, 2, 3, 4, 5, 6), (9, 8, 7, 4, 5), False),
        ((), (), False),
    ]:
        new, old = (replace(ONE, order=some, ends=frozenset(some)) for some in (one, other))
        assert new.opens_like(old) is old.opens_like(new) is alike


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


# Explanations

#: Each decision by words of its sentence, with what it says of the comparison.
DECISIONS: dict[str, Callable[[Explanation, Comparison], bool]] = {
    "are identical": lambda e, c: c.likeness is Likeness.IDENTICAL and c.certain,
    "with the same numbers": lambda e, c: c.duplicate and c.certain and values(e)["length"] < DEFAULTS.short,
    "their titles differ": lambda e, c: not c.duplicate and values(e)["length"] < DEFAULTS.short,
    "Here the numbers differ": lambda e, c: not c.duplicate and values(e)["length"] < DEFAULTS.short,
    "a title word is missing": lambda e, c: not c.duplicate and values(e)["gone"] > 0,
    "the sentences differ": lambda e, c: not c.duplicate and values(e)["length"] < DEFAULTS.short,
    "of the whole texts": lambda e, c: not c.duplicate and values(e)["whole"] < DEFAULTS.least,
    "reaches 0.52": lambda e, c: c.duplicate and e.score >= e.needed,
    "two notices": lambda e, c: not c.duplicate and values(e)["gone"] == 1.0,
    "the openings differ": lambda e, c: not c.duplicate and values(e)["similarity"] < DEFAULTS.certain,
    "two things": lambda e, c: not c.duplicate and values(e)["other_name"] == 1.0,
    "The earlier page contains": lambda e, c: not (c.duplicate or c.certain or c.same_site),
    "is below 0.52": lambda e, c: not c.duplicate and e.score < e.needed,
}


def fits(told: Explanation, found: Comparison) -> str:
    """The decision of an explanation that is right in itself, and says what the comparison says."""
    by_name = {feature.name: feature.weight for feature in told.features}
    assert {name: weight for name, weight in by_name.items() if weight} == pytest.approx(WEIGHTS)
    assert all(feature.meaning for feature in told.features)
    assert told.score == pytest.approx(sum(feature.value * feature.weight for feature in told.features))
    assert told.needed == DEFAULTS.base
    assert all(0.0 <= feature.value <= 1.0 for feature in told.features if feature.name != "length")
    if found.likeness is not Likeness.IDENTICAL:
        shown = values(told)
        assert (found.similarity, found.containment) == (shown["similarity"], shown["containment"])
    (decision,) = (words for words in DECISIONS if words in told.decision)
    assert DECISIONS[decision](told, found), told
    return decision


def some_word(text: str) -> str:
    """One that says what this text is about, and not another one."""
    return max(words(normalize(text)), key=lambda word: (len(word), word))


def some_pages(seed: int) -> tuple[Page, Page]:
    """Two pages; one is made of the other, more or less."""
    dice = random.Random(seed)
    text, other = dice.sample([FERRY, BELL, MILL, SECOND_FERRY, LIGHTHOUSE], 2)
    if dice.random() < 0.25:
        text = text.split("\n")[dice.randrange(4)]
    new = dice.choice(
        [
            text,
            respelled(text, dice.choice([0.01, 0.03, 0.06, 0.1]), seed),
            respelled(text, dice.choice([0.03, 0.06, 0.1]), seed),
            f"{text}\n{other[: dice.choice([8, 30, 200])]}",
            "\n".join([*text.split("\n")[1:], *other.split("\n")[: dice.randrange(4)]]) or other,
        ]
    )
    titles = dice.sample([TITLE, "渡口 第 3 期", "渡口 第 4 期", "", "An old mill", *map(some_word, (text, new))], 2)
    sites = [dice.choice(["", "a.example", "b.example"]) for _ in range(2)]
    return page(new, dice.choice(titles), site=sites[0]), page(text, titles[0], site=sites[1])


def test_an_explanation_fits_the_verdict() -> None:
    one, other = page(HALF), page(FERRY)
    assert "of the whole texts" in fits(explained(one, other), judged(one, other))


@pytest.mark.slow
def test_every_decision_is_met_and_fits_the_verdict() -> None:
    pairs = [some_pages(seed) for seed in range(250)]
    assert {fits(explained(one, other), judged(one, other)) for one, other in pairs} == set(DECISIONS)
