"""The table of labels, and the files from which they come."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.evaluate import evaluate
from scrapy_neardup.lab.labels import Corpus, Pair, label, read_corpus
from tests.lab.corpus import article, lines, mixed
from tests.lab.methods import First

SAME, OTHER = True, False


@pytest.mark.parametrize(
    ("earlier", "accounts", "expected"),
    [
        ([], False, "neg"),
        ([], True, "neg"),
        ([Pair(0.8)], False, "pos"),
        ([Pair(0.3), Pair(0.95)], False, "pos"),
        ([Pair(0.8, SAME), Pair(0.7, OTHER)], True, "pos"),
        ([Pair(0.6, OTHER)], True, "repost"),
        ([Pair(0.79, SAME), Pair(0.6, OTHER)], True, "repost"),
        ([Pair(0.59, OTHER)], True, "grey"),
        ([Pair(0.6)], True, "grey"),
        ([Pair(0.7)], False, "grey"),
        ([Pair(0.5, SAME), Pair(0.74, SAME)], True, "template"),
        ([Pair(0.2, SAME)], True, "template"),
        ([Pair(0.75, SAME)], True, "grey"),
        ([Pair(0.6, SAME), Pair(0.5, OTHER)], True, "grey"),
        ([Pair(0.6, SAME), Pair(0.5)], True, "grey"),
        ([Pair(0.95, left=29)], False, "skip"),
        ([Pair(0.95), Pair(0.5, left=29)], False, "skip"),
        ([Pair(0.95, left=30)], False, "pos"),
    ],
)
def test_the_label_of_a_document_by_its_pairs(earlier: list[Pair], accounts: bool, expected: str) -> None:
    assert label(earlier, short=False, accounts=accounts) == expected
    assert label(earlier, short=True, accounts=accounts) == "skip"


def corpus(folder: Path, pairs: list[dict[str, Any]], texts: list[str]) -> Corpus:
    folder.mkdir(exist_ok=True)
    (folder / "docs.jsonl").write_text(
        lines([{"id": id, "text": text} for id, text in zip("abcdefgh", texts, strict=False)])
    )
    (folder / "pairs.jsonl").write_text(lines(pairs))
    return read_corpus(folder)


def pair(a: str, b: str, jaccard: float, containment: float = 0.9, **more: Any) -> dict[str, Any]:
    return {"a": a, "b": b, "jaccard": jaccard, "containment": containment, **more}


LONG = [article(seed, chinese=False) for seed in range(4)]
CHINESE = [article(seed, chinese=True) for seed in range(3)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], ["neg"] * 4),
        ([pair("a", "c", 0.9)], ["neg", "neg", "pos", "neg"]),
        ([pair("c", "a", 0.9), pair("d", "c", 0.6)], ["neg", "neg", "pos", "grey"]),
        ([pair("a", "b", 0.3, 0.8)], ["neg", "grey", "neg", "neg"]),
        ([pair("a", "b", 0.49, 0.79), pair("a", "c", 0.5, 0.5)], ["neg", "neg", "grey", "neg"]),
        ([pair("a", "b", 0.9, jaccard_clean=0.7)], ["neg", "grey", "neg", "neg"]),
        ([pair("a", "b", 0.7, jaccard_clean=0.9, left=400)], ["neg", "pos", "neg", "neg"]),
        ([pair("a", "b", 0.9, jaccard_clean=None, left=None)], ["neg", "pos", "neg", "neg"]),
        ([pair("a", "b", 0.9, left=12)], ["neg", "skip", "neg", "neg"]),
        (
            [pair("a", "b", 0.6, account_same=True), pair("d", "a", 0.7, account_same=False)],
            ["neg", "template", "neg", "repost"],
        ),
    ],
)
def test_labels_from_a_file_of_pairs(tmp_path: Path, pairs: list[dict[str, Any]], expected: list[str]) -> None:
    read = corpus(tmp_path / "news", pairs, LONG)
    assert (read.name, list(read.labels.values()), list(read.labels)) == ("news", expected, list("abcd"))
    assert [document.text for document in read.documents()] == LONG


@pytest.mark.parametrize(
    ("others", "text", "expected"),
    [
        (LONG[:3], "word " * 60, "skip"),
        (LONG[:3], " ".join(f"w{number}" for number in range(21)), "skip"),
        (LONG[:3], " ".join(f"w{number}" for number in range(22)), "neg"),
        (CHINESE, "word " * 60, "neg"),
        ([*CHINESE[:2], LONG[0]], "word " * 60, "skip"),
        ([*CHINESE[:2], LONG[0]], "桥！ " * 59, "skip"),
        ([*CHINESE[:2], LONG[0]], "桥！ " * 60, "neg"),
        ([CHINESE[0], *LONG[:2]], "词" * 70, "skip"),
    ],
)
def test_what_is_too_short_depends_on_the_language_of_most_documents(
    tmp_path: Path, others: list[str], text: str, expected: str
) -> None:
    assert corpus(tmp_path, [], [*others, text]).labels["d"] == expected


@pytest.mark.parametrize(("chinese", "expected"), [(51, "neg"), (50, "skip")])
def test_the_language_is_told_by_the_first_hundred_documents(tmp_path: Path, chinese: int, expected: str) -> None:
    texts = [CHINESE[0]] * chinese + [LONG[0]] * 200
    documents = [{"id": f"d{number}", "text": text} for number, text in enumerate(texts)]
    (tmp_path / "pairs.jsonl").touch()
    (tmp_path / "docs.jsonl").write_text(lines([*documents, {"id": "last", "text": "word " * 60}]), encoding="utf-8")
    assert read_corpus(tmp_path).labels["last"] == expected


def test_exact_pairs_of_a_made_corpus_give_the_labels_it_was_made_for(tmp_path: Path) -> None:
    for chinese in (True, False):
        labels = list(read_corpus(mixed(chinese=chinese).write(tmp_path / str(chinese))).labels.values())
        assert labels == ["neg"] * 21 + ["pos"] * 7 + ["skip"] * 2


@pytest.mark.parametrize(
    ("name", "pack"), [("pairs.jsonl", bytes), ("pairs.jsonl.gz", gzip.compress), ("pairs.jsonl.xz", lzma.compress)]
)
def test_the_pairs_are_found_beside_a_file_of_documents_or_named(tmp_path: Path, name: str, pack: Any) -> None:
    folder = mixed().write(tmp_path / "made")
    content = (folder / "pairs.jsonl").read_bytes()
    (folder / "pairs.jsonl").unlink()
    (folder / name).write_bytes(pack(content))
    beside = read_corpus(folder / "docs.jsonl")
    assert list(beside.labels.values()).count("pos") == 7
    assert beside.name == "docs.jsonl"
    elsewhere = (folder / name).rename(tmp_path / f"other{name}")
    assert read_corpus(folder, elsewhere).labels == beside.labels


def test_missing_pairs_are_asked_for_with_what_they_must_hold(tmp_path: Path) -> None:
    (tmp_path / "docs.jsonl").write_text(lines([{"id": "a", "text": LONG[0]}]))
    with pytest.raises(NearDupError, match=r'pairs\.jsonl.* does not exist\. Put .*"a": id, "b": id, "jaccard"'):
        read_corpus(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"a": "a", "b": "z", "jaccard": 1, "containment": 1}, "no document has the id 'z'"),
        ({"a": "a", "jaccard": 1, "containment": 1}, "no document has the id 'None'"),
        (pair("a", "a", 0.9), "a and b are the same document"),
        (pair("a", "b", 1.1), "jaccard must be a number from 0 to 1, not 1.1"),
        (pair("a", "b", 0.1, float("nan")), "containment must be a number from 0 to 1, not nan"),
        ({"a": "a", "b": "b", "jaccard": 0.3}, "containment must be a number from 0 to 1, not None"),
        (pair("a", "b", 0.9, jaccard_clean="much"), "jaccard_clean must be a number from 0 to 1, not 'much'"),
        (pair("a", "b", 0.9, left=-1), "left must be a number from 0, not -1"),
        (pair("a", "b", 0.9, account_same="yes"), "account_same must be true or false, not 'yes'"),
    ],
)
def test_a_malformed_pair_is_named(tmp_path: Path, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(NearDupError, match=f"pairs.jsonl, line 2: {said}"):
        corpus(tmp_path, [pair("a", "b", 0.9), wrong], LONG)


def test_two_documents_of_one_id_have_no_labels(tmp_path: Path) -> None:
    corpus(tmp_path, [], LONG)
    with (tmp_path / "docs.jsonl").open("a") as documents:
        documents.write(lines([{"id": "b", "text": LONG[0]}]))
    with pytest.raises(NearDupError, match="Two documents have the id 'b'"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("plane", ["", "\U00020000"])
def test_a_chinese_corpus_is_measured_in_letters_whatever_plane_they_are_of(tmp_path: Path, plane: str) -> None:
    texts = ["".join(plane or char for char in text[:200]) for text in CHINESE]
    assert list(corpus(tmp_path, [], texts).labels.values()) == ["neg"] * len(texts)


def test_a_corpus_without_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match="no documents"):
        corpus(tmp_path, [], [])


def judged(a: str, b: str, said: str, jaccard: float = 0.4) -> dict[str, Any]:
    return {"a": a, "b": b, "jaccard": jaccard, "containment": 0.5, "label": said}


def test_what_a_reader_said_counts_in_place_of_figures(tmp_path: Path) -> None:
    made = mixed()
    ids = [document["id"] for document in made.documents]
    by_figures = read_corpus(made.write(tmp_path / "corpus")).labels
    copy, kept = ids[0], next(id for id in ids if by_figures[id] == "pos")
    [pair] = [pair for pair in made.pairs() if pair["b"] == kept]
    labels = tmp_path / "both.jsonl"
    said = [judged(copy, ids[1], "copy"), judged(pair["a"], kept, "different"), judged(ids[2], ids[3], "skip")]
    labels.write_text(lines([*said, *made.pairs()]), encoding="utf-8")
    corpus = read_corpus(tmp_path / "corpus", labels)
    assert {id for id in ids if corpus.labels[id] != by_figures[id]} == {ids[1], kept}
    assert (corpus.labels[ids[1]], corpus.labels[kept]) == ("pos", "neg")
    assert corpus.different[kept] == {pair["a"]}


def test_of_labels_alone_nothing_is_known_of_other_documents(tmp_path: Path) -> None:
    made = mixed()
    ids = [document["id"] for document in made.documents]
    made.write(tmp_path / "corpus")
    labels = tmp_path / "labels.jsonl"
    labels.write_text(lines([judged(ids[0], ids[1], "copy"), judged(ids[0], ids[2], "different")]), encoding="utf-8")
    found = read_corpus(tmp_path / "corpus", labels).labels
    assert (found[ids[1]], found[ids[2]]) == ("pos", "neg")
    assert {label for id, label in found.items() if id not in ids[1:3]} == {"grey", "skip"}


def test_a_document_that_is_dropped_for_another_one_is_no_error(tmp_path: Path) -> None:
    """A reader has only said that it is no copy of this one; of that one it may be."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    texts = ["alpha one", "beta two", "alpha one"]
    documents = [
        {"id": f"d{at}", "text": f"{text} and so on, with forty letters at the least."} for at, text in enumerate(texts)
    ]
    (corpus / "docs.jsonl").write_text(lines(documents), encoding="utf-8")
    for other, expected in (("d0", 1), ("d1", 0)):
        (corpus / "pairs.jsonl").write_text(lines([judged(other, "d2", "different")]), encoding="utf-8")
        found = read_corpus(corpus)
        assert found.labels["d2"] == "neg"
        score = evaluate(First(), found.documents(), found.labels, different=found.different)
        assert (score.false_drops, score.neg) == (expected, expected)


def test_another_label_is_refused(tmp_path: Path) -> None:
    made = mixed()
    made.write(tmp_path / "corpus")
    labels = tmp_path / "labels.jsonl"
    labels.write_text(lines([judged("d00", "d01", "perhaps")]), encoding="utf-8")
    with pytest.raises(NearDupError, match="copy, different, skip"):
        read_corpus(tmp_path / "corpus", labels)
