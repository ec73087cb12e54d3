"""Lexicons: the built-in one, those that are counted, and files that are none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import LexiconNeeded, NearDupError, SettingsError
from scrapy_neardup.text.lexicon import Lexicon, LexiconBuilder, lexicon
from scrapy_neardup.text.tokens import segmenter_name

DOCUMENTS = (["渡口", "渡口", "ferry"], ["渡口", "ferry", "buoy"], ["渡口"], ["keel"])
HEAD = {"format": "scrapy-neardup lexicon", "version": 1, "segmenter": segmenter_name(), "documents": 4, "words": 2}


def counted() -> LexiconBuilder:
    builder = LexiconBuilder()
    for document in DOCUMENTS:
        builder.add(document)
    return builder


class TestCounting:
    def test_a_word_counts_once_in_a_document(self, tmp_path: Path) -> None:
        path = tmp_path / "lexicon.tsv"
        assert counted().write(path) == 2
        head, *rows = path.read_text(encoding="utf-8").splitlines()
        assert json.loads(head) == HEAD
        assert rows == ["渡口\t3", "ferry\t2"]

    def test_words_of_fewer_documents_are_kept_if_asked_for(self, tmp_path: Path) -> None:
        path = tmp_path / "lexicon.tsv"
        assert counted().write(path, at_least=1) == 4
        assert path.read_text(encoding="utf-8").splitlines()[1:] == ["渡口\t3", "ferry\t2", "buoy\t1", "keel\t1"]

    def test_a_written_lexicon_can_be_read(self, tmp_path: Path) -> None:
        path = tmp_path / "lexicon.tsv"
        counted().write(path)
        found = lexicon(str(path))
        assert found.idf == {"渡口": math.log(4 / 3), "ferry": math.log(2)}
        assert (found.lowest, found.highest, found.unknown) == (math.log(4 / 3), math.log(2), math.log(4))
        assert (found.weight("渡口"), found.weight("keel")) == (math.log(4 / 3), math.log(4))

    def test_the_order_of_documents_makes_no_difference(self, tmp_path: Path) -> None:
        builder = LexiconBuilder()
        for document in reversed(DOCUMENTS):
            builder.add(reversed(document))
        builder.write(tmp_path / "there.tsv", at_least=1)
        counted().write(tmp_path / "here.tsv", at_least=1)
        assert (tmp_path / "there.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()

    @pytest.mark.parametrize("documents", [[], [["渡口"], ["keel"]]])
    def test_a_lexicon_without_words_is_not_written(self, tmp_path: Path, documents: list[list[str]]) -> None:
        builder = LexiconBuilder()
        for document in documents:
            builder.add(document)
        with pytest.raises(NearDupError, match=rf"No word occurs in 2 of the {len(documents)} documents.*--at-least"):
            builder.write(tmp_path / "lexicon.tsv")
        assert list(tmp_path.iterdir()) == []


class TestWriting:
    def test_the_earlier_file_is_replaced_or_not(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "lexicon.tsv"
        path.write_text("what was there")

        def full(self: Path, target: Path) -> Path:
            assert json.loads(self.read_text(encoding="utf-8").splitlines()[0]) == HEAD
            assert path.read_text() == "what was there"
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", full)
            with pytest.raises(NearDupError, match="No space left on device"):
                counted().write(path)
        assert [file.name for file in tmp_path.iterdir()] == ["lexicon.tsv"]
        assert path.read_text() == "what was there"
        counted().write(path)
        assert path.read_text(encoding="utf-8").endswith("ferry\t2\n")
        assert [file.name for file in tmp_path.iterdir()] == ["lexicon.tsv"]

    def test_a_place_that_cannot_be_written_is_an_error_in_words(self, tmp_path: Path) -> None:
        with pytest.raises(NearDupError, match=r"lexicon\.tsv cannot be written: "):
            counted().write(tmp_path / "none" / "lexicon.tsv")


def with_head(**changes: Any) -> str:
    return json.dumps({**HEAD, **changes}) + "\n渡口\t3\nferry\t2\n"


def without(name: str) -> str:
    return json.dumps({key: value for key, value in HEAD.items() if key != name}) + "\n渡口\t3\nferry\t2\n"


BROKEN = {
    "": "its first line .*scrapy-neardup lexicon, version 1",
    "渡口\t3\n": "its first line",
    "[1]\n渡口\t3\n": "its first line",
    "1\n渡口\t3\n": "its first line",
    "[" * 100_000: "its first line|recursion",
    with_head(format="word list"): "its first line",
    with_head(version=2): "its first line",
    without("version"): "its first line",
    with_head(segmenter="scissors 2.0"): "scissors 2.0.*jieba",
    without("segmenter"): "None",
    without("documents"): "number of documents",
    with_head(documents="4"): "number of documents",
    with_head(documents=0): "number of documents",
    with_head(documents=2): r"line 2 is not a word with its count \(1 to 2\)",
    with_head(words=3): "it has 2 words instead of 3",
    json.dumps(HEAD): "it has 0 words instead of 2",
    json.dumps(HEAD) + "\n渡口\t3\nfer": "line 3 is not a word",
    json.dumps(HEAD) + "\n渡口\t3\nferry\t": "line 3 is not a word",
    json.dumps(HEAD) + "\n渡口 3\nferry 2\n": "line 2 is not a word",
    json.dumps(HEAD) + "\n渡口\t0\nferry\t2\n": "line 2 is not a word",
    json.dumps(HEAD) + "\n渡口\t-1\nferry\t2\n": "line 2 is not a word",
    json.dumps(HEAD) + "\n渡口\t3.5\nferry\t2\n": "line 2 is not a word",
    json.dumps(HEAD) + "\n\t3\nferry\t2\n": "line 2 is not a word",
    json.dumps(HEAD) + "\n渡口\t3\n\nferry\t2\n": "line 3 is not a word",
}


class TestReading:
    @pytest.mark.parametrize(("content", "said"), BROKEN.items(), ids=map(str, range(len(BROKEN))))
    def test_a_broken_file_is_refused_with_its_fault_and_a_cure(self, tmp_path: Path, content: str, said: str) -> None:
        path = tmp_path / "broken.tsv"
        path.write_text(content, encoding="utf-8")
        with pytest.raises(SettingsError, match=said) as refused:
            lexicon(str(path))
        assert str(refused.value).startswith(f"{path} is no usable lexicon")
        assert str(refused.value).endswith("scrapy neardup lexicon PAGES.jsonl -o lexicon.tsv")

    @pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.write_bytes(b"\xff\xfe"), lambda path: None])
    def test_an_unreadable_file_is_refused(self, tmp_path: Path, make: Callable[[Path], object]) -> None:
        make(tmp_path / "other.tsv")
        with pytest.raises(SettingsError, match=r"other\.tsv is no usable lexicon"):
            lexicon(str(tmp_path / "other.tsv"))

    @pytest.mark.parametrize("content", [with_head(), without("words"), with_head().replace("\n", "\r\n")])
    def test_other_line_ends_and_a_head_without_a_number_do_no_harm(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "other.tsv").write_text(content, encoding="utf-8", newline="")
        assert list(lexicon(str(tmp_path / "other.tsv")).idf) == ["渡口", "ferry"]


class TestTheBuiltInTable:
    def test_rarer_words_weigh_more_and_unknown_ones_as_the_median(self) -> None:
        table = lexicon("")
        assert table.lowest == table.weight("的") < table.weight("公司") < table.weight("渡口") < table.highest
        assert table.weight("词典里没有的一个词") == sorted(table.idf.values())[len(table.idf) // 2]

    @pytest.mark.parametrize(
        "words",
        [
            [],
            ["渡口"],
            ["2024", "3", "5", "17"],
            ["渡口", *map(str, range(100))],
            ["渡口", "开航", "ferry", "quay", "buoy"],
            ["渡口", *"abcdefghi"],
        ],
    )
    def test_it_takes_chinese_with_numbers_names_and_code(self, words: list[str]) -> None:
        lexicon("").check_language(words)

    @pytest.mark.parametrize("words", [["ferry"], ["ferry", "quay", "2024"], ["渡口", *"abcdefghij"]])
    def test_it_takes_no_other_language(self, words: list[str]) -> None:
        with pytest.raises(LexiconNeeded, match="scrapy neardup lexicon"):
            lexicon("").check_language(words)

    def test_a_lexicon_of_ones_own_takes_all(self) -> None:
        Lexicon({"渡口": 1.0}, 2.0).check_language(["ferry", "quay"])
