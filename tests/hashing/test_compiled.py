"""The compiled module gives what the functions of Python give, on every text; without it they do the work."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing import compiled, mix_one
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.hashing.keys import pack_key, pack_keys
from scrapy_neardup.kv.tally import KEY, RowTally, _line, of_rows
from scrapy_neardup.methods.cascade.features import TitleWords
from scrapy_neardup.methods.cascade.minwise import equal_entries, sketch_of_text
from scrapy_neardup.methods.cascade.parameters import CascadeParameters
from scrapy_neardup.methods.cascade.sketch import Shingles
from scrapy_neardup.state.boilerplate import Counts, CountsOfSite
from scrapy_neardup.state.layout import record_key
from scrapy_neardup.state.record import Record
from scrapy_neardup.state.sentence_counts import Recurrence
from scrapy_neardup.text import characters
from scrapy_neardup.text.characters import character_table
from scrapy_neardup.text.lexicon import core_words
from scrapy_neardup.text.normalize import expand_characters, letters, letters_each, normalize
from scrapy_neardup.text.prose import has_prose
from scrapy_neardup.text.quotes import SubstringSet
from scrapy_neardup.text.sentences import NativeText, SegmentedText, from_sentences, read
from scrapy_neardup.text.shingles import hash_words, shingles, smallest_shingles
from scrapy_neardup.text.tokens import are_unspaced, has_unspaced, words

pytestmark = pytest.mark.skipif(compiled.kernels is None, reason="The compiled module was not built here.")

KEYED = Keyed(bytes(range(32)))
KNOWN = character_table() if compiled.kernels is not None else None
CUT = compiled.kernels.cut_text(KNOWN, "渡口。", KEYED.key, True) if compiled.kernels is not None else None
CUT = CUT and CUT[0]
SIGNS = compiled.kernels.signs(("渡口",)) if compiled.kernels is not None else None
WEIGHTS = compiled.kernels.weights(b"")[0] if compiled.kernels is not None else None
#: A table of four buckets, each a block of its own.
TABLE = bytearray(4 * (32 + 32 + 8 + 1 + 1))
#: What the stages treat in a way of its own, among all there is, lone surrogates too.
TELLING = (
    "。！？；!?;.\r\n\u2028\u2029”’」』）》)]\"' \t\u3000_-*，：（1a\0ß\u0130Σς\u00ad\u200b\ufeff\u0301\u0316\u3099"
    "\u11a8\u1161가ｶﾞ①ﬁⅧ船渡的\ud800\udfff\U0001f600\U00020000\u0e40\u00a0…℃㎡％９／\u200d"
    "\u115f\u1160\u3164\uffa0\u034f\u17b4\ufe0f\u206a\U0001d173\U000e0041"
)
CHAR = st.one_of(st.sampled_from(TELLING), st.characters(exclude_categories=()), st.sampled_from("船渡口开航。 a."))
TEXT = st.one_of(st.text(CHAR, max_size=60), st.text(st.sampled_from("渡口a。"), max_size=9).map(lambda few: few * 80))
#: Numbers as a file has them: short ones, and such as take more than a division to read.
NUMBERS = st.one_of(
    st.decimals(min_value=0, max_value=10**6, places=9).map(str),
    st.floats(min_value=0, max_value=1e300).map(repr),
    st.integers(min_value=0, max_value=10**20).map(str),
    st.sampled_from(["1.", ".5", "00013.900677652", "9007199254740993", "0.30000000000000004"]),
)
HOSTILE = (
    *("", "\0", "\ud800" * 300, "船" * 400_000, "。" * 400_000, "a." * 200_000, " " * 400_000, "。船" * 200_000),
    *("\U0010ffff" * 70_000, "".join(map(chr, range(0x10000)))),
)


@pytest.fixture
def kernels() -> Kernels:
    assert compiled.kernels is not None
    return compiled.kernels


def both(call: Callable[[], Any]) -> tuple[Any, Any]:
    """What a call gives with the module and without."""
    with pytest.MonkeyPatch.context() as patched:
        with_it = call()
        patched.setattr(compiled, "kernels", None)
        return with_it, call()


def told(text: SegmentedText) -> list[object]:
    """All that can be asked of a cut text."""
    few = ["渡口", "口a", "a渡", "\ud800\ud800", "口口", "船船"]
    return [
        *(text.size, text.sentences, text.lines, text.text, text.letters, text.hash(), text.lengths().tolist()),
        *(text.line_hashes(least).tolist() for least in (0, 1, 2, 6, 5000)),
        *(text.countable_hashes(few, least, end).tolist() for least, end in ((0, 128), (0, 1), (2, 2), (6, 0))),
        *(text.longest_hashes(least, limit) for least in (0, 2, 12) for limit in (1, 3, 64, 65)),
        *(text.end_hashes(first, last) for first, last in ((0, 0), (1, 0), (0, 1), (2, 3), (16, 8))),
        *(text.find_words(words) for words in (few, few * 11)),
        *(text.numbers(most) for most in (0, 1, 12, 255)),
    ]


def without_some(text: SegmentedText) -> SegmentedText:
    """The text without lines here and there, among them all that are the same as one of these."""
    return text.without(frozenset(text.line_hashes().tolist()[::3]))


def titles_from(text: str) -> list[list[str]]:
    """Words that may be those of a title, of scripts with spaces and without; of more than the module takes, too."""
    letters = read(text, KEYED).letters
    runs = [letters[at : at + 1 + at % 12] for at in range(min(len(letters), 99))]
    unspaced = [run for run in runs if has_unspaced(run)]
    return [[], unspaced[:20], unspaced[:20] * 2, runs[:20], (unspaced or ["渡口"]) * 65]


#: Every function that asks the module for something about a text.
STAGES: dict[str, Callable[[str], object]] = {
    "normalize": normalize,
    "letters": letters,
    "letters of each": lambda text: letters_each(text.split("\n")),
    "hash": KEYED.of,
    "open hash": OPEN.of,
    "hashes": lambda text: KEYED.every([text, text[1:], text[:7]]),
    "words": lambda text: [words(normalize(text)), words(text, singles=True)],
    "are unspaced": lambda text: are_unspaced([text, *text.split(), *text[:5]]),
    "shingles": lambda text: shingles(text, 5, KEYED).tolist(),
    "long shingles": lambda text: shingles(text, 300, KEYED).tolist(),
    "sketch": lambda text: sketch_of_text(text, 5, 512, 2, KEYED),
    "open sketch": lambda text: sketch_of_text(text, 3, 64, 8, OPEN),
    "opening": lambda text: sketch_of_text(text[:80], 1, 16, 4, KEYED),
    "smallest": lambda text: smallest_shingles(text, 10, 4, KEYED),
    "many smallest": lambda text: smallest_shingles(text, 1, 128, KEYED),
    "shingled": lambda text: Shingles.of(read(text, KEYED), CascadeParameters()),
    "shingled long": lambda text: Shingles.of(read(text, KEYED), CascadeParameters(shingle=90, bins=64, key_shingle=1)),
    "as shingles": lambda text: hash_words(text.split(), KEYED),
    "read": lambda text: told(read(text, KEYED)),
    "read openly": lambda text: told(read(text, OPEN)),
    "read without some lines": lambda text: told(without_some(read(text, KEYED))),
    "words of a title": lambda text: [
        TitleWords(words, read(text, KEYED)).encode(most) for words in titles_from(text) for most in (1, 3, 255)
    ],
    "has prose": lambda text: [has_prose(text, needed) for needed in (-1, 0, 1, 15, 10_000)],
    "has unspaced": lambda text: [has_unspaced(text), has_unspaced(letters(text)), *map(has_unspaced, text.split())],
    "core words": lambda text: [core_words(text.split() + list(text), count) for count in (-1, 0, 1, 4, 64, 65)],
    "holds": lambda text: SubstringSet("渡口", "。。", "\ud800\ud800", ".a", "船船船").has_match(text),
}


@pytest.mark.parametrize("stage", STAGES)
@given(TEXT)
@settings(max_examples=40, deadline=None)
def test_a_stage_gives_the_same_both_ways(stage: str, text: str) -> None:
    with_it, without = both(lambda: STAGES[stage](text))
    assert with_it == without
    assert type(with_it) is type(without)


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_so_does_it_on_hostile_texts(stage: str) -> None:
    for text in HOSTILE:
        with_it, without = both(lambda text=text: STAGES[stage](text))  # type: ignore[misc]
        assert with_it == without, text[:20]


@pytest.mark.slow
def test_every_character_is_read_the_same() -> None:
    for start in (*range(0, 0x31400, 256), 0xE0000, 0x10FF00):
        chars = list(map(chr, range(start, start + 256)))
        text = "".join(chars)
        with_it, without = both(
            lambda chars=chars, text=text: [
                *(*map(normalize, chars), letters(text), told(read(text, KEYED)), told(read(". ".join(chars), KEYED)))
            ]  # type: ignore[misc]
        )
        assert with_it == without, hex(start)


@pytest.mark.parametrize(
    "text", ["船\u00a0来了", "渡口１０％／ＡＢ", "船……来了", "25℃，80㎡", "船\u200d来\ufeff了", "①"]
)
def test_what_many_pages_hold_takes_no_longer_way(kernels: Kernels, text: str) -> None:
    easier = expand_characters(text)
    assert normalize(easier) == normalize(text) == both(lambda: normalize(text))[1]
    assert kernels.folded(KNOWN, easier) == normalize(text)
    assert kernels.cut_text(KNOWN, easier, KEYED.key, True) is not None


def test_what_is_looked_at_alone_is_put_together_with_nothing() -> None:
    """NFKC composes pairs; where the second one of a pair is a starter, both must be left to Python."""
    pairs = (unicodedata.decomposition(chr(point)) for point in range(sys.maxunicode + 1))
    seconds = {int(pair.split()[1], 16) for pair in pairs if " " in pair and not pair.startswith("<")}
    # Hangul is composed by arithmetic, of vowels and finals that are starters.
    seconds |= {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    starters = {point for point in seconds if not unicodedata.combining(chr(point))}
    assert len(starters) > 50
    assert not [hex(one) for one in starters if any(a <= one < b for a, b in characters._ALONE)]


@pytest.mark.parametrize("secret", [b"", b"k", bytes(range(32)), bytes(64)], ids=len)
def test_texts_of_every_length_are_hashed_by_blake2b(secret: bytes) -> None:
    keyed = Keyed(secret)
    for length in range(400):
        data = bytes(32 + (7 * place + length) % 90 for place in range(length))
        expected = int.from_bytes(blake2b(data, key=secret, digest_size=8).digest(), "big")
        assert keyed.of(data.decode()) == expected, length


def test_characters_of_all_lengths_in_utf8_may_stand_across_a_block() -> None:
    for char in "aé船\U0001f600\ud800":
        for before in range(120, 132):
            with_it, without = both(lambda text="x" * before + char * 3: KEYED.of(text))  # type: ignore[misc]
            assert with_it == without, (char, before)


#: Lines that fill a block of BLAKE2b to the last byte, or end beside that; and long ones among short ones.
LINE = st.builds(
    lambda chars, length: (chars * length)[:length],
    st.text(st.sampled_from("aé渡\U00020000"), min_size=1, max_size=3),
    st.one_of(st.integers(1, 9), st.sampled_from([*range(31, 34), *range(42, 45), *range(126, 131), 256, 257, 2000])),
)


@pytest.mark.parametrize("secret", [b"", b"k", bytes(64)], ids=len)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
@given(st.lists(LINE, max_size=30))
@settings(max_examples=60, deadline=None)
def test_the_lines_of_a_text_are_hashed_by_blake2b(secret: bytes, at_once: bool, lines: list[str]) -> None:
    assert compiled.kernels is not None
    found = compiled.kernels.cut_text(KNOWN, "。".join(lines), compiled.kernels.prepared(secret, at_once), False)
    assert found is not None
    hashed = [int.from_bytes(blake2b(one.encode(), key=secret, digest_size=8).digest(), "big") for one in lines]
    assert np.frombuffer(compiled.kernels.cut_shorts(found[0], 0), np.uint32).tolist() == [
        one & 0xFFFFFFFF for one in hashed
    ]
    assert {*compiled.kernels.cut_longest(found[0], 0, 64)} == {*hashed}


def test_values_that_all_want_one_place_are_counted_too(kernels: Kernels) -> None:
    """Whoever knows the numbers can choose such characters; then the values are put in order."""
    offset, base = OPEN.drawn
    want = [
        chr(point)
        for point in range(0x20, 0xD000)
        if (mix_one(mix_one(point ^ offset)) * 0x9E3779B97F4A7C15 & 2**64 - 1) >> 54 == 5
    ]
    few = want[:40]
    assert len(few) > 30
    text = "".join(few) * 12
    assert 512 < 2 * len(text) <= 1024  # so the table has 2**10 places
    assert kernels.minwise(text, 1, offset, base, 64, 2)[0] == len(few) == len(set(shingles(text, 1).tolist()))


def test_the_counts_of_sentences_are_the_same_both_ways() -> None:
    drawn = np.random.default_rng(7)
    one, other = Recurrence(), Recurrence()
    for step in range(300):
        few = drawn.integers(0, 9, 60, dtype=np.uint32) << np.uint32(14) | drawn.integers(0, 3, 60, dtype=np.uint32)
        noted = (few, drawn.integers(0, 2**32, 40, dtype=np.uint32), few[:0])[step % 3]
        site = int(drawn.integers(0, 50))
        one.note(noted, site)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(compiled, "kernels", None)
            other.note(noted, site)
            pages, sites = other.pages(noted), other.sites(noted)
        np.testing.assert_array_equal(one.pages(noted[::-1])[::-1], pages, strict=True)
        np.testing.assert_array_equal(one.sites(noted[::-1])[::-1], sites, strict=True)
    assert one.blocks() == other.blocks() != {}
    assert one.changed() == other.changed()


def test_no_sentences_may_stand_at_any_place_in_memory() -> None:
    """As those of an empty ``bytearray`` do, which each Python has somewhere else."""
    assert compiled.kernels is not None
    empty = memoryview(bytes(9))[1:1]
    assert compiled.kernels.stood(empty, 1, TABLE, True) == b""
    with pytest.raises(ValueError, match="another size"):
        compiled.kernels.stood(memoryview(bytes(9))[1:5], 1, TABLE, True)


def test_pages_are_counted_the_same_both_ways() -> None:
    """Of a site, of many and of none known; copies, and pages that hold nothing or one sentence several times."""
    drawn = np.random.default_rng(8)
    one, other = Counts(), Counts()
    skipped: list[bool] = []
    for step in range(400):
        few = drawn.integers(0, 40, (60, 1, 0, 9)[step % 4], dtype=np.uint32) << np.uint32(13)
        noted = np.concatenate((few, drawn.integers(0, 2**32, 20 * (step % 3), dtype=np.uint32)))
        site, everywhere = f"moor{step % 50}.example" if step % 7 else "", step % 5 > 0
        page = step % 12 if step % 4 == 1 else None

        def count(counts: Counts, noted: Any = noted, site: str = site, how: Any = (everywhere, page)) -> object:
            common = CountsOfSite(counts, site, KEYED).is_common(noted)
            done = counts.note(noted, site, KEYED, everywhere=how[0], page=how[1])
            skipped.append(not done)
            return done, common.dtype, common.tolist(), counts.stood_on(noted, site, KEYED).tolist()

        with pytest.MonkeyPatch.context() as patched:
            with_it = count(one)
            patched.setattr(compiled, "kernels", None)
            assert with_it == count(other)
            assert step != 399 or any(with_it[2])  # type: ignore[index]
    assert any(skipped)
    assert not all(skipped)
    assert one.blocks() == other.blocks() != {}
    assert one.changed() == other.changed()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.integers(0, 2**64 - 1))
def test_numbers_have_the_same_hashes_both_ways(numbers: list[int], mixed_with: int) -> None:
    with_it, without = both(lambda: KEYED.halves(np.array(numbers, np.uint32), mixed_with))
    np.testing.assert_array_equal(with_it, without, strict=True)


@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=20),
    st.binary(max_size=16),
)
def test_keys_have_the_same_bytes_both_ways(keys: list[int], before: bytes) -> None:
    with_it, without = both(lambda: pack_keys(keys, before))
    assert with_it == without == [before + pack_key(key) for key in keys]
    assert both(lambda: pack_keys(tuple(keys))) == ([pack_key(key) for key in keys],) * 2


@given(
    st.builds(
        Record,
        st.integers(0, 2**64 - 1),
        TEXT,
        st.integers(0, 2**64 - 1),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.lists(st.integers(0, 2**64 - 1), max_size=9).map(tuple),
        st.binary(max_size=30),
        *(st.booleans(), st.booleans(), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    ),
)
def test_records_have_the_same_bytes_both_ways(record: Record) -> None:
    for one in (record, replace(record, original=record.id), replace(record, keys=(*record.keys, record.original))):
        with_it, without = both(one.pack)
        assert with_it == without
    long = replace(record, url="船" * 30_000)
    assert len({*both(long.pack)}) == 1


@given(
    st.dictionaries(
        st.builds(lambda first, rest: first.encode() + rest, st.sampled_from("rejkuxmg"), st.binary(max_size=17)),
        st.binary(max_size=99),
    ),
    st.integers(0, 2**64 - 1),
)
def test_rows_have_the_same_shares_both_ways(rows: dict[bytes, bytes], largest: int) -> None:
    rows |= {KEY: b"tally", record_key(largest): b"old", record_key(max(largest, 1) - 1): b"older"}
    rows[record_key(min(largest + 1, 2**64 - 1))] = b"new, if there can be a newer one"
    with_it, without = both(lambda: of_rows(rows, largest))
    assert with_it == without
    assert with_it[1] >= (largest < 2**64 - 1)
    assert record_key(largest) in with_it[2]


@given(
    st.binary(min_size=8, max_size=8),
    *[st.integers(0, 2**64 - 1)] * 3,
    st.booleans(),
    st.binary(max_size=64).map(lambda rest: rest.hex().encode()),
)
def test_lines_of_the_witness_are_the_same_both_ways(
    state: bytes, sequence: int, pages: int, total: int, closed: bool, rest: bytes
) -> None:
    tally = RowTally(state, sequence, pages, total, closed)
    with_it, without = both(lambda: _line(b"written", tally, rest))
    assert with_it == without
    assert len(with_it) == 512


@given(st.binary(max_size=70), st.data(), st.sampled_from([1, 2, 4, 8]))
def test_as_many_entries_are_equal_both_ways(one: bytes, data: st.DataObject, bits: int) -> None:
    other = data.draw(st.one_of(st.binary(max_size=80), st.just(one), st.just(one[::-1])))
    with_it, without = both(lambda: equal_entries(one, other, bits))
    assert with_it == without
    assert equal_entries(one, one, bits) == len(one) * 8 // bits


@given(TEXT, st.lists(st.text(st.sampled_from(" a渡口1"), min_size=1, max_size=9), max_size=9))
@settings(max_examples=60, deadline=None)
def test_the_same_words_stand_in_a_text_both_ways(text: str, words: list[str]) -> None:
    """Which words of an earlier title a new text lacks, by their hashes alone."""

    def gone() -> list[bool]:
        title = TitleWords([], from_sentences(text.replace("\n", " ").split("。"), KEYED))
        old = frozenset(TitleWords(words, from_sentences([], KEYED))._title)
        return [title._has_words(old), *(title._has_words(frozenset({one})) for one in old)]

    with_it, without = both(gone)
    assert with_it == without


@given(st.lists(st.tuples(st.text(CHAR, max_size=6), NUMBERS), min_size=1, max_size=20))
def test_a_table_of_weights_says_what_its_lines_say(rows: list[tuple[str, str]]) -> None:
    assert compiled.kernels is not None
    rows = [(word.encode("utf-8", "replace").decode().replace("\n", ""), number) for word, number in rows]
    lines = "\n".join(f"{word} {number}" for word, number in rows).encode()
    table, weights = compiled.kernels.weights(lines)
    assert np.frombuffer(weights, np.float64).tolist() == [float(number) for _, number in rows]
    for word, weight in {word: float(number) for word, number in rows}.items():
        assert is_weighed(table, word, weight)


@pytest.mark.parametrize("first", [1, 0x7F0, 0x3FF0, 0xD7F0, 0xE000, 0xFFF0, 0x10FFF0])
def test_words_of_all_characters_have_their_weights(first: int) -> None:
    assert compiled.kernels is not None
    chars = [chr(point) for point in range(first, min(first + 0x20, 0x110000)) if chr(point) not in "\n "]
    words = {
        word: 1.5 + place
        for place, char in enumerate(chars)
        if char.isascii() or not "\ud800" <= char < "\ue000"
        for word in (char, f"{char}渡", f"船{char}渡口", f"{char}船船渡口")
    }
    table, _ = compiled.kernels.weights("".join(f"{word} {weight}\n" for word, weight in words.items()).encode())
    for word, weight in words.items():
        assert is_weighed(table, word, weight), word


def is_weighed(table: Any, word: str, weight: float) -> bool:
    """Whether a word has this weight in a table: behind a heavier one that is not there, and before a lighter one."""
    assert compiled.kernels is not None
    last = "\U0010ffff" * 7  # in the order of characters behind all others
    lighter, heavier = (float(np.nextafter(weight, end)) for end in (-np.inf, np.inf))
    found = [compiled.kernels.core_words([word, last], 1, table, other) for other in (lighter, heavier)]
    return found == [[word], [last]]


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("prepared", (bytes(65), True)),
        ("prepared", ("text", True)),
        ("prepared", (b"",)),
        ("hash_text", (b"no key", "text")),
        ("hash_text", ("text", "text")),
        ("hash_texts", (b"no key", ["text"])),
        ("hash_texts", (KEYED.key,)),
        ("word_grams", (("text",), 1, 1)),
        ("word_grams", (["text", b"text"], 1, 1)),
        ("word_grams", (["text"], 1, 2**64)),
        ("are_unspaced", (KNOWN, ("text",))),
        ("are_unspaced", (KNOWN, ["text", None])),
        ("are_unspaced", (None, ["text"])),
        ("n_grams", ("text", 0, 1, 1)),
        ("n_grams", ("text", -1, 1, 1)),
        ("n_grams", (b"bytes", 1, 1, 1)),
        ("n_grams", ("text", 1, -1, 1)),
        ("n_grams", ("text", 1, 2**64, 1)),
        ("n_grams", ("text", 1, 1)),
        ("minwise", ("text", 5, 1, 1, 8192, 2)),
        ("minwise", ("text", 5, 1, 1, 100, 2)),
        ("minwise", ("text", 5, 1, 1, 64, 3)),
        ("minwise", ("text", 5, 1, 1, 64, 16)),
        ("minwise", ("text", 5, 1, 1, 0, 2)),
        ("smallest", ("text", 5, 1, 1, 4097)),
        ("smallest", ("text", 5, 1, 1, 0)),
        ("folded", ("no table", "text")),
        ("letters", (None, "text")),
        ("signs", (("",),)),
        ("signs", (("x",),)),
        ("signs", (("x" * 33,),)),
        ("signs", (("xy",) * 65,)),
        ("signs", ((b"xy",),)),
        ("signs", (["xy", "x"],)),
        ("signs", (1,)),
        ("signs", ()),
        ("holds_any", ("text", ("xy",))),
        ("holds_any", (b"text", SIGNS)),
        ("holds_any", ("text",)),
        ("cut_numbers", (CUT, 1, 1, -1)),
        ("cut_numbers", (CUT, 1, 1, 256)),
        ("cut_numbers", (CUT, "1", 1, 12)),
        ("cut_numbers", ("text", 1, 1, 12)),
        ("cut_numbers", (CUT, 1, 1)),
        ("cut_standing", (CUT, ["x"])),
        ("cut_standing", (CUT, ["xy"] * 65)),
        ("cut_standing", (CUT, [b"xy"])),
        ("cut_standing", (CUT, 1)),
        ("cut_standing", ("text", ["xy"])),
        ("cut_standing", (CUT,)),
        ("longer", (("text",), 1)),
        ("longer", (["text", b"text"], 1)),
        ("longer", (["text"], -1)),
        ("cut_longest", (CUT, 1, 65)),
        ("cut_longest", (CUT, -1, 3)),
        ("cut_longest", (KNOWN, 1, 3)),
        ("weights", ([],)),
        ("weights", ("word 1",)),
        ("weights", (b"word 1\nword one\n",)),
        ("weights", (b"word\n",)),
        ("weights", (b"word " + b"1" * 70,)),
        ("weights", (b"\xff\xfe 1\n",)),
        ("weights", (b"\xed\xa0\x80 1\n",)),
        ("core_words", (["word"], 65, WEIGHTS, 1.0)),
        ("core_words", (["word"], -1, WEIGHTS, 1.0)),
        ("core_words", (["word", 1], 4, WEIGHTS, 1.0)),
        ("core_words", (("word",), 4, WEIGHTS, 1.0)),
        ("core_words", (["word"], 4, {}, 1.0)),
        ("core_words", (["word"], 4, WEIGHTS, "text")),
        ("has_unspaced", (None, "text")),
        ("chinese_runs", (None, "text")),
        ("chinese_runs", (KNOWN, b"text")),
        ("chinese_runs", (KNOWN,)),
        ("has_prose", (None, "text", 10, 40)),
        ("has_prose", (KNOWN, "text", -1, 40)),
        ("has_prose", (KNOWN, "text", 10)),
        ("cut_text", (KNOWN, "text", b"no key", True)),
        ("cut_text", (KNOWN, "text", KEYED.key)),
        ("cut_text", (KNOWN, b"text", KEYED.key, True)),
        ("cut_text", (None, "text", KEYED.key, True)),
        ("cut_text", (CUT, "text", KEYED.key, True)),
        ("cut_without", (CUT, (1,))),
        ("cut_without", (CUT, ["text"])),
        ("cut_without", (None, [1])),
        ("cut_sentences", (None,)),
        ("cut_sentences", ()),
        ("cut_letters", (KNOWN,)),
        ("cut_lines", ("text",)),
        ("cut_shorts", (CUT, -1)),
        ("cut_shorts", (CUT,)),
        ("cut_counted", (CUT, 6, b"no key", ["text"], 128)),
        ("cut_counted", (CUT, 6, KEYED.key, ["text", 1], 128)),
        ("cut_counted", (CUT, 6, KEYED.key, ("text",), 128)),
        ("cut_counted", (CUT, 6, KEYED.key, ["text"], -1)),
        ("cut_counted", (CUT, -1, KEYED.key, ["text"], 128)),
        ("cut_counted", (KNOWN, 6, KEYED.key, ["text"], 128)),
        ("cut_counted", (CUT, 6, KEYED.key, ["text"])),
        ("cut_lengths", (None,)),
        ("cut_hash", (CUT, b"no key")),
        ("cut_hash", (None, KEYED.key)),
        ("cut_ends", (CUT, -1, 8)),
        ("cut_ends", (CUT, 16, 2**16)),
        ("cut_ends", (CUT, 16)),
        ("cut_title", (CUT, ["渡口"] * 65, 1, 1, 9, 2, 8, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ["渡口", 1], 1, 1, 9, 2, 8, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ("渡口",), 1, 1, 9, 2, 8, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ["渡口"], 1, 1, -1, 2, 8, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ["渡口"], 1, 1, 9, 1, 8, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ["渡口"], 1, 1, 9, 2, 33, 0xFFFFFC, 2)),
        ("cut_title", (CUT, ["渡口"], 1, 1, 9, 2, 8, 0xFFFFFC)),
        ("equal_entries", (bytes(4), bytes(4), 3)),
        ("equal_entries", (bytes(4), bytes(4), 16)),
        ("equal_entries", (bytes(4), "text", 2)),
        ("equal_entries", (bytes(4), bytes(4))),
        ("may_be_alike", (1, 1, bytes(8), 1, 1, bytes(4), bytes(99), 2, 0.5, 0.1, 0.8)),
        ("may_be_alike", (1, 1, b"", 1, 1, b"", bytes(99), 2, 0.5, 0.1, 0.8)),
        ("may_be_alike", (1, 1, bytes(8), 1, 2**32, b"", bytes(99), 2, 0.5, 0.1, 0.8)),
        ("may_be_alike", (1, 1, bytes(8), 1, 1, b"", bytes(99), 2, 0.5, 0.1, "text")),
        ("may_be_alike", (1, 1, bytes(8), 1, 1, b"", "text", 2, 0.5, 0.1, 0.8)),
        ("lacking", ("text", 2, 8, 1, 1, 1, [1] * 257)),
        ("lacking", ("text", 2, 8, 1, 1, 1, (1,))),
        ("lacking", ("text", 2, 8, 1, 1, 1, ["text"])),
        ("lacking", ("text", 2, 1, 1, 1, 1, [1])),
        ("lacking", ("text", 0, 1, 1, 1, 1, [1])),
        ("lacking", (b"text", 2, 8, 1, 1, 1, [1])),
        ("packed_keys", ([1], 9, b"k")),
        ("packed_keys", ([1], 0, b"k")),
        ("packed_keys", ([1, -1], 5, b"k")),
        ("packed_keys", ([2**64], 5, b"k")),
        ("packed_keys", (["1"], 5, b"k")),
        ("packed_keys", (1, 5, b"k")),
        ("packed_keys", ([1], 5, "k")),
        ("packed_keys", ([1], 5, b"k" * 17)),
        ("packed_keys", ([1], 5)),
        ("shares_of_rows", ({b"r": "text"}, ord, b"kux", b"m", b"rej", 1)),
        ("shares_of_rows", ({"r": b""}, ord, b"kux", b"m", b"rej", 1)),
        ("shares_of_rows", ({b"r": b""}, len, b"kux", b"m", b"rej", 2**64)),
        ("shares_of_rows", ({b"r": b""}, ord, b"kux", b"m", b"rej")),
        ("shares_of_rows", ({b"rr": b""}, ord, b"kux", b"m", b"rej", 1)),
        ("shares_of_rows", ({b"r": b""}, 1, b"kux", b"m", b"rej", 1)),
        ("shares_of_rows", ([b"r"], ord, b"kux", b"m", b"rej", 1)),
        ("packed_record", (256, (1,), 5, "url", b"", b"")),
        ("packed_record", (1, (2**64,), 5, "url", b"", b"")),
        ("packed_record", (1, ("1",), 5, "url", b"", b"")),
        ("packed_record", (1, 1, 5, "url", b"", b"")),
        ("packed_record", (1, (1,), 9, "url", b"", b"")),
        ("packed_record", (1, (1,) * 256, 5, "url", b"", b"")),
        ("packed_record", (1, (1,), 5, "u" * 65_536, b"", b"")),
        ("packed_record", (1, (1,), 5, b"url", b"", b"")),
        ("packed_record", (1, (1,), 5, "url", "", b"")),
        ("packed_record", (1, (1,), 5, "url", b"", None)),
        ("packed_record", (1, (1,), 5, "url", b"")),
        ("witness_line", (b"written", bytes(7), 1, 1, 1, False, b"-", 512)),
        ("witness_line", (b"written", bytes(8), -1, 1, 1, False, b"-", 512)),
        ("witness_line", (b"written", bytes(8), 1, 1, 2**64, False, b"-", 512)),
        ("witness_line", (b"written", bytes(8), 1, 1, 1, False, b"-" * 406, 512)),
        ("witness_line", (b"w" * 5000, bytes(8), 1, 1, 1, False, b"-", 512)),
        ("witness_line", (b"written", bytes(8), 1, 1, 1, False, b"-", 5000)),
        ("witness_line", ("written", bytes(8), 1, 1, 1, False, b"-", 512)),
        ("witness_line", (b"written", bytes(8), 1, 1, 1, False, b"-")),
        ("upper_halves", (bytes(3), 1, 1, 1)),
        ("upper_halves", ("text", 1, 1, 1)),
        ("stood", (bytes(4), 1, TABLE[:222], True)),  # three buckets
        ("stood", (bytes(4), 1, TABLE[:292], True)),
        ("stood", (bytes(4), 1, b"", True)),
        ("stood", (bytes(4), 2**16 + 1, TABLE, True)),
        ("stood", (bytes(4), 1, bytes(74 * 2**17), True)),
        ("stood", (bytes(4), 1, memoryview(bytes(297))[1:], True)),
        ("note", (bytes(4), 1, 32, TABLE)),
        ("note", (bytes(4), 0, 1, TABLE)),
        ("note", (bytes(3), 1, 1, TABLE)),
        ("note", (bytes(4), 3, 1, TABLE)),
        ("note", (bytes(4), 2, 1, TABLE)),
        ("note", (bytes(4), 1, 1, bytes(TABLE))),
        ("note", (bytes(4), 1, 1)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 32, TABLE, None)),
        ("count_page", (bytes(4), 2, 1, 1, 1, TABLE, 1, TABLE, None)),
        ("count_page", ([1], 1, 1, 1, 1, TABLE, 1, TABLE, None)),
        ("count_page", (bytes(3), 1, 1, 1, 1, TABLE, 1, TABLE, None)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 1, TABLE, 2**32)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 1, TABLE, -1)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 1, TABLE, "1")),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 1, TABLE)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, 1, TABLE[4:], None)),
        ("count_page", (bytes(4), 1, 1, 1, 1, TABLE, None, bytes(TABLE), None)),
        ("are_common", (bytes(4), 1, 1, 1, 1, 16, TABLE, 22, TABLE[4:])),
        ("are_common", (bytes(4), 1, 1, 1, 1, 16, TABLE, -1, TABLE)),
        ("are_common", (bytes(5), 1, 1, 1, 1, 16, TABLE, 22, TABLE)),
        ("are_common", (bytes(4), 1, 1, 1, 1, 16, TABLE, 22)),
        ("cut_shingled", (None, 1, 1, 5, 64, 2, 80, 16, 4, 10, 24, 4)),
        ("cut_shingled", ("text", 1, 1, 5, 64, 2, 80, 16, 4, 10, 24, 4)),
        ("cut_shingled", (CUT, 1, 1, 5, 100, 2, 80, 16, 4, 10, 24, 4)),
        ("cut_shingled", (CUT, 1, 1, 5, 64, 2, 80, 16, 3, 10, 24, 4)),
        ("cut_shingled", (CUT, 1, 1, 5, 64, 2, -1, 16, 4, 10, 24, 4)),
        ("cut_shingled", (CUT, 1, 1, 5, 64, 2, 80, 16, 4, 0, 24, 4)),
        ("cut_shingled", (CUT, 1, 1, 5, 64, 2, 80, 16, 4, 10, 24, 4097)),
        ("cut_shingled", (CUT, 1, 1, 5, 64, 2, 80, 16, 4, 10, 24)),
    ],
)
def test_what_cannot_be_is_an_error(kernels: Kernels, function: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
        getattr(kernels, function)(*arguments)


@pytest.mark.parametrize("given_key", [KEYED, Keyed()], ids=["keyed", "open"])
def test_a_list_of_what_is_no_text_is_refused(kernels: Kernels, given_key: Keyed) -> None:
    with pytest.raises(TypeError):
        given_key.every(["text", None])  # type: ignore[list-item]
    with pytest.raises(TypeError):
        kernels.hash_texts(kernels.prepared(b"", True), ("text",))  # type: ignore[arg-type]


@given(TEXT)
@settings(max_examples=40, deadline=None)
def test_what_was_read_is_the_same_where_its_sentences_are_at_hand(text: str) -> None:
    """As they come from another process."""
    held = read(text, KEYED)
    assert isinstance(held, NativeText)
    listed = from_sentences(held.sentences, KEYED)
    assert told(listed) == told(held)
    assert told(without_some(listed)) == told(without_some(held))
    assert Shingles.of(listed, CascadeParameters()) == Shingles.of(held, CascadeParameters())


def test_a_text_is_as_it_was_while_more_are_made_of_it() -> None:
    text = "".join(f"第{number}班渡船开航了，一共{number * 7}人。" for number in range(300))
    held = read(text, KEYED)
    before = told(held)
    less = without_some(held)
    after = told(less)
    assert len(less.lines) == 200
    assert less.without(frozenset()) is less
    assert told(held) == before
    del held
    assert told(less) == after


def test_an_error_of_whoever_tells_of_characters_goes_through(kernels: Kernels) -> None:
    def fails(number: int) -> bytes:
        raise MemoryError(number)

    with pytest.raises(MemoryError):
        kernels.letters(kernels.characters(fails), "渡口")
    with pytest.raises(MemoryError):
        kernels.has_prose(kernels.characters(fails), "渡口", 1, 1)
    with pytest.raises(MemoryError):
        kernels.cut_text(kernels.characters(fails), "渡口", KEYED.key, True)
    with pytest.raises(ValueError, match="no block"):
        kernels.letters(kernels.characters(lambda number: b"few"), "渡口")
    with pytest.raises(TypeError):
        kernels.letters(kernels.characters(lambda number: "text"), "渡口")  # type: ignore[arg-type, return-value]


def test_a_module_of_another_version_is_not_used(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARDUP_PURE", raising=False)
    assert compiled._load() is kernels
    monkeypatch.setattr(compiled, "_VERSION", kernels.VERSION + 1)
    assert compiled._load() is None
    monkeypatch.undo()
    monkeypatch.setenv("NEARDUP_PURE", "1")
    assert compiled._load() is None


def test_somebody_is_told_whether_it_is_in_use() -> None:
    with_it, without = both(compiled.sentence)
    assert with_it == "The compiled kernels are in use."
    assert "compiler" in without
