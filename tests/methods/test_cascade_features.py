"""What the default method weighs: each feature, the score that they make, the rule that decides, the explanation."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.methods.cascade import Cascade
from scrapy_neardup.methods.cascade_features import Features, compare
from scrapy_neardup.methods.cascade_sketch import Sketch
from scrapy_neardup.model import Comparison, Explanation, Fingerprint, Likeness, Page
from scrapy_neardup.text.normalize import normalize
from scrapy_neardup.text.tokens import vocabulary
from tests.methods.cascade_pages import (
    BELL,
    DEFAULTS,
    EXACT,
    FERRY,
    LIGHTHOUSE,
    MILL,
    NONE,
    SECOND_FERRY,
    TITLE,
    exact_jaccard,
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
    "title": DEFAULTS.by_title,
    "title_numbers": -DEFAULTS.by_title_numbers,
    "vocabulary": -DEFAULTS.by_vocabulary,
    "numbers": -DEFAULTS.by_numbers,
    "site": -DEFAULTS.by_site,
}
#: What is shown beside the score.
SHOWN = {"containment", "whole", "whole_containment", "sentences", "left", "length"}

# One feature at a time, by sketches that differ in one part

ONE = unpacked(Cascade().fingerprint(page(FERRY)).sketch)
OTHER = unpacked(Cascade().fingerprint(page(scattered(FERRY, 0.66, 1))).sketch)
INVERTED = bytes(255 - byte for byte in ONE.vocabulary)
#: The lowest bit says that a title word is a number.
WORDS, NUMBERS = frozenset({2, 4, 6, 8}), frozenset({11, 13, 15})


def features(one: Sketch, other: Sketch, whole: bytes = b"", common: frozenset[int] = NONE) -> Features:
    return compare(one, other, whole, common, DEFAULTS.bits, DEFAULTS.vocabulary_bits)


def score(one: Sketch, other: Sketch) -> float:
    return Cascade().explain(Fingerprint((), one.pack()), other.pack(), NONE).score


@pytest.mark.parametrize(
    ("name", "one", "low", "high", "step"),
    [
        ("similarity", {}, {"minwise": bytes(255 - byte for byte in ONE.minwise)}, {"minwise": ONE.minwise}, 1.0),
        ("title", {"words": WORDS}, {"words": NUMBERS - {13}}, {"words": WORDS}, 1.0),
        ("title", {"words": WORDS}, {"words": frozenset({10, 12})}, {"words": frozenset()}, 0.5),
        ("title", {"words": WORDS}, {"words": frozenset({2, 4, 10, 12})}, {"words": frozenset({2, 4})}, 1 / 6),
        (
            "title_numbers",
            {"words": frozenset({2, 5})},
            {"words": frozenset({2, 6})},
            {"words": frozenset({2, 7})},
            1.0,
        ),
        ("vocabulary", {}, {"vocabulary": INVERTED}, {"vocabulary": ONE.vocabulary}, 1.0),
        ("site", {"site": 7}, {"site": 9}, {"site": 7}, 1.0),
        ("site", {"site": 7}, {"site": 9}, {"site": 0}, 0.5),
        ("site", {"site": 0}, {"site": 0}, {"site": 9}, 0.0),
    ],
)
def test_a_feature_moves_the_score_as_its_weight_says(
    name: str, one: dict[str, Any], low: dict[str, Any], high: dict[str, Any], step: float
) -> None:
    new, less, more = replace(ONE, **one), replace(OTHER, **low), replace(OTHER, **high)
    assert getattr(features(new, more), name) - getattr(features(new, less), name) == pytest.approx(step)
    assert score(new, more) - score(new, less) == pytest.approx(step * WEIGHTS[name])


@pytest.mark.parametrize(
    ("one", "other", "length", "expected"),
    [
        ({11, 13}, {11, 13}, 150, 0.0),
        ({11, 13}, {11, 13, 15, 17}, 150, 0.0),
        ({11, 13}, {15, 17}, 150, 1.0),
        ({11, 13}, {11, 17}, 200, 0.5),
        ({11, 13}, {15, 17}, 200, 1.0),
        ({11, 13}, {15, 17}, 400, 0.5),
        ({11, 13}, {15, 17, 11}, 2000, 0.05),
        ({11, 13}, set(), 150, 0.0),
        (set(), {11, 13}, 150, 0.0),
        (set(), set(), 150, 0.0),
    ],
)
def test_numbers_that_differ_weigh_less_in_a_long_text(
    one: set[int], other: set[int], length: int, expected: float
) -> None:
    new = replace(ONE, numbers=frozenset(one), shingles=length, whole=length)
    for shorter in (length, length // 2):
        old = replace(OTHER, numbers=frozenset(other), shingles=shorter, whole=shorter)
        assert features(new, old).numbers == features(old, new).numbers == pytest.approx(expected)
        same = replace(old, numbers=new.numbers)
        assert score(new, old) - score(new, same) == pytest.approx(-DEFAULTS.by_numbers * expected)
    assert features(new, old).same_numbers == (one == other)


@pytest.mark.parametrize(
    ("one", "other", "common", "expected"),
    [
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
    ],
)
def test_the_share_of_sentences_is_without_those_under_common_keys(
    one: set[int], other: set[int], common: tuple[int, ...], expected: float
) -> None:
    new, old = replace(ONE, sentences=frozenset(one)), replace(OTHER, sentences=frozenset(other))
    for there, back in ((new, old), (old, new)):
        assert features(there, back, common=frozenset(common)).sentences == pytest.approx(expected)


@pytest.mark.parametrize("sizes", [{}, EXACT])
def test_the_similarity_of_vocabularies_is_estimated(sizes: dict[str, Any]) -> None:
    errors = []
    texts = [FERRY, BELL, SECOND_FERRY, f"{FERRY}\n{SECOND_FERRY}", MILL, LIGHTHOUSE, f"{MILL}\n{LIGHTHOUSE}"]
    for one, other in combinations(texts, 2):
        a, b = ({*found[0].tolist(), *found[1]} for found in map(vocabulary, map(normalize, (one, other))))
        errors.append(values(explained(page(one), page(other), **sizes))["vocabulary"] - len(a & b) / len(a | b))
    assert max(map(abs, errors)) < (0.06 if sizes else 0.2)
    assert abs(sum(errors) / len(errors)) < 0.05


# The same by pages

HALF = replaced(FERRY, BELL, 4, 0)


def test_the_same_title_words_make_up_for_similarity() -> None:
    one, other = page(FERRY, "渡口清晨开航"), page(HALF, "渡口清晨开航")
    strange = replace(other, title="柳林果农高兴")
    same, none, missing = (explained(one, old).score for old in (other, strange, replace(other, title="")))
    assert same - none == pytest.approx(DEFAULTS.by_title)
    assert missing - none == pytest.approx(DEFAULTS.by_title / 2)


def test_titles_with_other_numbers_ask_for_more_similarity() -> None:
    one = page(FERRY, "渡口 第 3 期")
    third, fourth, none = (explained(one, page(HALF, title)) for title in ("渡口 3 期", "渡口 4 期", "渡口 期"))
    assert [values(found)["title_numbers"] for found in (third, fourth, none)] == [0.0, 1.0, 0.0]
    assert third.score - fourth.score == pytest.approx(
        DEFAULTS.by_title_numbers + DEFAULTS.by_title * (values(third)["title"] - values(fourth)["title"])
    )


def test_other_numbers_ask_for_more_similarity() -> None:
    text = "昨天的集市上来了{}位果农，卖掉梨子{}公斤，收入{}元，摊位从桥头一直摆到候船室门口。\n"
    figures = text.format(217, 8400, 33600), text.format(184, 6150, 24600)
    one = page(figures[0] + SECOND_FERRY)
    same, other = explained(page(figures[0] + SECOND_FERRY[:-30]), one), explained(page(figures[1] + SECOND_FERRY), one)
    assert values(same)["numbers"] == 0.0
    assert values(other)["numbers"] > 0.3
    assert same.score > other.score + 0.3 * DEFAULTS.by_numbers


def test_a_page_of_the_same_site_needs_more_than_one_of_another() -> None:
    one = page(FERRY, site="a.example")
    scores = [explained(one, page(HALF, site=site)).score for site in ("b.example", "", "a.example")]
    assert scores[0] - scores[1] == pytest.approx(DEFAULTS.by_site / 2)
    assert scores[1] - scores[2] == pytest.approx(DEFAULTS.by_site / 2)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "other", "paragraphs"), [(FERRY, BELL, 2), (BELL, FERRY, 2), (MILL, LIGHTHOUSE, 3)])
def test_edits_here_and_there_are_held_against_a_page_more_than_whole_paragraphs(
    text: str, other: str, paragraphs: int
) -> None:
    for seed in range(12):
        contiguous = replaced(text, other, paragraphs, seed)
        similarity = exact_jaccard(contiguous, text)
        assert 0.52 < similarity < 0.76, f"seed {seed}"
        filled_in = scattered(text, similarity, seed)
        assert exact_jaccard(filled_in, text) == pytest.approx(similarity, abs=0.02), f"seed {seed}"
        alone = {"by_numbers": 0.0, **EXACT}  # the paragraphs bring numbers of their own
        as_paragraphs, as_form = (explained(page(new), page(text), **alone) for new in (contiguous, filled_in))
        assert values(as_form)["vocabulary"] > values(as_paragraphs)["vocabulary"] + 0.05, f"seed {seed}"
        assert as_form.score < as_paragraphs.score, f"seed {seed}"


# The rule that decides


@pytest.mark.parametrize("text", [FERRY, MILL])
def test_in_the_middle_band_the_score_is_held_against_the_base(text: str) -> None:
    for seed in range(5):
        one, other = page(scattered(text, 0.66, seed)), page(text)
        reached = explained(one, other).score
        assert 0.3 < reached < 0.8, f"seed {seed}"
        free: dict[str, Any] = {"certain": 1.0, "least": 0.0}
        assert judged(one, other, base=reached - 0.001, **free).duplicate, f"seed {seed}"
        assert not judged(one, other, base=reached + 0.001, **free).duplicate, f"seed {seed}"
        assert not judged(one, other, base=reached - 0.001, **free).certain, f"seed {seed}"


def test_what_is_certain_asks_for_nothing_else() -> None:
    """On one site: of another one's, an earlier page must hold enough of it."""
    for seed in range(5):
        one, other = page(scattered(FERRY, 0.66, seed), "", site="a.example"), page(FERRY, site="a.example")
        similarity = judged(one, other).similarity
        strict: dict[str, Any] = {"base": 1.0, "least": 1.0}
        assert judged(one, other, certain=similarity, **strict).certain, f"seed {seed}"
        assert not judged(one, other, certain=similarity + 0.001, **strict).duplicate, f"seed {seed}"


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


def test_a_short_copy_is_alike_for_as_much_as_the_parameter_says() -> None:
    one, other = (
        page("今天风大，渡口上午停航，请大家改走铁桥。\n来源：县广播站"),
        page("今天风大，渡口上午停航，请大家改走铁桥。"),
    )
    similarity = judged(one, other).similarity
    assert similarity < 1.0
    assert judged(one, other, short_least=similarity).duplicate
    assert not judged(one, other, short_least=similarity + 0.001).duplicate


# Explanations

#: Each decision by words of its sentence, with what it says of the comparison.
DECISIONS: dict[str, Callable[[Explanation, Comparison], bool]] = {
    "letter by letter": lambda e, c: c.likeness is Likeness.IDENTICAL and c.certain,
    "with the same numbers": lambda e, c: c.duplicate and c.certain and values(e)["length"] < DEFAULTS.short,
    "they differ": lambda e, c: not c.duplicate and values(e)["length"] < DEFAULTS.short,
    "enough by itself": lambda e, c: c.duplicate and c.certain and c.similarity >= DEFAULTS.certain,
    "boilerplate and all": lambda e, c: not c.duplicate and values(e)["whole"] < DEFAULTS.least,
    "The score reaches": lambda e, c: c.duplicate and not c.certain and e.score >= e.needed,
    "The earlier page holds": lambda e, c: not (c.duplicate or c.certain or c.same_site),
    "The score is below": lambda e, c: not c.duplicate and e.score < e.needed,
}


def rule(told: Explanation) -> str:
    """Which of them it is."""
    (found,) = (words for words in DECISIONS if words in told.decision)
    return found


def fits(told: Explanation, found: Comparison) -> bool:
    """Whether the explanation is right in itself and says what the comparison says."""
    weights = {feature.name: feature.weight for feature in told.features}
    assert weights == pytest.approx({**WEIGHTS, **dict.fromkeys(SHOWN, 0.0)})
    assert told.score == pytest.approx(sum(feature.value * feature.weight for feature in told.features))
    assert told.needed == DEFAULTS.base
    assert all(0.0 <= feature.value <= 1.0 for feature in told.features if feature.name != "length")
    if found.likeness is not Likeness.IDENTICAL:
        assert found.similarity == values(told)["similarity"]
        assert found.containment == values(told)["containment"]
    return DECISIONS[rule(told)](told, found)


def some_pages(seed: int) -> tuple[Page, Page]:
    """Two pages of which one is made of the other, more or less."""
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
    titles = dice.sample([TITLE, "渡口 第 3 期", "渡口 第 4 期", "", "An old mill"], 2)
    sites = [dice.choice(["", "a.example", "b.example"]) for _ in range(2)]
    return page(new, dice.choice(titles), site=sites[0]), page(text, titles[0], site=sites[1])


@pytest.mark.slow
def test_every_decision_is_met_and_fits_the_verdict() -> None:
    met = set()
    for seed in range(250):
        one, other = some_pages(seed)
        told = explained(one, other)
        met.add(rule(told))
        assert fits(told, judged(one, other)), (seed, told)
    assert met == set(DECISIONS)


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([FERRY, MILL, BELL, LIGHTHOUSE.split("\n")[0], ""]),
    st.lists(st.tuples(st.integers(0, 700), st.text(max_size=20)), max_size=6),
    st.sampled_from([TITLE, "", "7 boats"]),
)
def test_the_decision_fits_the_verdict_for_any_edits(text: str, edits: list[tuple[int, str]], title: str) -> None:
    new = text
    for at, said in edits:
        new = new[:at] + said + new[at + len(said) // 2 :]
    one, other = page(new, title), page(text)
    assert fits(explained(one, other), judged(one, other))
    assert fits(explained(other, one), judged(other, one))


def test_an_explanation_says_what_each_feature_means() -> None:
    told = explained(page(HALF), page(FERRY))
    assert {feature.name for feature in told.features} == {*WEIGHTS, *SHOWN}
    assert all(feature.meaning for feature in told.features)
    assert len({feature.meaning for feature in told.features}) == len(told.features)


def test_an_empty_page_is_not_told_to_be_boilerplate() -> None:
    told = explained(page("00C10"), page(""))
    assert values(told)["left"] == 1.0
    assert "boilerplate" not in told.decision


@pytest.mark.parametrize("text", [FERRY, MILL, "渡口停航。", ""])
def test_of_a_text_and_itself_all_is_alike(text: str) -> None:
    found = judged(page(text), page(text))
    assert found == Comparison(1.0, 1.0, True, True, identical=True, likeness=Likeness.IDENTICAL)
    told = explained(page(text), page(text))
    shown = values(told)
    assert rule(told) == "letter by letter"
    if text:
        assert (shown["similarity"], shown["containment"], shown["whole"], shown["title"]) == (1.0, 1.0, 1.0, 1.0)
        assert (shown["vocabulary"], shown["numbers"], shown["title_numbers"]) == (1.0, 0.0, 0.0)
