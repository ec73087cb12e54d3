"""Lexicons: the built-in one, files, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.text.lexicon import read_lexicon


def test_a_file_has_a_word_and_its_weight_in_each_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_text("渡口 4.5\nferry 0\r\nkeel 9.25", encoding="utf-8", newline="")
    found = read_lexicon(str(path))
    assert (found.lowest, found.highest) == (0.0, 9.25)
    assert [found.weight(word) for word in ("渡口", "ferry", "unknown")] == [4.5, 0.0, 4.5]
    found.check_language(["ferry", "quay"])


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"ferry\n", b"ferry 1\n\n", b" 7\n", b"ferry nan\n", b"a inf\n"])
def test_another_file_is_refused_with_its_fault_and_a_cure(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    for wrong in (path, tmp_path, tmp_path / "none"):
        with pytest.raises(SettingsError, match=r"is no usable lexicon: .* in each line, in UTF-8\.$"):
            read_lexicon(str(wrong))


def test_in_the_built_in_table_rarer_words_weigh_more_and_unknown_ones_as_the_median() -> None:
    table = read_lexicon("")
    assert table.lowest == table.weight("的") < table.weight("公司") < table.weight("渡口") < table.highest
    assert table.weight("词典里没有的一个词") == sorted(table.idf.values())[len(table.idf) // 2]


def test_the_built_in_table_takes_chinese_with_numbers_names_and_code() -> None:
    numbers = list(map(str, range(100)))
    for words in [[], ["渡口"], numbers, ["渡口", *numbers], ["渡口", "开航", "ferry", "quay"], ["渡口", *"abcdefghi"]]:
        read_lexicon("").check_language(words)
    for words in [["渡口", *"abcdefghij"], ["ferry", "quay", "2024"]]:
        with pytest.raises(LexiconNeeded, match="parameter 'lexicon'"):
            read_lexicon("").check_language(words)
