"""Pairs that were read by hand: what a line may say, what is counted, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.evaluate import evaluate, sweep
from scrapy_neardup.lab.labels import Gold, agreement, read_corpus, read_gold
from scrapy_neardup.methods import METHODS
from tests.lab.corpus import lines, mixed
from tests.lab.methods import First, FirstParameters

ORDER = {id: place for place, id in enumerate("abcdefgh")}


def read(folder: Path, *said: dict[str, Any], **more: Any) -> list[Gold]:
    path = folder / "gold.jsonl"
    path.write_text(lines(list(said)), encoding="utf-8")
    return read_gold(path, ORDER, **more)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"drop": "yes", "label": "repost", "reason": "another headline"}, (True, "repost")),
        ({"drop": "no", "label": "form"}, (False, "form")),
        ({"drop": "unsure", "label": "form"}, (None, "form")),
        ({"drop": "no"}, (False, "")),
        ({"drop": "no", "label": None}, (False, "")),
        ({"drop": "no", "label": "copy"}, (False, "copy")),
        ({"drop": "no", "verdict": "repost"}, (False, "")),
        ({"verdict": "repost"}, (True, "repost")),
        ({"verdict": "reissue"}, (True, "reissue")),
        ({"verdict": "extended", "label": "longer"}, (True, "longer")),
        ({"verdict": "template"}, (False, "template")),
        ({"verdict": "sharedcode"}, (False, "sharedcode")),
        ({"verdict": "unsure"}, (None, "unsure")),
        ({"label": "copy", "jaccard": 0.7}, (True, "")),
        ({"label": "different", "jaccard": 0.7}, (False, "")),
        ({"label": "skip"}, (None, "")),
    ],
)
def test_a_line_says_whether_the_later_one_is_to_be_dropped(
    tmp_path: Path, said: dict[str, Any], expected: tuple[bool | None, str]
) -> None:
    [one] = read(tmp_path, {"a": "b", "b": "e", **said})
    assert (one.earlier, one.later, one.drop, one.label) == ("b", "e", *expected)


def test_the_later_one_is_that_which_comes_later_in_the_stream(tmp_path: Path) -> None:
    assert read(tmp_path, {"a": "e", "b": "b", "drop": "yes"}) == [Gold("b", "e", True)]


def test_of_a_pair_that_is_there_twice_the_last_line_counts(tmp_path: Path) -> None:
    said = {"a": "a", "b": "b", "drop": "no"}, {"a": "a", "b": "c", "drop": "no"}, {"a": "b", "b": "a", "drop": "yes"}
    assert read(tmp_path, *said) == [Gold("a", "b", True), Gold("a", "c", False)]


def test_lines_of_another_corpus_are_left_out_of_a_file_for_several(tmp_path: Path) -> None:
    said = {"a": "a", "b": "b", "drop": "no", "corpus": "town"}, {"a": "x", "b": "y", "drop": "no", "corpus": "village"}
    here = {"a": "a", "b": "c", "drop": "no"}
    assert [one.later for one in read(tmp_path, *said, here, names={"town"})] == ["b", "c"]
    with pytest.raises(NearDupError, match=r"gold\.jsonl, line 2: no document has the id 'x'"):
        read(tmp_path, *said, here)


def test_a_table_will_do(tmp_path: Path) -> None:
    path = tmp_path / "gold.csv"
    path.write_text("a,b,drop,label\n1,2,yes,repost\n1,3,no,\n")
    order = {"1": 0, "2": 1, "3": 2}
    assert read_gold(path, order) == [Gold("1", "2", True, "repost"), Gold("1", "3", False)]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"a": "a", "b": "z", "drop": "yes"}, "no document has the id 'z'"),
        ({"a": "a", "drop": "yes"}, "no document has the id 'None'"),
        ({"a": "a", "b": "a", "drop": "yes"}, "a and b are the same document"),
        ({"a": "a", "b": "c"}, "drop must be one of yes, no, unsure, not None"),
        ({"a": "a", "b": "c", "drop": "perhaps"}, "drop must be one of yes, no, unsure, not 'perhaps'"),
        ({"a": "a", "b": "c", "drop": True}, "drop must be one of yes, no, unsure, not True"),
        ({"a": "a", "b": "c", "drop": ["no"]}, r"drop must be one of yes, no, unsure, not \['no'\]"),
        ({"a": "a", "b": "c", "verdict": "duplicate"}, "verdict must be one of repost, .*, not 'duplicate'"),
        ({"a": "a", "b": "c", "label": "repost"}, "label must be one of copy, different, skip, not 'repost'"),
        ({"a": "a", "b": "c", "drop": "no", "label": ["x"]}, r"label must be a text, not \['x'\]"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(NearDupError, match=f"gold.jsonl, line 2: {said}.*; each line must be one JSON object: .*drop"):
        read(tmp_path, {"a": "a", "b": "b", "drop": "yes"}, wrong)


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "gold.jsonl").write_text('{"a": "a", "b": "b", "drop": "yes"}\nyes\n')
    with pytest.raises(NearDupError, match=r"gold\.jsonl, line 2.*; each line must be one JSON object"):
        read_gold(tmp_path / "gold.jsonl", ORDER)


def test_a_missing_file_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r"gone\.jsonl.* does not exist"):
        read_gold(tmp_path / "gone.jsonl", ORDER)


GOLD = [
    Gold("a", "b", True, "repost"),
    Gold("a", "c", True, "repost"),
    Gold("a", "d", False, "form"),
    Gold("a", "e", False, "form"),
    Gold("a", "f", False, "form"),
    Gold("a", "g", None, "form"),
    Gold("a", "h", True),
]


def test_an_agreement_by_hand() -> None:
    assert agreement(GOLD, {"b", "d", "e", "g"}).as_dict() == {
        "pairs": 6,
        "agree": 2,
        "different": 3,
        "dropped_wrongly": 2,
        "copies": 3,
        "kept_wrongly": 2,
        "unsure": 1,
        "by_label": {
            "form": {
                "pairs": 3,
                "agree": 1,
                "different": 3,
                "dropped_wrongly": 2,
                "copies": 0,
                "kept_wrongly": 0,
                "unsure": 1,
            },
            "repost": {
                "pairs": 2,
                "agree": 1,
                "different": 0,
                "dropped_wrongly": 0,
                "copies": 2,
                "kept_wrongly": 1,
                "unsure": 0,
            },
        },
    }


def test_without_labels_there_is_nothing_by_label() -> None:
    assert "by_label" not in agreement([Gold("a", "b", True)], set()).as_dict()


#: d21 to d23 are copies of d00 to d02, and d25 is an edited one of d04.
READ = [
    {"a": "d00", "b": "d21", "drop": "yes", "label": "repost"},
    {"a": "d01", "b": "d22", "drop": "no", "label": "form"},
    {"a": "d05", "b": "d23", "drop": "yes", "label": "repost"},
    {"a": "d04", "b": "d25", "drop": "yes", "label": "edited"},
    {"a": "d03", "b": "d24", "drop": "unsure", "label": "edited"},
    {"a": "d06", "b": "d07", "drop": "no", "label": "form"},
]


def corpus(folder: Path, name: str = "gold.jsonl") -> Path:
    made = mixed().write(folder / "town")
    (made / name).write_text(lines(READ), encoding="utf-8")
    return made


def test_a_page_that_is_dropped_for_another_original_counts_as_dropped(tmp_path: Path) -> None:
    """The reader was asked about the page d05, and the method drops d23 for d02."""
    found = read_corpus(corpus(tmp_path))
    score = evaluate(First(), found.documents(), found.labels, gold=found.gold)
    assert (score.missed, score.pos) == (3, 7)
    assert score.gold is not None
    assert (score.gold.agree, score.gold.pairs, score.gold.unsure) == (3, 5, 1)
    assert (score.gold.dropped_wrongly, score.gold.different) == (1, 2)
    assert (score.gold.kept_wrongly, score.gold.copies) == (1, 3)
    assert {name: one.agree for name, one in score.gold.by_label.items()} == {"edited": 0, "form": 1, "repost": 2}
    assert score.as_dict()["gold"] == score.gold.as_dict()


def test_without_pairs_that_were_read_there_is_no_agreement(tmp_path: Path) -> None:
    found = read_corpus(mixed().write(tmp_path / "town"))
    score = evaluate(First(), found.documents(), found.labels)
    assert score.gold is None
    assert "gold" not in score.as_dict()


def test_each_value_of_a_sweep_has_its_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, First.name, First)
    found = read_corpus(corpus(tmp_path))
    kept = [score.gold.kept_wrongly for _, score in sweep("first", found) if score.gold]
    assert kept == [0, 1]


def test_pairs_that_were_read_are_enough(tmp_path: Path) -> None:
    """Nothing is known of the other documents then: a page that is dropped is right or wrong only where it was read."""
    folder = corpus(tmp_path)
    (folder / "pairs.jsonl").unlink()
    found = read_corpus(folder)
    assert set(found.labels.values()) == {"grey", "skip"}
    score = evaluate(First(FirstParameters(letters=1)), found.documents(), found.labels, gold=found.gold)
    assert (score.labelled, score.documents) == (0, 30)
    assert score.gold is not None
    assert (score.gold.kept_wrongly, score.gold.copies) == (0, 3)


def test_a_file_is_found_beside_the_documents_packed_or_not_or_named(tmp_path: Path) -> None:
    folder = corpus(tmp_path)
    found = read_corpus(folder / "docs.jsonl").gold
    assert len(found) == len(READ)
    named = (folder / "gold.jsonl").rename(tmp_path / "read.jsonl")
    assert read_corpus(folder).gold == ()
    assert read_corpus(folder, gold=named).gold == found


def test_a_named_file_counts_in_place_of_the_one_beside(tmp_path: Path) -> None:
    folder, other = corpus(tmp_path), tmp_path / "other.jsonl"
    other.write_text(json.dumps({"a": "d00", "b": "d21", "drop": "no", "corpus": "town"}) + "\n")
    assert [one.drop for one in read_corpus(folder, gold=other).gold] == [False]
    assert [one.drop for one in read_corpus(folder / "docs.jsonl", gold=other).gold] == [False]
