"""Sets of shingles: what their resemblance is by hand, and that pages that resemble each other share a key."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.literature.published import signature_of
from scrapy_neardup.methods.literature.shingle import Shingle, ShingleParameters, word_shingles
from scrapy_neardup.model import Comparison
from tests.methods.comparing import NONE, compared, made

FERRY = "新渡口星期六清晨正式开航，第一班船载着三十六位乘客，从对岸的柳林村慢慢驶来。"


@pytest.mark.parametrize(
    ("features", "n", "one", "other", "jaccard", "containment"),
    [
        ("characters", 2, "柳林渡口开船", "柳林渡口停船", 3 / 7, 3 / 5),
        ("characters", 2, "柳林渡口", "柳林渡口开船", 3 / 5, 3 / 3),
        ("characters", 1, "船来船去", "去年船少", 2 / 5, 2 / 3),
        ("characters", 3, "渡口渡口渡口", "渡口渡口", 1.0, 1.0),  # a set: repeated shingles count once
        ("characters", 2, "ferry", "merry", 3 / 5, 3 / 4),
        ("characters", 5, "渡船", "渡船来", 0.0, 0.0),  # a text shorter than n is one shingle
        ("characters", 2, "渡口", "灯塔", 0.0, 0.0),
        ("words", 1, "the lamp is lit", "the lamp is out", 3 / 5, 3 / 4),
        ("words", 2, "the lamp is lit", "the lamp is out", 2 / 4, 2 / 3),
        ("words", 2, "is lit the lamp", "the lamp is lit", 2 / 4, 2 / 3),
        ("words", 1, "渡船的价格", "渡船的颜色", 2 / 4, 2 / 3),
        ("words", 8, "the lamp", "the lamp", 1.0, 1.0),
    ],
)
def test_similarity_is_jaccard_and_containment_is_of_the_smaller_set(
    features: str, n: int, one: str, other: str, jaccard: float, containment: float
) -> None:
    method = Shingle(ShingleParameters(features=features, n=n))
    found = compared(method, one, other)
    assert found.similarity == pytest.approx(jaccard)
    assert found.containment == pytest.approx(containment)


def test_similarity_is_exact_for_long_texts() -> None:
    method, chance = Shingle(ShingleParameters(n=3)), random.Random(1)
    for _ in range(100):
        one = "".join(chance.choices("渡口的船今天又开了", k=chance.randint(3, 300)))
        cut = chance.randint(0, len(one))
        other = one[:cut] + "".join(chance.choices("渡口的船今天又开了", k=chance.randint(3, 300)))
        a, b = ({text[at : at + 3] for at in range(len(text) - 2)} for text in (one, other))
        found = compared(method, one, other)
        assert found.similarity == pytest.approx(len(a & b) / len(a | b))
        assert found.containment == pytest.approx(len(a & b) / min(len(a), len(b)))


@pytest.mark.parametrize(("limit", "duplicate"), [(0.42, True), (3 / 7, True), (0.43, False)])
def test_a_page_at_the_limit_is_a_duplicate(limit: float, duplicate: bool) -> None:
    method = Shingle(ShingleParameters(n=2, similarity=limit))
    assert compared(method, "柳林渡口开船", "柳林渡口停船").duplicate is duplicate


def test_by_default_nineteen_of_twenty_shingles_are_the_same() -> None:
    one = "".join(map(chr, range(0x4E00, 0x4E00 + 404)))  # 400 shingles, all different
    assert compared(Shingle(), one, one[:-10] + "渡").duplicate is True  # 390 of 401
    assert compared(Shingle(), one, one[:-20] + "渡").duplicate is False  # 380 of 401


@pytest.mark.parametrize("text", ["", "！？……", " \n"])
@pytest.mark.parametrize("features", ["characters", "words"])
def test_a_text_without_a_shingle_is_like_no_other(text: str, features: str) -> None:
    method = Shingle(ShingleParameters(features=features, similarity=0.01))
    assert compared(method, text, FERRY) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)
    assert compared(method, FERRY, text) == Comparison(0.0, 0.0, duplicate=False, certain=False, identical=False)


@pytest.mark.parametrize("keys", [1, 4, 16])
def test_keys_are_the_smallest_hashes_each_once(keys: int) -> None:
    everything = made(Shingle(ShingleParameters(keys=255)), FERRY * 2).keys
    assert len(everything) == 35  # of 35 letters twice: as many shingles as letters, those over the seam with them
    assert list(everything) == sorted(set(everything))
    assert made(Shingle(ShingleParameters(keys=keys)), FERRY * 2).keys == everything[:keys]


def test_a_text_of_few_shingles_has_fewer_keys() -> None:
    assert len(made(Shingle(), "渡口开船").keys) == 1
    assert len(made(Shingle(), "渡口开船" * 5).keys) == 4


def test_pages_that_resemble_each_other_share_a_key() -> None:
    chance = random.Random(2)
    method = Shingle(ShingleParameters(similarity=0.7))
    for _ in range(200):
        letters = "".join(map(chr, (chance.randrange(0x4E00, 0x9000) for _ in range(300))))
        one, other = made(method, letters[:270]), made(method, letters[30:])
        found = method.compare(one, other.sketch, NONE)
        assert 0.78 < found.similarity < 0.82
        assert set(one.keys) & set(other.keys)


def test_the_signature_has_four_bytes_for_each_different_shingle() -> None:
    method = Shingle(ShingleParameters(n=2))
    sketches = [made(method, text).sketch for text in ("柳林渡口渡口", "柳林渡口渡口渡口", "柳林渡口渡口开")]
    short, again, longer = map(signature_of, sketches)
    assert len(short) == 4 * 4
    assert again == short
    assert len(longer) == 4 * 5


@pytest.mark.parametrize(
    ("found", "n", "count"),
    [([], 3, 0), (["lamp"], 3, 1), (["the", "lamp"], 3, 1), (["the", "lamp", "is"], 3, 1), (["the"] * 10, 3, 8)],
)
def test_words_have_as_many_shingles_as_places(found: Sequence[str], n: int, count: int) -> None:
    assert len(word_shingles(found, n)) == count


def test_the_order_and_the_borders_of_words_count() -> None:
    rows = [["the", "lamp", "is"], ["lamp", "the", "is"], ["the", "lampis"], ["thelamp", "is"], ["the", "lamp"]]
    assert len({int(word_shingles(row, 3)[0]) for row in rows}) == len(rows)
    assert len(set(word_shingles(["the"] * 10, 3).tolist())) == 1


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("features", "sentences"),
        ("n", 0),
        ("n", 65),
        ("similarity", 0),
        ("similarity", 1.01),
        ("keys", 0),
        ("keys", 256),
    ],
)
def test_a_parameter_out_of_its_limits_is_refused(parameter: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"shingle: {parameter} must be"):
        ShingleParameters(**{parameter: value})  # type: ignore[arg-type]
