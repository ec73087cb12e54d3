"""The sketch of the default method: the min-wise estimate, the layout of its bytes, what it keeps of a page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.methods.cascade.method import Cascade
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import Article, Lines, Numbers, Order, Sketch
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.shingles import jaccard, sketch
from tests.methods.cascade_pages import DEFAULTS, FERRY, LIGHTHOUSE, MILL, NONE, page, unpacked
from tests.methods.comparing import split
from tests.methods.test_cascade_lines import LINES

# The min-wise estimate


def pair(dice: np.random.Generator, size: int, similarity: float) -> tuple[npt.NDArray[np.uint64], ...]:
    """Two sets of about that size and of exactly the similarity that their sizes allow."""
    both = round(2 * size * similarity / (1 + similarity))
    hashes = dice.integers(0, 2**64, 2 * size - both, np.uint64)
    return hashes[:size], hashes[size - both :]


@pytest.mark.parametrize("similarity", [0.0, 0.2, 0.5, 0.65, 0.8, 0.95, 1.0])
def test_the_estimate_is_near_the_similarity_of_the_sets(similarity: float) -> None:
    for size in [50, 100, 300, 1000, 3000]:
        dice = np.random.default_rng(size)
        for _ in range(10):
            one, other = pair(dice, size, similarity)
            exact = len(np.intersect1d(one, other)) / len(np.union1d(one, other))
            assert exact == pytest.approx(similarity, abs=0.02), size
            assert jaccard(sketch(one, 512, 2), sketch(other, 512, 2), 2) == pytest.approx(exact, abs=0.1), size


@pytest.mark.parametrize(("bins", "bits"), [(64, 1), (64, 8), (512, 2), (512, 4), (4096, 1), (4096, 8)])
def test_its_size_is_that_of_its_parameters(bins: int, bits: int) -> None:
    for count in (0, 1, 7, 5000):
        hashes = np.random.default_rng(count).integers(0, 2**64, count, np.uint64)
        packed = sketch(hashes, bins, bits)
        assert len(packed) == bins * bits // 8
        assert jaccard(packed, packed, bits) == 1.0


def test_neither_order_nor_repetition_makes_a_difference() -> None:
    hashes = np.random.default_rng(3).integers(0, 2**64, 400, np.uint64)
    again = np.concatenate((hashes[::-1], hashes[:100]))
    assert sketch(again, 512, 2) == sketch(hashes, 512, 2)


@given(st.binary(min_size=128, max_size=128), st.binary(min_size=128, max_size=128), st.sampled_from([1, 2, 4, 8]))
def test_any_two_sketches_have_a_similarity_between_0_and_1(one: bytes, other: bytes, bits: int) -> None:
    found = jaccard(one, other, bits)
    assert 0.0 <= found <= 1.0
    assert found == jaccard(other, one, bits)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@given(st.binary(min_size=16, max_size=16), st.binary(min_size=16, max_size=16))
def test_the_estimate_counts_the_equal_entries(bits: int, one: bytes, other: bytes) -> None:
    def entries(packed: bytes) -> list[int]:
        return [byte >> shift & 2**bits - 1 for byte in packed for shift in range(0, 8, bits)]

    pairs = list(zip(entries(one), entries(other), strict=True))
    share = sum(a == b for a, b in pairs) / len(pairs)
    assert jaccard(one, other, bits) == pytest.approx(max(0.0, (share - 2.0**-bits) / (1 - 2.0**-bits)))


# The layout

HALF_WORD = st.integers(0, 2**16 - 1)
WORD = st.integers(0, 2**32 - 1)
#: Bytes before the first of the two min-wise parts.
HEAD = 8 + 4 + 4 + 4 + 4 + 3


SKETCHES = st.builds(
    Sketch,
    body=st.integers(0, 2**64 - 1),
    title=WORD,
    site=WORD,
    whole=WORD,
    shingles=WORD,
    minwise=st.binary(max_size=64),
    opening=st.binary(min_size=8, max_size=8),
    sentences=st.frozensets(WORD, max_size=255),
    numbers=st.just(Numbers()),
    words=st.frozensets(st.integers(0, 2**24 - 1).map(lambda word: word & ~2), max_size=255),
    words_in_text=st.just(NONE),
    order=st.builds(Order, st.lists(HALF_WORD, max_size=24).map(tuple)),
)
SKETCHES = st.builds(
    lambda whole, numbers: replace(whole, numbers=Numbers.unpack(tuple(numbers), whole.shingles)),
    SKETCHES,
    st.lists(HALF_WORD, unique=True, max_size=255).filter(lambda numbers: len(numbers) != 1),
)


@settings(deadline=None)
@given(SKETCHES)
def test_what_is_packed_is_unpacked(whole: Sketch) -> None:
    packed = whole.pack()
    lists = len(whole.numbers.pack()) + 4 * len(whole.sentences) + 3 * len(whole.words) + 2 * len(whole.order.sentences)
    assert len(packed) == HEAD + len(whole.minwise) + 8 + lists + 1
    assert Sketch.unpack(packed, len(whole.minwise)) == whole
    marked = replace(whole, words_in_text=frozenset(sorted(whole.words)[::2]))
    assert Sketch.unpack(marked.pack(), len(whole.minwise)) == marked


@settings(deadline=None)
@given(SKETCHES, LINES, st.none() | st.builds(Article, WORD, st.binary(max_size=64)))
def test_lines_and_article_of_a_page_read_from_html_follow(
    plain: Sketch, lines: Lines, article: Article | None
) -> None:
    whole = replace(plain, lines=lines, article=article)
    packed = whole.pack()
    assert packed == plain.pack() + lines.pack() + (article.pack() if article else b"")
    assert Sketch.unpack(packed, len(whole.minwise)) == whole


def test_the_bytes_are_those_that_are_written_down() -> None:
    lists = frozenset((5, 4)), Numbers(frozenset((8, 6))), frozenset((9, 0x10004)), frozenset((0x10004,)), Order((7, 3))
    whole = Sketch(1, 2, 0x304, 5, 6, b"\xaa\xbb", b"\xcc" * 8, *lists)
    assert whole.pack().hex(" ", 1) == (
        "00 00 00 00 00 00 00 01 00 00 00 02 00 00 03 04 00 00 00 05 00 00 00 06 02 02 02 aa bb "
        "cc cc cc cc cc cc cc cc 00 00 00 04 00 00 00 05 00 06 00 08 00 00 09 01 00 06 02 00 07 00 03"
    )
    read = replace(whole, lines=Lines(frozenset((10,)), {11: 12}), article=Article(13, b"\xdd\xee"))
    assert read.pack().removeprefix(whole.pack()).hex(" ", 1) == ("01 01 00 00 00 0a 00 00 00 0b 0c 00 00 00 0d dd ee")


# What it keeps


def test_a_page_keeps_no_more_than_its_parameters_allow() -> None:
    text = "".join(f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时。" for n in range(100, 114))
    title = " ".join(f"word{n}" for n in range(40))
    few = CascadeParameters(max_sentences=1, max_numbers=2, max_title_words=3)
    for p in (DEFAULTS, few):
        whole = unpacked(Cascade(p).fingerprint(page(text, title)).sketch)
        kept = len(whole.sentences), len(whole.numbers.some), len(whole.words)
        assert kept == (p.max_sentences, p.max_numbers, p.max_title_words)


def test_of_the_numbers_of_a_long_text_there_is_a_sample_and_what_they_come_to() -> None:
    lines = [f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时。" for n in range(100, 200)]
    found = [unpacked(Cascade().fingerprint(page("".join(some))).sketch).numbers for some in (lines, lines[:99])]
    assert [(numbers.is_long, len(numbers.some)) for numbers in found] == [(True, DEFAULTS.max_numbers)] * 2
    assert found[0].all != found[1].all
    none = unpacked(Cascade().fingerprint(page(FERRY)).sketch).numbers
    assert none == Numbers(is_long=True)


def test_of_a_long_text_the_order_is_that_of_both_ends() -> None:
    lines = [f"第{n}号渡船在河湾镇的码头上等了整整{n * 7}个小时" for n in range(100, 200)]
    found = unpacked(Cascade().fingerprint(page("。".join(lines))).sketch).order.sentences
    assert found == tuple(OPEN.of(letters(normalize(line))) & 0xFFFF for line in (*lines[:16], *lines[-8:]))
    few = unpacked(Cascade().fingerprint(page("。".join(lines[:24]))).sketch).order.sentences
    assert few == tuple(OPEN.of(letters(normalize(line))) & 0xFFFF for line in lines[:24])


def test_it_says_which_words_of_the_title_stand_in_the_text() -> None:
    def standing(title: str, text: str = f"{FERRY}\n{MILL}") -> int:
        return len(unpacked(Cascade().fingerprint(page(text, title)).sketch).words_in_text)

    assert [standing(title) for title in ("渡口开航", "铜钟", "brook 1874", "brook lighthouse", "", "1982")] == [
        1 + ("开航" in FERRY), 0, 1, 1, 0, 0,
    ]  # fmt: skip
    assert standing("1874 lens", LIGHTHOUSE) == 2
    assert standing("len", LIGHTHOUSE) == 0, "a part of a word is none"


def test_a_sentence_of_hundreds_of_letters_is_kept() -> None:
    long = "船" * 300
    assert OPEN.short(long) in unpacked(Cascade().fingerprint(page(f"{long}。{FERRY}")).sketch).sentences
    assert Cascade().shared(page(long), Cascade().fingerprint(page(long)).sketch) == (long,)


def test_it_holds_the_longest_sentences_and_how_many_shingles_there_are() -> None:
    whole = unpacked(Cascade().fingerprint(page(FERRY, site="a.example")).sketch)
    longest = sorted((letters(normalize(one)) for one in FERRY.replace("\n", "").split("。")), key=len, reverse=True)
    assert len(longest[DEFAULTS.max_sentences]) < len(longest[DEFAULTS.max_sentences - 1])
    assert whole.sentences == set(map(OPEN.short, longest[: DEFAULTS.max_sentences]))
    body = letters(normalize(FERRY))
    assert whole.shingles == whole.whole == len({body[at : at + 5] for at in range(len(body) - 4)})
    assert whole.body == OPEN.of(body)


@pytest.mark.parametrize(
    ("site", "other", "same"), [("a.example", "a.example", True), ("a.example", "b.example", False)]
)
def test_it_knows_a_site_from_another(site: str, other: str, same: bool) -> None:
    one, two = (unpacked(Cascade().fingerprint(page(MILL, site=name)).sketch).site for name in (site, other))
    assert (one == two) is same
    assert one > 0
    assert two > 0


def test_a_page_whose_site_is_not_known_has_none() -> None:
    assert unpacked(Cascade().fingerprint(page(MILL)).sketch).site == 0


def test_title_words_that_are_numbers_have_the_lowest_bit_set() -> None:
    words = unpacked(Cascade().fingerprint(page(FERRY, "boats 7 of 1900")).sketch).words
    assert sorted(word & 1 for word in words) == [0, 0, 1, 1]


def test_larger_parts_make_a_larger_sketch() -> None:
    more = CascadeParameters(bins=1024, bits=4)
    usual, large = (len(Cascade(some).fingerprint(page(FERRY)).sketch) for some in (CascadeParameters(), more))
    assert large - usual == (1024 * 4 - 512 * 2) // 8


# Of a page read from HTML


def test_a_text_that_came_without_html_has_neither_lines_nor_an_article() -> None:
    whole = unpacked(Cascade().fingerprint(page(FERRY, headline="渡口", main=FERRY[:200])).sketch)
    assert (whole.lines, whole.article) == (None, None)
    assert whole.pack() == Cascade().fingerprint(page(FERRY)).sketch


@pytest.mark.parametrize(
    ("reader", "main"), [("prose", ""), ("article", FERRY)], ids=["prose", "nothing but an article"]
)
def test_without_an_article_in_it_a_page_has_lines_and_is_else_as_a_text(reader: str, main: str) -> None:
    whole = unpacked(
        Cascade().fingerprint(page(FERRY, "渡口_河湾网", headline="开航", main=main, reader=reader)).sketch
    )
    lines, _ = Lines.unpack(Lines.encode(split([letters(normalize(FERRY))], OPEN), []))
    assert whole.article is None
    assert replace(whole, lines=None).pack() == Cascade().fingerprint(page(FERRY, "渡口_河湾网")).sketch
    assert whole.lines is not None
    assert whole.lines.headlines == set(map(OPEN.short, ["title 渡口", "title 河湾网", "title 开航"]))
    assert len(whole.lines.lines) > len(lines.lines)


def test_where_the_article_is_a_part_the_whole_and_the_article_are_kept_apart() -> None:
    read = page(f"{FERRY}\n{MILL}", main=FERRY, reader="article")
    whole, article = (unpacked(Cascade().fingerprint(one).sketch) for one in (read, page(FERRY)))
    assert whole.article == Article(article.shingles, article.minwise)
    assert (whole.body, whole.opening, whole.order) == (article.body, article.opening, article.order)
    both = unpacked(Cascade().fingerprint(page(f"{FERRY}\n{MILL}")).sketch)
    assert (whole.whole, whole.shingles, whole.minwise, whole.sentences) == (
        both.whole, both.shingles, both.minwise, both.sentences,
    )  # fmt: skip
    alone = whole.article_view()
    assert (alone.whole, alone.shingles, alone.minwise) == (article.whole, article.shingles, article.minwise)
    assert article.article_view() is article


@pytest.mark.parametrize("headline", ["", "\n", "***", " — \n!"])
def test_what_has_no_letters_is_no_headline(headline: str) -> None:
    whole = unpacked(Cascade().fingerprint(page(FERRY, "", headline=headline, reader="prose")).sketch)
    assert whole.lines is not None
    assert whole.lines.headlines == frozenset()
