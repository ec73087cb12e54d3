"""Pairs of documents in files: what a line may hold, answers in all their words, and the file of a dialogue."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.exact import Alike
from scrapy_neardup.lab.pairs import AnswerFile, Pair, compare_documents, read_answers, read_pairs
from scrapy_neardup.model import Page
from tests.lab.corpus import lines

ORDER = {id: place for place, id in enumerate("abcdefgh")}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text(lines(list(rows)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"drop": "yes", "label": "repost", "reason": "another headline"}, ("copy", "repost")),
        ({"drop": "no", "label": "form"}, ("different", "form")),
        ({"drop": "unsure", "label": "form"}, ("skip", "form")),
        ({"drop": "no", "label": None}, ("different", "")),
        ({"drop": "no", "label": "copy"}, ("different", "copy")),
        ({"drop": "no", "verdict": "repost"}, ("different", "")),
        ({"verdict": "repost"}, ("copy", "repost")),
        ({"verdict": "reissue"}, ("copy", "reissue")),
        ({"verdict": "extended", "label": "longer"}, ("copy", "longer")),
        ({"verdict": "template"}, ("different", "template")),
        ({"verdict": "sharedcode"}, ("different", "sharedcode")),
        ({"verdict": "unsure"}, ("skip", "unsure")),
        ({"label": "copy", "jaccard": 0.7}, ("copy", "")),
        ({"label": "different"}, ("different", "")),
        ({"label": "skip"}, ("skip", "")),
        ({"jaccard": 0.7}, (None, "")),
    ],
)
def test_an_answer_may_have_words(tmp_path: Path, row: dict[str, Any], expected: tuple[str | None, str]) -> None:
    [pair] = read_pairs(write(tmp_path, {"a": "b", "b": "e", **row}))
    assert (pair.a, pair.b, pair.answer, pair.label) == ("b", "e", *expected)


def test_a_pair_is_turned_by_the_order_of_the_corpus_and_the_last_answer_counts(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"a": "b", "b": "a", "drop": "no"},
        {"a": "a", "b": "c", "drop": "no"},
        {"a": "a", "b": "b", "drop": "yes", "corpus": "town"},
        {"a": "x", "b": "y", "drop": "no", "corpus": "village"},
    )
    expected = [("a", "b", "copy"), ("a", "c", "different")]
    found = read_answers(path, known=ORDER, corpora={"town"})
    assert [(one.a, one.b, one.answer) for one in found] == expected
    with pytest.raises(NearDupError, match=r"pairs\.jsonl, line 4: no document has the id 'x'"):
        read_answers(path, known=ORDER)


def test_a_table_will_do(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,jaccard,left,account_same,drop,label\n1,2,0.5,,True,yes,repost\n1,3,1,40,,,\n")
    assert list(read_pairs(path)) == [
        Pair("1", "2", 0.5, same_account=True, answer="copy", label="repost"),
        Pair("1", "3", 1.0, left=40.0),
    ]


FIGURES = {"a": "a", "b": "b", "jaccard": 0.5, "containment": 0.5}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"b": "z"}, "no document has the id 'z'"),
        ({"b": None}, "a and b must name two documents"),
        ({"b": "a"}, "a and b are the same document"),
        ({"jaccard": 1.1}, "jaccard must be a number from 0 to 1, not 1.1"),
        ({"containment": float("nan")}, "containment must be a number from 0 to 1, not nan"),
        ({"containment": None}, "containment is missing"),
        ({"jaccard": True}, "jaccard must be a number from 0 to 1, not True"),
        ({"jaccard_clean": "much"}, "jaccard_clean must be a number from 0 to 1, not 'much'"),
        ({"left": -1}, "left must be a number from 0, not -1"),
        ({"account_same": "yes"}, "account_same must be true or false, not 'yes'"),
        ({"drop": "perhaps"}, "drop must be one of yes, no, unsure, not 'perhaps'"),
        ({"drop": True}, "drop must be one of yes, no, unsure, not True"),
        ({"drop": ["no"]}, r"drop must be one of yes, no, unsure, not \['no'\]"),
        ({"verdict": "duplicate"}, "verdict must be one of repost, .*, not 'duplicate'"),
        ({"label": "repost"}, "label must be one of copy, different, skip, not 'repost'"),
        ({"drop": "no", "label": ["x"]}, r"label must be a text, not \['x'\]"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    path = write(tmp_path, FIGURES, {**FIGURES, **wrong})
    with pytest.raises(NearDupError, match=rf"pairs\.jsonl, line 2: {said}; each line must be"):
        list(read_pairs(path, "jaccard", "containment", known=ORDER))


def test_a_line_that_is_no_object_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "gold.jsonl").write_text('{"a": "a", "b": "b", "drop": "yes"}\nyes\n')
    with pytest.raises(NearDupError, match=r"gold\.jsonl, line 2 is not JSON.*; each line must be"):
        read_answers(tmp_path / "gold.jsonl")
    with pytest.raises(NearDupError, match=r"gone\.jsonl with pairs does not exist"):
        read_answers(tmp_path / "gone.jsonl")
    with pytest.raises(NearDupError, match="line 1: answer is missing"):
        read_answers(write(tmp_path, FIGURES))
    with pytest.raises(NearDupError, match="line 1: stratum_size is missing"):
        read_answers(write(tmp_path, {**FIGURES, "label": "copy"}), "stratum_size")


def test_the_row_of_two_documents() -> None:
    one = Document(Page("a", "The ferry", site="a.example"), "https://a.example/1")
    other = Document(Page("b", "The ferry again - Daily", site="b.example"))
    assert compare_documents(Alike(0, 1, 0.61234, 1.0), one, other).row() == {
        "a": "a",
        "b": "b",
        "jaccard": 0.6123,
        "containment": 1.0,
        "title": 0.5833,
        "title_same": False,
        "same_site": False,
    }
    unknown = compare_documents(Alike(0, 1, 1.0, 1.0), Document(Page("a")), Document(Page("b"))).row()
    assert (unknown["title"], unknown["title_same"], unknown["same_site"]) == (None, True, None)
    assert compare_documents(Alike(0, 1, 1.0, 1.0), Document(Page("a", "船")), Document(Page("b", "船"))).title == 1.0


def drawn(a: str) -> Pair:
    return Pair(a, "z", 0.5, 0.6, stratum="near", stratum_size=6)


def test_answers_are_on_disk_at_once_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    file = AnswerFile(path)
    file.add(drawn("p"), "copy")
    file.add(drawn("q"), "different")
    assert [one.answer for one in read_answers(path, "stratum_size")] == ["copy", "different"]
    assert json.loads(path.read_text().splitlines()[0])["label"] == "copy"
    again = AnswerFile(path)
    assert [again.has(drawn(a)) for a in "pqr"] == [True, True, False]
    again.add(drawn("q"), "skip")
    again.add(drawn("p"), "different")
    assert [(one.a, one.answer) for one in read_answers(path)] == [("p", "different"), ("q", "skip")]
    assert again.pairs == read_answers(path) == AnswerFile(path).pairs
    path.write_bytes(path.read_bytes().rstrip())  # as an editor may save it
    AnswerFile(path).add(drawn("r"), "copy")
    assert len(read_answers(path)) == 3


def test_a_file_without_answers_is_refused_and_does_not_change(tmp_path: Path) -> None:
    path = write(tmp_path, FIGURES)
    before = path.read_bytes()
    with pytest.raises(NearDupError, match="answer is missing"):
        AnswerFile(path)
    assert path.read_bytes() == before
