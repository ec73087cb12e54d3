"""The feature string of rare words: its order, its length, and that an equal hash alone is not enough."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.hashing.classic import CLASSIC, classic_hash
from scrapy_neardup.methods.literature.idf_terms import IDFTerms, IDFTermsParameters, rarest
from scrapy_neardup.model import Comparison, Page
from scrapy_neardup.text.lexicon import Lexicon, LexiconBuilder

#: Of ten documents so many hold the word.
COUNTS = {"the": 10, "ferry": 6, "quay": 4, "渡口": 4, "buoy": 2, "lantern": 1}


@pytest.fixture
def lexicon(tmp_path: Path) -> str:
    builder = LexiconBuilder()
    for number in range(10):
        builder.add(word for word, count in COUNTS.items() if number < count)
    builder.write(tmp_path / "lexicon.tsv", at_least=1)
    return str(tmp_path / "lexicon.tsv")


def page(text: str) -> Page:
    return Page("http://river.example/", text=text)


def judged(one: str, other: str, **parameters: Any) -> Comparison:
    method = IDFTerms(IDFTermsParameters(**parameters))
    return method.compare(method.fingerprint(page(one)), method.fingerprint(page(other)).sketch, frozenset())


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (1.0, ["keel", "buoy", "quay", "渡口", "ferry", "the"]),
        (0.9, ["keel", "buoy", "quay", "渡口", "ferry"]),
        (0.7, ["keel", "buoy", "quay", "渡口"]),
        (0.5, ["keel", "buoy", "quay"]),
        (0.1, ["keel"]),
    ],
)
def test_the_rarest_come_first_and_equals_go_by_their_characters(share: float, expected: list[str]) -> None:
    table = Lexicon({"the": 0.0, "ferry": 0.5, "quay": 0.9, "渡口": 0.9, "buoy": 1.6}, unknown=2.3)
    assert rarest({"the", "ferry", "quay", "渡口", "buoy", "keel"}, table, share) == expected


@pytest.mark.parametrize("words", [10, 30, 70, 100])
def test_seven_tenths_are_not_one_less(words: int) -> None:
    table = Lexicon({"the": 0.0}, unknown=1.0)
    assert len(rarest([f"word{number}" for number in range(words)], table, 0.7)) == words * 7 // 10


def test_the_key_is_the_classic_hash_and_the_signature_holds_a_longer_one(lexicon: str) -> None:
    string = "lantern buoy quay 渡口"
    text = "The ferry, the buoy, the quay of 渡口: ferry! A lantern".replace(" of", "").replace(" A", "")
    for name in CLASSIC:
        found = IDFTerms(IDFTermsParameters(lexicon=lexicon, hash=name)).fingerprint(page(text))
        value = classic_hash(name, string)
        assert found.keys == (value,)
        assert value < 2**32
        assert found.sketch.endswith(value.to_bytes(4, "big") + blake2b(string.encode(), digest_size=16).digest())


def test_common_words_order_and_repetition_make_no_difference(lexicon: str) -> None:
    one, other = "the ferry the quay the buoy lantern", "lantern, lantern: buoy, quay! ferry"
    assert judged(one, other, lexicon=lexicon, share=0.75).duplicate
    found = judged(one, f"{other} keel", lexicon=lexicon, share=0.75)
    assert (found.similarity, found.duplicate) == (0.0, False)


#: "0r" and "20" have the same value in DJB: 33 * 48 + 114 = 33 * 50 + 48.
COLLIDING = ("berth 000r", "berth 0020")


def test_a_collision_is_no_duplicate(lexicon: str) -> None:
    one, other = (f"the ferry to {berth}" for berth in COLLIDING)
    method = IDFTerms(IDFTermsParameters(lexicon=lexicon, hash="djb"))
    there, here = method.fingerprint(page(one)), method.fingerprint(page(other))
    assert there.keys == here.keys
    found = method.compare(here, there.sketch, frozenset())
    assert (found.similarity, found.duplicate) == (0.0, False)
    assert method.compare(here, method.fingerprint(page(f"{other} the")).sketch, frozenset()).duplicate


def test_pages_without_words_are_told_apart_by_nothing_but_their_letters() -> None:
    found = judged("，。", "、！")
    assert (found.similarity, found.duplicate) == (1.0, True)


def test_the_built_in_table_is_for_chinese(lexicon: str) -> None:
    text = "The lighthouse will be lit again next month."
    with pytest.raises(LexiconNeeded, match=r"scrapy neardup lexicon PAGES\.jsonl -o lexicon\.tsv"):
        IDFTerms().fingerprint(page(text))
    assert judged(text, text + " the", lexicon=lexicon).duplicate
    assert judged("新渡口星期六清晨开航", "新渡口，清晨开航，星期六").duplicate


def test_a_file_that_is_no_lexicon_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ferry\t3\n")
    with pytest.raises(SettingsError, match=r"words\.txt is no usable lexicon"):
        IDFTermsParameters(lexicon=str(tmp_path / "words.txt"))
