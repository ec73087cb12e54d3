"""The stages from text to words: tables of cases, and promises for any text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.compiled import Kernels
from scrapy_neardup.hashing.keyed import OPEN
from scrapy_neardup.text.characters import HAN, KATAKANA, SINGLES, has_unspaced
from scrapy_neardup.text.marking import own_letters, with_letters
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.sentences import SketchForm, has_prose, segment, sentences
from scrapy_neardup.text.titles import article_title, title_parts
from scrapy_neardup.text.tokens import core_words, numbers, segmenter_name, spaced_words, words

#: The dictionary is read on first use, which takes longer than a test of one text may.
PATIENT = settings(deadline=None)
#: Every text that Python can hold, lone surrogates included, and text with many of the marks that the stages look for.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
MARKED_TEXT = st.text(
    st.sampled_from('船河三12aB .,。！？；;!?"”’)]\r\n\u2028\u200b\u3000_|-—:网·ｌ１Ａ\u0301\ud800'), max_size=60
)
TEXT = st.one_of(ANY_TEXT, MARKED_TEXT)

# Spelling


def test_a_text_gets_one_spelling() -> None:
    for text, expected in [
        ("", ""),
        ("渡口開航", "渡口開航"),
        ("The Ferry RETURNS", "the ferry returns"),
        ("ＦＥＲＲＹ　２０２４", "ferry 2024"),
        ("票价：３．５元！", "票价:3.5元!"),
        ("Ｆerry 渡口 No．７", "ferry 渡口 no.7"),
        ("oﬃce ﬁle", "office file"),
        ("Straße", "strasse"),
        ("㎏ ㎡ ①", "kg m2 1"),
        ("ｶﾞ", "ガ"),
        ("e\u0301cole", "école"),
        ("ÉCOLE", "école"),
        ("等……", "等......"),
        ("۲۴٬۸۱۱ ٤٥ ४२", "24٬811 45 42"),
        ("a\u200bb", "ab"),
        # Of more than thirty marks out of order thirty stay. Marks in order all stay.
        ("e" + "\u0316\u0300" * 15, "è" + "\u0316" * 15 + "\u0300" * 14),
        ("船" + "\u0300\u0316" * 250 + "河", "船" + "\u0316" * 15 + "\u0300" * 15 + "河"),
        ("船" + "\u0316" * 500 + "河", "船" + "\u0316" * 500 + "河"),
    ]:
        assert normalize(text) == unicodedata.normalize("NFKC", expected)


@pytest.mark.slow
def test_normalising_twice_changes_no_single_character() -> None:
    for start, end in ((0, 0x32400), (0xE0000, 0xE0200), (0x10FF00, 0x110000)):
        once = [normalize(chr(code)) for code in range(start, end)]
        assert [char for char in once if normalize(char) != char] == []


def test_only_letters_and_digits_are_left() -> None:
    for text, expected in [
        ("", ""),
        ("。，！ \n\t_-", ""),
        ("渡口，今天“开航”。", "渡口今天开航"),
        ("渡口，今天「開航」。", "渡口今天開航"),
        ("two boats, 3.5 tons", "twoboats35tons"),
        ("船a1_b2", "船a1b2"),
        ("渡\u200b口\ufeff开\u200d航\u2060", "渡口开航"),
        ("soft\u00adhyphen", "softhyphen"),
        ("paro\u0306m", "parom"),
        ("паром 7", "паром7"),
        ("船🚢河", "船河"),
    ]:
        assert letters(text) == expected


@PATIENT
@given(TEXT)
def test_letters_of_letters_are_the_same(text: str) -> None:
    once = letters(normalize(text))
    assert letters(once) == once
    assert all(char.isalnum() for char in once)


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u180b\u200b\u200c\u200d\u202e\u2060\u2065\u206f\u3164\ufe0f\ufeff\uffa0"
)


def test_invisible_characters_and_marks_change_no_letters() -> None:
    for mark in (*INVISIBLE, "\U0001d173", "\U000e0020", "\U000e0100"):
        for text in ("渡口Ferry７", "می‌خواهم", "क्षेत्र"):
            hidden = mark.join(text)
            assert normalize(hidden) == normalize(text), hex(ord(mark))
            assert letters(hidden) == letters(text), hex(ord(mark))
        assert letters(mark) == ""
        assert has_prose(mark * 100, 1) is False
    for beside in "\u115e\u1161\u17b3\u3163\u3165\uff9f\uffa1":  # the ranges of invisible characters end here
        assert letters(beside) == beside, hex(ord(beside))
    for mark in "\u200b\ufeff \u3000，,_“—":
        assert letters(normalize(mark.join("渡口Ferry７"))) == "渡口ferry7", hex(ord(mark))


# Long enough lines, and lines as hashes


FORM = SketchForm(5, 64, 2, 3, 4, 4, 2, 3, 3, 12, 3, 2)


def test_lines_of_ten_letters_count_as_prose() -> None:
    for text, most in (("", 0), ("首页\n" * 20, 0), ("渡口今天早上开航啦", 0), ("渡口今天早上开航了，啊！", 10)):
        for lines in (1, 2):
            assert has_prose(f"{text}\n" * lines, most * lines) is True
            assert has_prose(f"{text}\n" * lines, most * lines + 1) is False, text


@pytest.mark.parametrize("kernels", [compiled.kernels, None], ids=["in use", "Python"])
@given(text=TEXT)
def test_a_segmented_text_knows_its_lines(kernels: Kernels | None, text: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiled, "kernels", kernels)
        found = segment(text, OPEN)
    expected = [line for line in map(letters, sentences(normalize(text))) if line]
    assert (found.lines, found.size) == (expected, len("".join(expected)))
    assert found.line_hashes().tolist() == list(map(OPEN.short, expected))
    short = [len(line) < 3 for line in expected]
    is_menu = [short[at] and any(short[max(at - 1, 0) : at] + short[at + 1 : at + 2]) for at in range(len(short))]
    counted = [line for line, few, menu in zip(expected, short, is_menu, strict=True) if not few or menu]
    assert found.line_hashes(3).tolist() == list(map(OPEN.short, counted))
    assert found.without(frozenset(map(OPEN.short, expected[:1]))).lines == [
        line for line in expected if line != expected[0]
    ]
    assert found.sketch(FORM) == segment(text, OPEN).sketch(FORM)
    asked = [OPEN.gram(gram) for gram in ("船河", "a三1", "12", "河网")]
    there = [OPEN.gram(found.letters[at : at + n]) for n in (2, 3) for at in range(len(found.letters) - n + 1)]
    assert sorted(found.missing_grams(asked, 2, 3, 2**64 - 1)) == sorted(set(asked) - set(there))


# Sentences


def test_sentences_end_where_a_reader_would_end_them() -> None:
    for text, expected in [
        ("", []),
        (" \n\t\u3000", []),
        ("。！？；!?;", []),
        ("船来了", ["船来了"]),
        ("船來了。人散了！誰付錢？", ["船來了", "人散了", "誰付錢"]),
        ("先涨水；后退水;再开船", ["先涨水", "后退水", "再开船"]),
        ("他说：“开船吧。”说完就走了。", ["他说：“开船吧", "说完就走了"]),
        ("他說：「開船吧。」說完就走了。", ["他說：「開船吧", "說完就走了"]),
        ("“停！”她喊。", ["“停", "她喊"]),
        ("真的吗？！真的。。。", ["真的吗", "真的"]),
        ("等一等……船来了", ["等一等……船来了"]),
        ("The boat came. Nobody paid.", ["The boat came", "Nobody paid."]),
        ("It cost 3.5 million. Nobody paid.", ["It cost 3.5 million", "Nobody paid."]),
        ("See ferry.example today.", ["See ferry.example today."]),
        ("A U.S.-built boat", ["A U.S.-built boat"]),
        ("Mr. Tern rowed.", ["Mr", "Tern rowed."]),
        ('He said "go." Then he left.', ['He said "go', '" Then he left.']),
        ("(It rained.) We left.", ["(It rained", "We left."]),
        ("Where?Here!There", ["Where", "Here", "There"]),
        ("船长 Tern 来了。He paid 3.5 yuan. 走了", ["船长 Tern 来了", "He paid 3.5 yuan", "走了"]),
        ("第一行\n第二行\r\n\r\n第三行\u2028第四行\u2029", ["第一行", "第二行", "第三行", "第四行"]),
        ("  船 来 了  。\u3000人散了\u3000", ["船 来 了", "人散了"]),
        ("船\u200b来了。人散了", ["船\u200b来了", "人散了"]),
        (normalize("船来了．\u3000人散了｡谁付钱？"), ["船来了", "人散了", "谁付钱"]),
    ]:
        assert sentences(text) == expected


@PATIENT
@example("MD5: 0f343b0931126a20f133d67c2b018a3b")
@given(TEXT)
def test_sentences_stand_in_the_text_in_order_and_lose_no_letter(text: str) -> None:
    for one in (text, normalize(text)):
        at, found = 0, sentences(one)
        for piece in found:
            assert piece == piece.strip() != ""
            at = one.index(piece, at) + len(piece)
        assert letters("".join(found)) == "".join(map(letters, found)) == letters(one)
    assert with_letters(text) == [(one, own_letters(one)) for one in sentences(text)]


# Words


def test_words_come_in_order() -> None:
    for text, expected in [
        ("", []),
        ("。，！", []),
        ("北京的大桥", ["北京", "大桥"]),
        ("的了在", []),
        ("the ferry-boat isn't late", ["the", "ferry", "boat", "isn", "t", "late"]),
        ("snake_case", ["snake", "case"]),
        ("paid 3.5 of 1,200", ["paid", "3", "5", "of", "1", "200"]),
        ("北京 2024 opened 大桥", ["北京", "2024", "opened", "大桥"]),
        ("паром школа école", ["паром", "школа", "école"]),
        ("한국어 ひらがな", ["한국어", "ひ", "ら", "が", "な"]),
        ("𠀀𠀁", []),
        ("北\u200b京", []),
        ("繁體中文", ["中文"]),  # the dictionary is of simplified words
        ("来到网易杭研大厦", ["来到", "网易", "大厦"]),  # a hidden Markov model would join 杭研
        ("2024年北京大桥", ["2024", "北京", "大桥"]),
        ("ab北京大桥", ["ab", "北京", "大桥"]),
        ("北京3号大桥", ["北京", "3", "大桥"]),
    ]:
        assert words(text) == expected


@PATIENT
@given(TEXT)
def test_every_word_stands_in_the_text_in_order(text: str) -> None:
    at = 0
    for word in words(text):
        assert word
        at = text.index(word, at) + len(word)
    assert set(spaced_words(text)) <= set(words(text, singles=True))


@pytest.mark.slow
def test_the_segmenter_leaves_no_file_in_the_temporary_directory(tmp_path: Path) -> None:
    assert segmenter_name().startswith("jieba 0.")
    code = "from scrapy_neardup.text.tokens import words; assert words('北京的大桥') == ['北京', '大桥']"
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **places}, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_scripts_without_spaces_have_their_first_and_last_characters_and_no_others() -> None:
    for script, edges in [
        (HAN, [(0x3400, 0x9FFF), (0x20000, 0x3FFFF)]),
        (KATAKANA, [(0x30A1, 0x30FF), (0x31F0, 0x31FF)]),
        (SINGLES, [(0xE00, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30A0)]),
    ]:
        for first, last in edges:
            found = [re.match(f"[{script}]", chr(point)) for point in (first - 1, first, last, last + 1)]
            assert [*map(bool, found)] == [False, True, True, False], (hex(first), hex(last))


def test_a_fiftieth_of_unspaced_letters_is_enough() -> None:
    for text in [
        *["អក្សរ", "မြန်မာ", "㐀", "ㇰ", "渡口a", "ひらがな", "ตลาดน", "𠀀"],
        "船" + "a" * 49,
        "a" * 147 + "船" * 3,
    ]:
        assert has_unspaced(text) is has_unspaced(text * 3) is True, text
    others = [
        "oneferryandtwoboats",
        "паромécole2024",
        "Chợnổimởcửatrởlạivàosángthứbảy",
        "한국어는띄어쓴다",
        "ქართულიენა",
    ]
    for text in ["", *others, "ქართულიენა", "船" + "a" * 50, "a" * 148 + "船" * 2]:
        assert has_unspaced(text) is has_unspaced(text * 3) is False, text


def test_numbers_come_in_order() -> None:
    for text, expected in [
        ("", []),
        ("no figures, 没有数字", []),
        ("1,200.5 tons", ["1,200.5"]),
        ("1.2.3.", ["1.2.3"]),
        ("at 9:30 on 3/4", ["9:30", "3/4"]),
        ("2024-03-05", ["2024", "03", "05"]),
        ("5%，10万人", ["5", "10"]),
        ("2024年3月", ["2024", "3"]),
        ("二十三人，三十艘，一百二十吨", ["二十三", "三十", "一百二十"]),
        ("三艘船，两人，一种三角形", ["三", "两"]),
        ("二〇二四年", ["二〇二四"]),
        ("seven ships, seventeen men, seventy-one crates", ["seven", "seventeen", "seventy", "one"]),
        ("two thousand and ninety", ["two", "thousand", "ninety"]),
        ("sevenfold, someone, attention, tent", []),
    ]:
        assert numbers(text) == expected


def test_the_words_that_say_most_come_first() -> None:
    for found, count, expected in [
        ([], 3, []),
        (["大桥"], 0, []),
        (["大桥"], 3, ["大桥"]),
        (["公司", "召回", "电饭煲", "召回"], 2, ["召回", "电饭煲"]),
        (["中国", "渡船"], 1, ["渡船"]),
        (["zzb", "zza", "zzc"], 2, ["zza", "zzb"]),
    ]:
        assert core_words(" ".join(found), count) == core_words(" ".join(found[::-1]), count) == expected


# Titles


def test_a_title_is_left_without_its_site() -> None:
    chinese, english = "新渡口清晨开航", "Ferry back in service"
    ends = ("_本地新闻_河湾网", "|河湾日报", "｜河湾日报", " - 河湾", "-新浪网", " -新浪网", "—河湾在线", "")
    for title, expected in [
        *((f"{chinese}{end}", chinese) for end in ends),
        *((f"{english} {mark} The Daybook", english) for mark in "|-–»_"),
        ("", ""),
        (" \u3000\n", ""),
        ("_ | _", ""),
        (f"河湾网_本地新闻_{chinese}", chinese),
        (f"Home » News » {english}", english),
        ("_河湾网_", "河湾网"),
        ("新渡口开航——走进柳林社区_河湾网", "新渡口开航——走进柳林社区"),
        ("渡口 Ferry 开航 | River News", "渡口 Ferry 开航"),
        ("abc | xyz", "abc"),
        ("Season 2025 - 2026 opens - The Daybook", "Season 2025 - 2026 opens"),
        ("Reed 2 - 1 Mill – The Daybook", "Reed 2 - 1 Mill"),
        ("Fares 2025 - 24 Hours", "Fares 2025"),
        ("Phone 5 - 9to5", "Phone 5"),
    ]:
        assert article_title(title) == expected
    for title in ["新渡口-老码头", "新渡口——一条河的十一年", "新渡口开航——走进柳林社区", "Ferry: twenty-one boats"]:
        assert article_title(title) == title


def test_a_site_that_names_itself_is_left_out_even_if_its_name_is_longer() -> None:
    for title, site, expected in [
        ("Flood - The Riverside Daybook", "The Riverside Daybook", "Flood"),
        ("Flood - THE RIVERSIDE DAYBOOK", " The Riverside Daybook ", "Flood"),
        ("大水_河湾新闻门户", "河湾新闻门户", "大水"),
        ("The Riverside Daybook", "The Riverside Daybook", "The Riverside Daybook"),
        ("Flood - The Riverside Daybook", "Another", "The Riverside Daybook"),
        ("", "The Riverside Daybook", ""),
    ]:
        assert article_title(title, site) == expected


@PATIENT
@given(TEXT, ANY_TEXT)
def test_the_title_of_the_article_is_the_longest_of_the_parts(title: str, site: str) -> None:
    parts = title_parts(title)
    assert all(part and part == part.strip() and part in title for part in parts)
    assert article_title(title) == max(parts, key=len, default="")
    assert article_title(title, site) in {*parts, ""}


# Any text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "units", "size"),
    [
        (sentences, ("a", "船", " ", ".", "”"), 500_000),
        (words, ("的", "龘", "一龘"), 200_000),
        (spaced_words, ("船", "a", "a 船"), 500_000),
        (numbers, ("1", "1.", "一"), 500_000),
        (letters, ("._",), 500_000),
        (normalize, ("\u0316\u0300",), 200_000),
        (article_title, (" ", " _", "-", "a-"), 200_000),
    ],
)
def test_time_grows_with_a_hostile_text(stage: Callable[[str], object], units: tuple[str, ...], size: int) -> None:
    for unit in units:
        large = f"a{unit * (size // len(unit))}b"
        small = f"a{unit * (size // len(unit) // 4)}b"
        stage(small[:10])
        # Quadratic work would take 16 times as long; a floor of 5 ms keeps noise out.
        assert measure_seconds(stage, large) < 12 * max(measure_seconds(stage, small), 0.005), repr(unit)


def measure_seconds(stage: Callable[[str], object], text: str) -> float:
    """The best of three, so that another process on this machine does not count."""
    times = []
    for _ in range(3):
        begun = process_time()
        stage(text)
        times.append(process_time() - begun)
    return min(times)
