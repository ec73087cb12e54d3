"""The stages from text to words: tables of cases, promises for any text, and time that grows with the length alone."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup.text import titles
from scrapy_neardup.text.characters import has_unspaced
from scrapy_neardup.text.lexicon import core_words
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.prose import has_prose
from scrapy_neardup.text.sentences import sentences
from scrapy_neardup.text.shingles import distinct, shingles
from scrapy_neardup.text.titles import article_title, title_parts
from scrapy_neardup.text.tokens import has_spaced_word, numbers, segmenter_name, spaced_words, words

#: The dictionary is read on first use, which takes longer than a test of one text may.
PATIENT = settings(deadline=None)
#: Every text that Python can hold, lone surrogates included.
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
#: Text in which the marks that the stages look for are frequent.
MARKED_TEXT = st.text(
    st.sampled_from('船河三12aB .,。！？；;!?"”’)]\r\n\u2028\u200b\u3000_|-—:网·ｌ１Ａ\u0301\ud800'), max_size=60
)


class TestNormalize:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", ""),
            ("渡口开航", "渡口开航"),
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
        ],
    )
    def test_texts_get_one_spelling(self, text: str, expected: str) -> None:
        assert normalize(text) == expected

    @PATIENT
    @given(st.text(st.characters(exclude_categories=()), max_size=30))
    @example("\u1f50")  # which folding takes apart each time
    def test_a_second_time_does_no_more_than_compose_what_folding_took_apart(self, text: str) -> None:
        once = normalize(text)
        assert unicodedata.normalize("NFKC", normalize(once)) == unicodedata.normalize("NFKC", once)

    @pytest.mark.slow
    @pytest.mark.parametrize("plane", range(17))
    def test_a_second_time_changes_no_single_character(self, plane: int) -> None:
        chars = [chr(code) for code in range(plane << 16, plane + 1 << 16)]
        assert [char for char in chars if normalize(normalize(char)) != normalize(char)] == []

    def test_a_row_of_marks_that_stands_in_texts_is_kept(self) -> None:
        text = "e" + "\u0316\u0300" * 15
        assert normalize(text) == unicodedata.normalize("NFKC", text)

    def test_of_more_than_thirty_marks_out_of_order_the_first_thirty_are_kept(self) -> None:
        assert normalize("船" + "\u0300\u0316" * 250 + "河") == "船" + "\u0316" * 15 + "\u0300" * 15 + "河"

    def test_marks_in_order_stay(self) -> None:
        assert normalize("船" + "\u0316" * 500 + "河") == "船" + "\u0316" * 500 + "河"


class TestLetters:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
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
        ],
    )
    def test_only_letters_and_digits_are_left(self, text: str, expected: str) -> None:
        assert letters(text) == expected

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_a_second_time_changes_nothing(self, text: str) -> None:
        once = letters(normalize(text))
        assert letters(once) == once
        assert all(char.isalnum() for char in once)

    @pytest.mark.parametrize(
        "mark",
        [
            *(
                "\u00ad",
                "\u034f",
                "\u061c",
                "\u115f",
                "\u1160",
                "\u17b4",
                "\u180b",
                "\u200b",
                "\u200c",
                "\u200d",
                "\u202e",
            ),
            *(
                "\u2060",
                "\u2065",
                "\u206f",
                "\u3164",
                "\ufe0f",
                "\ufeff",
                "\uffa0",
                "\U0001d173",
                "\U000e0020",
                "\U000e0100",
            ),
        ],
    )
    def test_what_shows_nothing_makes_no_difference_to_letters_and_words(self, mark: str) -> None:
        for text in ("渡口Ferry７", "می‌خواهم", "क्षेत्र"):
            hidden = mark.join(text)
            assert normalize(hidden) == normalize(text)
            assert letters(hidden) == letters(text)
            assert letters(mark) == ""
            assert has_prose(mark * 100, 1) is False

    @pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u2060", " ", "\u3000", "，", ",", "_", "“", "—"])
    def test_what_stands_between_letters_makes_no_difference(self, mark: str) -> None:
        assert letters(normalize(mark.join("渡口Ferry７"))) == letters(normalize("渡口ferry7"))


class TestLettersOfSentences:
    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_of_the_sentences_of_a_text_no_letter_is_lost(self, text: str) -> None:
        found = sentences(normalize(text))
        assert "".join(map(letters, found)) == letters(normalize(text))


class TestSentences:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            (" \n\t\u3000", []),
            ("。！？；!?;", []),
            ("船来了", ["船来了"]),
            ("船来了。人散了！谁付钱？", ["船来了", "人散了", "谁付钱"]),
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
        ],
    )
    def test_sentences_end_where_a_reader_would_end_them(self, text: str, expected: list[str]) -> None:
        assert sentences(text) == expected

    def test_full_width_marks_end_sentences_once_the_text_is_normalized(self) -> None:
        assert sentences(normalize("船来了．\u3000人散了｡谁付钱？")) == sentences(normalize("船来了. 人散了。谁付钱?"))

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_no_piece_is_empty_or_padded_and_all_stand_in_the_text_in_order(self, text: str) -> None:
        at = 0
        for piece in sentences(text):
            assert piece
            assert piece == piece.strip()
            at = text.index(piece, at) + len(piece)

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_no_letter_is_lost_between_sentences(self, text: str) -> None:
        assert letters("".join(sentences(text))) == letters(text)


class TestShingles:
    @pytest.mark.parametrize(("text", "n"), [("", 1), ("", 9), ("船", 1), ("船", 5), ("渡口开航", 4), ("渡口开航", 2)])
    def test_a_string_has_as_many_as_places_and_a_short_one_has_one(self, text: str, n: int) -> None:
        assert len(shingles(text, n)) == (max(1, len(text) - n + 1) if text else 0)

    @PATIENT
    @given(ANY_TEXT, st.integers(1, 40))
    def test_their_number_follows_from_the_length_for_any_text(self, text: str, n: int) -> None:
        found = shingles(text, n)
        assert found.shape == ((max(1, len(text) - n + 1),) if text else (0,))
        assert found.dtype == np.uint64

    @PATIENT
    @given(ANY_TEXT, ANY_TEXT, st.integers(1, 8))
    def test_a_part_has_the_same_ones_wherever_it_stands(self, before: str, part: str, n: int) -> None:
        if len(part) >= n:
            found = shingles(before + part, n)
            assert found[len(before) :].tolist() == shingles(part, n).tolist()

    @pytest.mark.parametrize(
        ("one", "other"), [("渡口", "口渡"), ("ab", "ba"), ("船", "河"), ("𠀀", "\u0000"), ("aaa", "aa")]
    )
    def test_different_strings_have_different_ones(self, one: str, other: str) -> None:
        assert shingles(one, 3).tolist() != shingles(other, 3).tolist()

    def test_the_values_are_written_down(self) -> None:
        assert shingles("渡口开航了", 4).tolist() == GOLDEN_SHINGLES


GOLDEN_SHINGLES = [0xE62D1DE7F9AF0779, 0x7DE9D1858303C5F0]


class TestDistinct:
    @pytest.mark.parametrize(
        ("hashes", "expected"), [([], []), ([7], [7]), ([7, 7, 7], [7]), ([9, 0, 2**64 - 1, 9, 0], [0, 9, 2**64 - 1])]
    )
    def test_each_is_there_once_and_the_smallest_first(self, hashes: list[int], expected: list[int]) -> None:
        found = distinct(np.array(hashes, np.uint64))
        assert found.tolist() == expected
        assert found.dtype == np.uint64

    def test_halves_of_hashes_stay_halves(self) -> None:
        found = distinct(np.array([5, 2**32 - 1, 5], np.uint32))
        assert (found.tolist(), found.dtype) == ([5, 2**32 - 1], np.dtype(np.uint32))

    @PATIENT
    @given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9)), max_size=60))
    def test_it_is_what_numpy_answers_and_leaves_its_argument_alone(self, hashes: list[int]) -> None:
        given_ones = np.array(hashes, np.uint64)
        assert distinct(given_ones).tolist() == np.unique(given_ones).tolist()
        assert given_ones.tolist() == hashes

    def test_a_text_that_repeats_itself_has_as_many_as_its_period(self) -> None:
        assert len(distinct(shingles("渡口的船今天又开了" * 50, 5))) == 9


class TestWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
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
        ],
    )
    def test_words_come_in_order(self, text: str, expected: list[str]) -> None:
        assert words(text) == expected

    def test_width_and_case_make_no_difference_to_a_normalized_text(self) -> None:
        assert words(normalize("ＦＥＲＲＹ　７　北京")) == ["ferry", "7", "北京"]

    def test_of_traditional_text_those_words_are_found_that_the_dictionary_has(self) -> None:
        assert words("繁體中文") == ["中文"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2024年北京大桥", ["2024", "北京", "大桥"]),
            ("ab北京大桥", ["ab", "北京", "大桥"]),
            ("北京3号大桥", ["北京", "3", "大桥"]),
        ],
    )
    def test_chinese_directly_after_latin_letters_or_digits_is_cut_too(self, text: str, expected: list[str]) -> None:
        assert words(text) == expected

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_every_word_stands_in_the_text_in_order(self, text: str) -> None:
        at = 0
        for word in words(text):
            assert word
            at = text.index(word, at) + len(word)

    @PATIENT
    @given(
        st.lists(
            st.sampled_from(["渡口开航了", "的", "大桥", "ferry", "2024", "アプリ", "の", "第一班船", "𠀀"]), max_size=8
        )
    )
    def test_each_run_is_cut_as_it_is_by_itself(self, runs: list[str]) -> None:
        for singles in (False, True):
            expected = [word for run in runs for word in words(run, singles=singles)]
            assert words(" ".join(runs), singles=singles) == expected

    def test_the_segmenter_names_its_version(self) -> None:
        assert segmenter_name().startswith("jieba 0.")

    @pytest.mark.slow
    def test_no_file_is_left_in_the_temporary_directory(self, tmp_path: Path) -> None:
        code = "from scrapy_neardup.text.tokens import words; assert words('北京的大桥') == ['北京', '大桥']"
        places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(tmp_path))
        subprocess.run([sys.executable, "-c", code], env={**os.environ, **places}, check=True, timeout=60)
        assert list(tmp_path.iterdir()) == []


class TestSpacedWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", []),
            ("渡口 opened in 2024，第3班", ["opened", "in", "2024", "3"]),
            ("アプリのver2を更新", ["ver2"]),
            ("ตลาด 12", ["12"]),
            ("a-b_c a", ["a", "b", "c", "a"]),
        ],
    )
    def test_words_between_spaces_come_in_order(self, text: str, expected: list[str]) -> None:
        assert spaced_words(text) == expected

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_each_is_a_word_of_the_text_too(self, text: str) -> None:
        assert set(spaced_words(text)) <= set(words(text, singles=True))


class TestHoldsSpaced:
    @PATIENT
    @given(st.text(st.sampled_from("aab1 船_é。"), max_size=60), st.text(st.sampled_from("ab1é _船"), max_size=3))
    @example("ab " * 40 + "a", "a")
    @example("ab " * 40 + "ab", "a")
    def test_a_word_stands_if_it_is_one_of_the_words(self, text: str, word: str) -> None:
        assert has_spaced_word(text, word) == (word in spaced_words(text))


class TestHasUnspaced:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", False),
            ("oneferryandtwoboats", False),
            ("паромécole2024", False),
            ("Chợnổimởcửatrởlạivàosángthứbảy", False),
            ("한국어는띄어쓴다", False),
            ("ქართულიენა", False),
            ("អក្សរ", True),
            ("မြန်မာ", True),
            ("㐀", True),
            ("ㇰ", True),
            ("渡口", True),
            ("渡口a", True),
            ("ひらがな", True),
            ("ตลาดน", True),
            ("𠀀", True),
            ("船" + "a" * 49, True),
            ("船" + "a" * 50, False),
            ("船" * 3 + "a" * 147, True),
        ],
    )
    def test_a_fiftieth_is_enough(self, text: str, expected: bool) -> None:
        assert has_unspaced(text) is expected

    @PATIENT
    @given(ANY_TEXT, st.integers(1, 4))
    def test_a_text_written_down_more_than_once_is_told_alike(self, text: str, times: int) -> None:
        assert has_unspaced(text * times) == has_unspaced(text)


class TestNumbers:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
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
        ],
    )
    def test_numbers_come_in_order(self, text: str, expected: list[str]) -> None:
        assert numbers(text) == expected

    def test_width_and_case_make_no_difference_to_a_normalized_text(self) -> None:
        assert numbers(normalize("３．５ Seven")) == ["3.5", "seven"]


class TestCoreWords:
    @pytest.mark.parametrize(
        ("found", "count", "expected"),
        [
            ("", 3, []),
            ("大桥", 0, []),
            ("大桥", 3, ["大桥"]),
            ("公司召回电饭煲,召回", 2, ["召回", "电饭煲"]),
            ("中国 渡船", 1, ["渡船"]),
            ("zzb zza zzc", 2, ["zza", "zzb"]),
        ],
    )
    def test_the_most_telling_come_first(self, found: str, count: int, expected: list[str]) -> None:
        assert core_words(found, count) == expected

    @PATIENT
    @given(st.lists(st.sampled_from(["中国", "渡船", "公司", "zz", "大桥", "2024"]), max_size=12), st.integers(0, 8))
    def test_their_order_does_not_depend_on_that_of_the_words(self, found: list[str], count: int) -> None:
        core = core_words(" ".join(found), count)
        assert core == core_words(" ".join(sorted(found)), count)
        assert len(core) == min(count, len(set(found)))


class TestArticleTitle:
    @pytest.mark.parametrize(
        ("title", "expected"),
        [
            ("", ""),
            (" \u3000\n", ""),
            ("|", ""),
            ("_ | _", ""),
            ("新渡口清晨开航", "新渡口清晨开航"),
            ("新渡口清晨開航", "新渡口清晨開航"),
            ("新渡口清晨开航_本地新闻_河湾网", "新渡口清晨开航"),
            ("河湾网_本地新闻_新渡口清晨开航", "新渡口清晨开航"),
            ("新渡口清晨开航|河湾日报", "新渡口清晨开航"),
            ("新渡口清晨开航｜河湾日报", "新渡口清晨开航"),
            ("新渡口清晨开航 - 河湾", "新渡口清晨开航"),
            ("新渡口清晨开航-新浪网", "新渡口清晨开航"),
            ("新渡口清晨开航 -新浪网", "新渡口清晨开航"),
            ("新渡口清晨开航—河湾在线", "新渡口清晨开航"),
            ("新渡口-老码头", "新渡口-老码头"),
            ("新渡口——一条河的十一年", "新渡口——一条河的十一年"),
            ("新渡口开航——走进柳林社区", "新渡口开航——走进柳林社区"),
            ("新渡口开航——走进柳林社区_河湾网", "新渡口开航——走进柳林社区"),
            ("河湾网", "河湾网"),
            ("_河湾网_", "河湾网"),
            ("Ferry back in service | The Daybook", "Ferry back in service"),
            ("Ferry back in service - The Daybook", "Ferry back in service"),
            ("Ferry back in service – The Daybook", "Ferry back in service"),
            ("Home » News » Ferry back in service", "Ferry back in service"),
            ("Ferry: twenty-one boats", "Ferry: twenty-one boats"),
            ("渡口 Ferry 开航 | River News", "渡口 Ferry 开航"),
            ("abc | xyz", "abc"),
        ],
    )
    def test_the_site_is_left_out(self, title: str, expected: str) -> None:
        assert article_title(title) == expected

    @pytest.mark.parametrize(
        ("title", "site", "expected"),
        [
            ("Flood - The Riverside Daybook", "The Riverside Daybook", "Flood"),
            ("Flood - THE RIVERSIDE DAYBOOK", " The Riverside Daybook ", "Flood"),
            ("大水_河湾新闻门户", "河湾新闻门户", "大水"),
            ("The Riverside Daybook", "The Riverside Daybook", "The Riverside Daybook"),
            ("Flood - The Riverside Daybook", "Another", "The Riverside Daybook"),
            ("", "The Riverside Daybook", ""),
        ],
    )
    def test_a_site_that_names_itself_is_left_out_even_if_its_name_is_longer(
        self, title: str, site: str, expected: str
    ) -> None:
        assert article_title(title, site) == expected

    @pytest.mark.parametrize(
        ("title", "expected"),
        [
            ("", []),
            ("_ | _", []),
            ("新渡口——一条河的十一年", ["新渡口——一条河的十一年"]),
            ("新渡口清晨开航_本地新闻_河湾网", ["新渡口清晨开航", "本地新闻", "河湾网"]),
            ("Home » News » Ferry back - The Daybook", ["Home", "News", "Ferry back", "The Daybook"]),
        ],
    )
    def test_the_parts_are_what_stands_between_separators(self, title: str, expected: list[str]) -> None:
        assert title_parts(title) == expected

    @given(MARKED_TEXT)
    def test_a_title_is_parted_at_every_separator(self, title: str) -> None:
        assert title_parts(title) == [part.strip() for part in titles._SEPARATOR.split(title) if part.strip()]

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def test_it_is_the_longest_of_the_parts(self, title: str) -> None:
        parts = title_parts(title)
        assert all(part and part == part.strip() and part in title for part in parts)
        assert article_title(title) == max(parts, key=len, default="")

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT), ANY_TEXT)
    def test_the_answer_is_a_part_of_the_title(self, title: str, site: str) -> None:
        found = article_title(title, site)
        assert found in title
        assert found == found.strip()


@pytest.mark.parametrize(
    "stage",
    [
        normalize,
        letters,
        sentences,
        words,
        spaced_words,
        numbers,
        article_title,
        lambda text: core_words(text, 4),
    ],
    ids=["normalize", "letters", "sentences", "words", "spaced_words", "numbers", "article_title", "core_words"],
)
def test_no_text_makes_a_stage_fail(stage: Callable[[str], object]) -> None:
    calls = 0

    @PATIENT
    @given(st.one_of(ANY_TEXT, MARKED_TEXT))
    def on_any_text(text: str) -> None:
        nonlocal calls
        calls += 1
        stage(text)
        stage(normalize(text))

    on_any_text()
    assert calls >= 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "unit", "size"),
    [
        (sentences, "a", 500_000),
        (sentences, "船", 500_000),
        (sentences, " ", 500_000),
        (sentences, ".", 500_000),
        (sentences, "”", 500_000),
        (words, "的", 200_000),
        (words, "龘", 200_000),
        (words, "一龘", 200_000),
        (words, "a", 500_000),
        (spaced_words, "船", 500_000),
        (spaced_words, "a", 500_000),
        (spaced_words, "a 船", 500_000),
        (numbers, "1", 500_000),
        (numbers, "1.", 500_000),
        (numbers, "一", 500_000),
        (letters, "._", 500_000),
        (normalize, "\u0316\u0300", 200_000),
        (article_title, " ", 200_000),
        (article_title, " _", 200_000),
        (article_title, "-", 200_000),
        (article_title, "a-", 200_000),
    ],
)
def test_time_grows_with_the_length_of_a_hostile_text(stage: Callable[[str], object], unit: str, size: int) -> None:
    large = f"a{unit * (size // len(unit))}b"
    small = f"a{unit * (size // len(unit) // 4)}b"
    stage(small[:10])
    # Work that grew with the square would take 16 times as long, and a floor of 5 ms keeps noise out.
    assert _time(stage, large) < 12 * max(_time(stage, small), 0.005)


def _time(stage: Callable[[str], object], text: str) -> float:
    """The best of a few, so that another process on this machine does not count."""
    times = []
    for _ in range(3):
        begun = process_time()
        stage(text)
        times.append(process_time() - begun)
    return min(times)
