"""I-Match: what makes its signature, and what thinned lexicons forgive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.literature.imatch import IMatch, IMatchParameters
from scrapy_neardup.model import Comparison, Page
from scrapy_neardup.text.lexicon import LexiconBuilder

#: Of 100 documents so many hold the word. The lowest IDF is 0 and the highest log(100): from 0.2 to 0.8 are words of 3
#: to 39 documents.
COUNTS = {"the": 100, "day": 40, "ferry": 39, "quay": 20, "buoy": 10, "渡口": 5, "lantern": 3, "rope": 2, "keel": 1}
TERMS = [f"term{number:02}" for number in range(40)]


@pytest.fixture
def lexicon(tmp_path: Path) -> str:
    builder = LexiconBuilder()
    for number in range(100):
        middling = TERMS if number < 10 else []
        builder.add([*middling, *(word for word, count in COUNTS.items() if number < count)])
    builder.write(tmp_path / "lexicon.tsv", at_least=1)
    return str(tmp_path / "lexicon.tsv")


def page(text: str, title: str = "") -> Page:
    return Page("http://river.example/", title, text=text)


def judged(one: str, other: str, **parameters: Any) -> Comparison:
    method = IMatch(IMatchParameters(**parameters))
    return method.compare(method.fingerprint(page(one)), method.fingerprint(page(other)).sketch, frozenset())


def keys(text: str, **parameters: Any) -> tuple[int, ...]:
    return IMatch(IMatchParameters(**parameters)).fingerprint(page(text)).keys


def test_the_key_is_the_hash_of_the_sorted_middling_terms(lexicon: str) -> None:
    text = "The ferry, the keel, the rope: one day a lantern by the buoy of 渡口 quay. Ferry!"
    expected = OPEN.of("imatch 0 buoy ferry lantern quay 渡口")
    assert keys(text, lexicon=lexicon, min_terms=5) == (expected,)


@pytest.mark.parametrize(
    "other",
    [
        "quay lantern, ferry ferry buoy",
        "The ferry and the lantern; the quay and the buoy.",
        "keel rope day: ferry buoy lantern quay",
        "Ferry BUOY lantern Ｑｕａｙ unheardof",
    ],
)
def test_order_repetition_and_other_words_make_no_difference(lexicon: str, other: str) -> None:
    found = judged("ferry quay buoy lantern", other, lexicon=lexicon, min_terms=4)
    assert (found.similarity, found.duplicate, found.identical) == (1.0, True, False)


@pytest.mark.parametrize("other", ["ferry quay buoy", "ferry quay buoy lantern 渡口"])
def test_one_term_more_or_less_is_another_page(lexicon: str, other: str) -> None:
    found = judged("ferry quay buoy lantern", other, lexicon=lexicon, min_terms=1)
    assert (found.similarity, found.duplicate) == (0.0, False)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.0, "buoy day ferry keel lantern quay rope the 渡口"),
        (0.0, 0.2, "day the"),
        (0.8, 1.0, "keel rope"),
        (0.49, 0.65, "buoy"),
        (0.49, 0.66, "buoy 渡口"),
        (0.49, 0.77, "buoy lantern 渡口"),
    ],
)
def test_the_band_is_between_the_lowest_and_the_highest_idf(
    lexicon: str, low: float, high: float, expected: str
) -> None:
    found = keys(" ".join(COUNTS), lexicon=lexicon, low=low, high=high, min_terms=1)
    assert found == (OPEN.of(f"imatch 0 {expected}"),)


def test_too_few_terms_make_no_signature(lexicon: str) -> None:
    one, other = "ferry quay buoy", "buoy, quay; the ferry"
    assert judged(one, other, lexicon=lexicon, min_terms=3).duplicate
    found = judged(one, other, lexicon=lexicon, min_terms=4)
    assert (found.similarity, found.duplicate) == (0.0, False)
    assert keys(one, lexicon=lexicon, min_terms=4) == (OPEN.of("ferryquaybuoy"),)


def test_the_title_is_left_out(lexicon: str) -> None:
    method = IMatch(IMatchParameters(lexicon=lexicon, min_terms=1))
    text = "ferry quay buoy lantern"
    assert method.fingerprint(page(text, "渡口")).keys == method.fingerprint(page(text)).keys


class TestThinnedLexicons:
    @pytest.mark.parametrize("term", TERMS[:10])
    def test_pages_that_differ_by_one_term_agree_under_the_copies_without_it(self, lexicon: str, term: str) -> None:
        text, without = " ".join(TERMS), " ".join(one for one in TERMS if one != term)
        assert not judged(text, without, lexicon=lexicon).duplicate
        found = judged(text, without, lexicon=lexicon, lexicons=33)
        assert found.duplicate
        assert 5 <= found.similarity * 33 <= 17

    def test_the_main_lexicon_is_the_first_and_stays_whole(self, lexicon: str) -> None:
        text = " ".join(TERMS)
        several = keys(text, lexicon=lexicon, lexicons=10)
        assert several[:1] == keys(text, lexicon=lexicon)
        assert len(several) == 10

    def test_copies_lack_about_the_share_that_they_are_told(self, lexicon: str) -> None:
        for thin in (0.1, 0.33, 0.6):
            lacking = 0.0
            for term in TERMS:
                parameters = {"lexicon": lexicon, "lexicons": 64, "thin": thin, "min_terms": 1}
                rest = " ".join(one for one in TERMS if one != term)
                lacking += judged(f"{rest} {term}", rest, **parameters).similarity * 64 / 63
            assert lacking / len(TERMS) == pytest.approx(thin, abs=0.05)

    def test_the_more_terms_differ_the_fewer_copies_agree(self, lexicon: str) -> None:
        shares = [
            judged(" ".join(TERMS), " ".join(TERMS[less:]), lexicon=lexicon, lexicons=64, thin=0.5).similarity
            for less in range(6)
        ]
        assert shares == sorted(shares, reverse=True)
        assert (shares[0], shares[5] < 0.15) == (1.0, True)

    def test_copies_that_are_alike_have_keys_of_their_own(self, lexicon: str) -> None:
        assert len(keys(" ".join(TERMS), lexicon=lexicon, lexicons=5, thin=0.0)) == 5

    def test_a_copy_that_is_left_with_too_few_terms_has_no_signature(self, lexicon: str) -> None:
        text = " ".join(TERMS[:10])
        found = keys(text, lexicon=lexicon, lexicons=64, thin=0.9)
        assert found == keys(text, lexicon=lexicon)
        other = " ".join(TERMS[10:20])
        assert judged(text, other, lexicon=lexicon, lexicons=64, thin=0.9).similarity == 0.0


class TestTheBuiltInTable:
    CHINESE = "新渡口星期六清晨开航，第一班船载着乘客和他们的行李，从对岸的村子慢慢驶来，旧渡船去年沉了。"

    def test_another_language_needs_a_lexicon_and_the_error_says_how(self) -> None:
        text = "The lighthouse will be lit again next month, 20 years after its keeper locked the door."
        with pytest.raises(LexiconNeeded, match=r"scrapy neardup lexicon PAGES\.jsonl -o lexicon\.tsv"):
            IMatch().fingerprint(page(text))

    def test_chinese_needs_none(self) -> None:
        assert keys(self.CHINESE, min_terms=5) != (OPEN.of(self.CHINESE),)
        assert judged(self.CHINESE, f"{self.CHINESE}的了", min_terms=5).duplicate

    @pytest.mark.parametrize("more", [" ".join(map(str, range(1000))), "def moor(ferry, quay): return quay.berth"])
    def test_nor_does_chinese_with_numbers_or_code(self, more: str) -> None:
        assert keys(f"{self.CHINESE}\n{more}")

    def test_nor_does_a_page_without_words(self) -> None:
        assert keys("，。！") == (OPEN.of(""),)


@pytest.mark.parametrize(("low", "high"), [(0.8, 0.8), (0.9, 0.8)])
def test_the_band_has_an_inside(low: float, high: float) -> None:
    with pytest.raises(SettingsError, match=r"imatch: high must be greater than low \(0\.\d\), not 0\.8\."):
        IMatchParameters(low=low, high=high)


def test_a_file_that_is_no_lexicon_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("ferry\t3\n")
    with pytest.raises(SettingsError, match=r"words\.txt is no usable lexicon"):
        IMatchParameters(lexicon=str(tmp_path / "words.txt"))
