"""The compiled module returns what the functions of Python return, on every text; without it they do the work."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing import compiled, mix_one
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.methods.cascade import reading
from scrapy_neardup.methods.cascade.reading import TitleWords
from scrapy_neardup.state.boilerplate import Counts
from scrapy_neardup.text import characters
from scrapy_neardup.text.normalize import expand, letters, normalize
from scrapy_neardup.text.samples import TEXTS, TRADITIONAL
from scrapy_neardup.text.sentences import SegmentedText, SketchForm, has_prose, segment
from scrapy_neardup.text.tokens import Segmenter, core_words, jieba_file, read_weights, words

pytestmark = pytest.mark.skipif(compiled.kernels is None, reason="The compiled module was not built here.")

KEYED = Keyed(bytes(range(32)))
KNOWN: Any = compiled.kernels and characters.known_characters()
WHOLE: Any = compiled.kernels and compiled.kernels.cut_text(KNOWN, "渡口。", KEYED.secret, *KEYED.drawn, True, [])
CUT: Any = WHOLE and WHOLE[0]
LEXICON: Any = compiled.kernels and compiled.kernels.lexicon("渡口 1\n".encode(), b"", 1)
#: A table of four buckets, each a block of its own.
TABLE = bytearray(4 * (32 + 32 + 8 + 4))
#: Characters with a treatment of their own, among all there are, also lone surrogates.
SPECIAL = (
    "。！？；!?;.\r\n\u2028\u2029”’」』）》)]\"' \t\u3000_-*，：（1a\0ß\u0130Σς\u00ad\u200b\ufeff\u0301\u0316\u3099"
    "\u11a8\u1161가ｶﾞ①ﬁⅧ船渡的\ud800\udfff\U0001f600\U00020000\u0e40\u00a0…℃㎡％９／\u200d"
    "\u115f\u1160\u3164\uffa0\u034f\u17b4\ufe0f\u206a\U0001d173\U000e0041"
)
CHAR = st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_categories=()), st.sampled_from("船渡口开航。 a."))
TEXT = st.one_of(st.text(CHAR, max_size=60), st.text(st.sampled_from("渡口a。1"), max_size=9).map(lambda few: few * 80))
HOSTILE = (
    *("", "\0", "\ud800" * 300, "船" * 40_000, "。" * 40_000, "a." * 20_000, " " * 40_000, "。船" * 20_000),
    *("\U0010ffff" * 9_000, "".join(map(chr, range(0x10000))), "1" * 9999 + "a2" * 9999),
)
FORMS = (
    SketchForm(5, 512, 2, 10, 24, 4, 12, 3, 2, 12, 16, 8),
    SketchForm(1, 64, 8, 1, 1, 128, 0, 255, 255, 255, 1, 0),
    SketchForm(300, 1024, 1, 90, 2, 1, 2, 1, 0, 0, 0, 1),
)


@pytest.fixture
def kernels() -> Kernels:
    assert compiled.kernels is not None
    return compiled.kernels


def both(call: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of a call with the module and without."""
    with pytest.MonkeyPatch.context() as patched:
        native = call()
        patched.setattr(compiled, "kernels", None)
        return native, call()


def cut(text: SegmentedText) -> list[object]:
    found: list[object] = [text.size, text.body, text.sentences, text.lines, text.text, text.letters]
    return [*found, *(text.line_hashes(least).tolist() for least in (0, 1, 2, 6, 5000))]


def answers(text: SegmentedText) -> list[object]:
    found = cut(text)
    found += [text._make_sketch(form) for form in FORMS]
    grams = [text.hashes.gram(one) & 0xFFFF for one in ("渡口", "口a", "a渡", "\ud800\ud800", "口口a")]
    return [*found, *(sorted(text.missing_grams(grams, 2, longest, 0xFFFF)) for longest in (2, 4))]


def without_some(text: SegmentedText) -> SegmentedText:
    """The text without lines here and there, and all lines equal to one of these."""
    return text.without(frozenset(text.line_hashes().tolist()[::3]))


def title_words(text: str) -> list[list[str]]:
    """Words that may be those of a title, of scripts with spaces and without, and more than the module takes."""
    letters = normalize(text).replace(" ", "").replace("\n", "")[:99]
    runs = [letters[at : at + 1 + at % 12] for at in range(len(letters))]
    unspaced = [run for run in runs if characters.has_unspaced(run)]
    spaced = normalize(text).split()[:20]
    return [[], unspaced[:20], unspaced[:20] * 2, runs[:20], spaced + runs[:20] + spaced, (unspaced or ["渡口"]) * 65]


#: Each function with two implementations.
STAGES: dict[str, Callable[[str], object]] = {
    "normalize": normalize,
    "letters": letters,
    "hashes": lambda text: [KEYED.of(text), OPEN.of(text), KEYED.every([text, text[1:], text[:7]])],
    "segmented text": lambda text: [*answers(segment(text, KEYED)), segment(text[1:], KEYED, [text, ""]).others],
    "text of a state without secret": lambda text: cut(segment(text, OPEN)),
    "text without some lines": lambda text: answers(without_some(segment(text, KEYED))),
    "title": lambda text: [
        TitleWords(words, segment(text, KEYED)).encode(most) for words in title_words(text) for most in (1, 3, 255)
    ],
    "words": lambda text: [
        *(words(normalize(text), singles=singles) for singles in (False, True)),
        *(core_words(normalize(text), count) for count in (0, 1, 4, 99)),
    ],
    "prose": lambda text: [has_prose(text, needed) for needed in (-1, 0, 1, 15, 10_000)],
}


@pytest.mark.parametrize("stage", STAGES)
@given(TEXT)
@example("船渡。口渡。")
@example("It cost 3.5 million. Nobody paid.")
@settings(max_examples=60, deadline=None)
def test_a_stage_returns_the_same_both_ways(stage: str, text: str) -> None:
    native, python = both(lambda: STAGES[stage](text))
    assert native == python
    assert type(native) is type(python)


@given(TEXT)
@settings(max_examples=30, deadline=None)
def test_of_title_words_with_one_hash_the_same_one_counts_both_ways(text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "_HASH", 0x1C)
        native, python = both(lambda: STAGES["title"](text))
    assert native == python


@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_returns_the_same_both_ways_on_hostile_texts(stage: str) -> None:
    for text in HOSTILE:
        native, python = both(lambda text=text: STAGES[stage](text))  # type: ignore[misc]
        assert native == python, text[:20]


@pytest.mark.slow
def test_every_character_is_read_the_same() -> None:
    for start in (*range(0, 0x31400, 256), 0xE0000, 0x10FF00):
        chars = list(map(chr, range(start, start + 256)))
        for text in ("".join(chars), ". ".join(chars)):
            native, python = both(lambda text=text: [normalize(text), letters(text), cut(segment(text, KEYED))])  # type: ignore[misc]
            assert native == python, hex(start)


@pytest.mark.parametrize(
    "text", ["船\u00a0来了", "渡口１０％／ＡＢ", "船……来了", "25℃，80㎡", "Straße", "船\u200d来\ufeff了", "①", "\uac00"]
)
def test_frequent_characters_take_the_fast_way(kernels: Kernels, text: str) -> None:
    native, python = both(lambda: normalize(text))
    assert kernels.folded(KNOWN, expand(text), False, False) == native == python


def test_nothing_composes_with_characters_that_are_folded_one_by_one() -> None:
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
    """Several at once, also with characters of all lengths in UTF-8 across a block."""
    texts = ["".join(chr(32 + (7 * place + length) % 90) for place in range(length)) for length in (*range(400), 2000)]
    texts += ["x" * before + char * 3 for char in "aé船\U0001f600\ud800" for before in range(120, 132)]
    expected = [blake2b(text.encode("utf-8", "replace"), key=secret, digest_size=8).digest() for text in texts]
    assert Keyed(secret).every(texts) == [int.from_bytes(one, "big") for one in expected]
    native, python = both(lambda: [segment(text, Keyed(secret)).body for text in texts])
    assert native == python


def test_pages_are_counted_the_same_both_ways() -> None:
    """Pages of a site, of many and of none; copies, empty pages, and pages that repeat a sentence."""
    drawn = np.random.default_rng(8)
    one, other = Counts(), Counts()
    skipped: list[bool] = []
    for step in range(400):
        few = drawn.integers(0, 40, (60, 1, 0, 9)[step % 4], dtype=np.uint32) << np.uint32(13)
        noted = np.concatenate((few, drawn.integers(0, 2**32, 40 * (step % 3), dtype=np.uint32)))
        site, everywhere = f"moor{step % 50}.example" if step % 7 else "", step % 5 > 0
        page = step % 12 if step % 4 == 1 else None

        def count(counts: Counts, noted: Any = noted, site: str = site, how: Any = (everywhere, page)) -> object:
            common = counts.on_site(site, KEYED).is_common(noted)
            done = counts.on_site(site, KEYED).note(noted, everywhere=how[0], page=how[1])
            skipped.append(not done)
            return done, common.dtype, common.tolist()

        turns = iter((one, other))
        native, python = both(lambda count=count, turns=turns: count(next(turns)))  # type: ignore[misc]
        assert native == python
        assert one.everywhere.memory == other.everywhere.memory
        assert step != 399 or any(native[2])
    assert any(skipped)
    assert not all(skipped)
    assert one.rows() == other.rows() != {}
    assert one.rows(changed=True) == other.rows(changed=True)


#: Words that begin alike, and a text of them; few numbers, so that several ways to cut it are equally likely.
HAN_WORD = st.text("渡口船票渡", min_size=1, max_size=4)
HAN_TEXT = st.text("渡口船票开\u3400\u9fd6a1 \n", max_size=40)
WEIGHT = st.one_of(
    st.decimals(min_value=0, max_value=10**6, places=9).map(str),
    st.floats(min_value=0, max_value=1e300).map(repr),
    st.sampled_from(["1.", ".5", "0", "00013.900677652", "9007199254740993", "0.30000000000000004"]),
)


@given(
    st.dictionaries(HAN_WORD, st.integers(0, 9), min_size=1), st.dictionaries(HAN_WORD, WEIGHT, min_size=1), HAN_TEXT
)
@example({"渡": 2, "渡渡": 1}, {"a": "0.5", "渡": "1"}, "渡渡 a 口渡")
@settings(deadline=None)
def test_any_dictionary_cuts_the_same_both_ways(
    tmp_path_factory: pytest.TempPathFactory, dictionary: dict[str, int], weights: dict[str, str], text: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    files = folder / "dictionary.txt", folder / "weights.txt"
    files[0].write_text("".join(f"{word} {number} n\n" for word, number in (*dictionary.items(), ("票", 1))), "utf-8")
    files[1].write_text("".join(f"{word} {number}\n" for word, number in weights.items()), "utf-8")
    segmenter = Segmenter(*files)
    native, python = both(
        lambda: [
            *(segmenter.words(text, singles=singles) for singles in (False, True)),
            *(segmenter.words_and_core(text, count) for count in (0, 1, 4, 99)),
        ]
    )
    assert native == python


@pytest.mark.slow
def test_chinese_is_cut_as_jieba_cuts_it() -> None:
    chance = random.Random(5)
    known = [line.split()[0] for line in jieba_file("dict.txt").read_text(encoding="utf-8").splitlines()]
    every = [chr(code) for code in range(0x3400, 0xA000)]
    texts = [*TEXTS, *TRADITIONAL, *("".join(chance.choices(every, k=40)) for _ in range(2000))]
    for text in (*texts, *("".join(chance.choices(known, k=6)) for _ in range(5000))):
        normalized = normalize(text)
        native, python = both(lambda normalized=normalized: words(normalized, singles=True))  # type: ignore[misc]
        assert native == python


@pytest.mark.slow
def test_no_two_words_of_the_tables_have_one_slot() -> None:
    """As ``slot_for`` in _kernels_words.h tells them apart: by half a hash, near a place from the other half."""
    lines = [line.split()[0] for line in jieba_file("dict.txt").read_text(encoding="utf-8").splitlines()]
    weighted, seen = read_weights()[0], dict[int, list[int]]()
    entries = {*weighted, *(word[:end] for word in lines for end in range(1, len(word) + 1))}
    for entry in entries:
        hashed = 1
        for char in entry:
            hashed = mix_one(hashed + ord(char)) | 1
        seen.setdefault(hashed >> 32 | 1, []).append(hashed & 0xFFFFF)
    alike = [sorted(places) for places in seen.values() if len(places) > 1]
    assert len(entries) > 500_000
    assert all(later - earlier > 1000 for places in alike for earlier, later in pairwise(places))


def test_a_text_does_not_change_while_others_are_made_of_it() -> None:
    held = segment("".join(f"第{number}班渡船开航了，一共{number * 7}人。" for number in range(300)), KEYED)
    before, less = answers(held), without_some(held)
    after = answers(less)
    assert len(less.lines) == 200
    assert less.without(frozenset()) is less
    assert answers(held) == before
    assert answers(SegmentedText(held.sentences, held.lines, KEYED)) == before
    del held
    assert answers(less) == after


# -- wrong arguments --------------------------------------------------------------------------------------------------

FORM = tuple(FORMS[0])
#: Arguments that each function takes.
RIGHT: dict[str, tuple[Any, ...]] = {
    "hash_texts": (KEYED.secret, ["text"]),
    "folded": (KNOWN, "text", True, True),
    "lexicon": (b"word 1\n", b"word 1\n", 2),
    "words": (KNOWN, "text", LEXICON, True, 4, True),
    "cut_text": (KNOWN, "text", KEYED.secret, *KEYED.drawn, True, ["text"]),
    "cut_without": (CUT, [1]),
    "cut_strings": (CUT, False),
    "cut_hashes": (CUT, 1),
    "cut_sketch": (CUT, FORM),
    "cut_title": (CUT, KNOWN, ["渡口", "a"], 0xFFFFFC, 1, 2, 8, 9),
    "cut_lacking": (CUT, 2, 8, 1, [1]),
    "fingerprint64": (b"bytes",),
    "are_common": (bytes(4), 1, 1, 1, 16, TABLE, 22, TABLE),
    "count_page": (bytes(4), False, 1, 1, 1, TABLE, 1, TABLE),
}
#: Of a function, values that are out of bounds, by the place of the argument.
WRONG: list[tuple[str, dict[int, Any]]] = [
    *(("hash_texts", {0: bytes(65)}), ("hash_texts", {1: ["text", b"text"]}), ("cut_text", {2: bytes(65)})),
    ("cut_text", {6: ["text", 1]}),
    *(("lexicon", {2: -1}), ("lexicon", {1: b"word\n"}), ("lexicon", {0: b"word 1\nword one\n"})),
    *(("lexicon", {1: b"word %s" % (500 * b"1")}), ("lexicon", {0: b"%s 1" % (10_000 * b"a")})),
    *(("lexicon", {2: 0}), ("lexicon", {0: b"word 1one\n"}), ("lexicon", {1: b"word 1\n\n"})),
    ("lexicon", {1: b"".join(b"word %d\n" % number for number in range(2**15)), 2: 2**15}),
    *(("words", {2: KNOWN}), ("words", {4: -1}), ("cut_text", {0: CUT}), ("cut_without", {1: ["text"]})),
    *(("cut_strings", {0: KNOWN}), ("cut_hashes", {0: KNOWN}), ("cut_hashes", {1: -1})),
    *(("cut_sketch", {1: FORM[1:]}), *(("cut_sketch", {1: (*FORM[:n], -1, *FORM[n + 1 :])}) for n in range(12))),
    *(("cut_sketch", {1: (*FORM[:n], 3, *FORM[n + 1 :])}) for n in (1, 2)),
    *(("cut_sketch", {1: (*FORM[:n], 9999, *FORM[n + 1 :])}) for n in (1, 2, 5, 7, 8, 9, 10, 11)),
    *(("cut_title", change) for change in ({2: ["渡口"] * 65}, {2: ["渡口", 1]}, {6: -1}, {7: -1})),
    *(("cut_lacking", {4: [1] * 257}), ("cut_lacking", {2: 1}), ("cut_lacking", {1: 0, 2: 1})),
    *(("count_page", {7: TABLE[:228]}), ("are_common", {0: "text"})),
    *(("are_common", {7: TABLE[4:]}), ("are_common", {7: bytearray()}), ("are_common", {6: -1})),
    ("count_page", {5: bytearray(2**17 * 76)}),
]


def test_wrong_arguments_are_errors(kernels: Kernels) -> None:
    assert {*RIGHT} | {"characters"} == {name for name in vars(Kernels) if name.islower() and name[0] != "_"}
    calls: list[tuple[str, dict[int, Any]]] = [*((name, {}) for name in RIGHT), *WRONG]
    # Anything is true or false.
    calls += [
        (name, {n: object()}) for name, right in RIGHT.items() for n in range(len(right)) if right[n] not in (0, 1)
    ]
    for name, changes in calls:
        arguments = [changes.get(place, one) for place, one in enumerate(RIGHT[name])]
        if not changes:
            getattr(kernels, name)(*arguments)
            continue
        with pytest.raises((TypeError, ValueError, OverflowError, BufferError)):
            getattr(kernels, name)(*arguments)
        for number in ([], [None] * 30):
            with pytest.raises(TypeError, match="takes exactly"):
                getattr(kernels, name)(*number)


def test_an_error_while_characters_are_described_goes_through(kernels: Kernels) -> None:
    def fails(number: int) -> bytes:
        raise MemoryError(number)

    for call in (
        lambda: kernels.folded(kernels.characters(fails), "渡口", True, True),
        lambda: kernels.cut_text(kernels.characters(fails), "渡口", KEYED.secret, *KEYED.drawn, False, []),
    ):
        with pytest.raises(MemoryError):
            call()
    with pytest.raises(ValueError, match="no block"):
        kernels.folded(kernels.characters(lambda number: b"few"), "渡口", True, True)
    with pytest.raises(TypeError):
        kernels.folded(kernels.characters(lambda number: "text"), "渡口", True, True)  # type: ignore[arg-type, return-value]


def test_a_module_of_another_version_is_not_used(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEARDUP_PURE", raising=False)
    assert compiled._load() is kernels
    monkeypatch.setattr(compiled, "_VERSION", kernels.VERSION + 1)
    assert compiled._load() is None
    monkeypatch.undo()
    monkeypatch.setenv("NEARDUP_PURE", "1")
    assert compiled._load() is None
