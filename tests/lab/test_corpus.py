"""The label of each document, by its pairs with earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.corpus import Corpus, label_document, read_corpus
from scrapy_neardup.lab.pairs import Pair
from tests.files.samples import PACKERS
from tests.lab.corpus import article, document, lines, mixed, read

SAME, OTHER = True, False


def figures(jaccard: float, same_account: bool | None = None, left: float | None = None) -> Pair:
    return Pair("a", "b", jaccard, 0.9, same_account=same_account, left=left)


def test_the_label_of_a_document_by_its_pairs() -> None:
    for earlier, accounts, expected in [
        ([], False, "neg"),
        ([], True, "neg"),
        ([figures(0.8)], False, "pos"),
        ([figures(0.3), figures(0.95)], False, "pos"),
        ([figures(0.8, SAME), figures(0.7, OTHER)], True, "pos"),
        ([figures(0.6, OTHER)], True, "repost"),
        ([figures(0.79, SAME), figures(0.6, OTHER)], True, "repost"),
        ([figures(0.59, OTHER)], True, "grey"),
        ([figures(0.6)], True, "grey"),
        ([figures(0.7)], False, "grey"),
        ([figures(0.5, SAME), figures(0.74, SAME)], True, "template"),
        ([figures(0.2, SAME)], True, "template"),
        ([figures(0.75, SAME)], True, "grey"),
        ([figures(0.6, SAME), figures(0.5, OTHER)], True, "grey"),
        ([figures(0.6, SAME), figures(0.5)], True, "grey"),
        ([figures(0.95, left=29)], False, "skip"),
        ([figures(0.95), figures(0.5, left=29)], False, "skip"),
        ([figures(0.95, left=30)], False, "pos"),
    ]:
        assert label_document(earlier, is_short=False, has_accounts=accounts) == expected
        assert label_document(earlier, is_short=True, has_accounts=accounts) == "skip"


def make_corpus(folder: Path, pairs: list[dict[str, Any]], texts: list[str]) -> Corpus:
    (folder / "pairs.jsonl").write_text(lines(pairs))
    names = [*"abcdefgh", *map(str, range(1000))]
    return read_corpus(folder, [document(id, text) for id, text in zip(names, texts, strict=False)])


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
        # An answer counts in place of figures, wherever it stands. An unsure one does not.
        ([pair("a", "b", 0.4, 0.5, label="copy"), pair("a", "b", 0.9)], ["grey", "pos", "grey", "grey"]),
        ([pair("a", "b", 0.9), pair("a", "b", 0.9, label="different")], ["grey", "neg", "grey", "grey"]),
        ([pair("a", "b", 0.9, label="skip"), pair("a", "c", 0.9)], ["neg", "neg", "pos", "neg"]),
        ([pair("a", "b", 0.9), pair("a", "b", 0.9, label="skip")], ["neg", "pos", "neg", "neg"]),
        # Of answers alone nothing is known of other documents.
        (
            [pair("a", "b", 0.4, 0.5, label="copy"), pair("a", "c", 0.4, 0.5, label="different")],
            ["grey", "pos", "neg", "grey"],
        ),
    ],
)
def test_labels_from_a_file_of_pairs(tmp_path: Path, pairs: list[dict[str, Any]], expected: list[str]) -> None:
    corpus = make_corpus(tmp_path, pairs, LONG)
    assert corpus.labels == dict(zip("abcd", expected, strict=True))
    different = {one["b"]: {"a"} for one in pairs if one.get("label") == "different"}
    assert {id: set(earlier) for id, earlier in corpus.different.items() if earlier} == different


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([*LONG[:3], "word " * 60], "skip"),
        ([*LONG[:3], " ".join(f"w{number}" for number in range(21))], "skip"),
        ([*LONG[:3], " ".join(f"w{number}" for number in range(22))], "neg"),
        ([*CHINESE, "word " * 60], "neg"),
        ([*CHINESE[:2], LONG[0], "word " * 60], "skip"),
        ([*CHINESE[:2], LONG[0], "桥！ " * 59], "skip"),
        ([*CHINESE[:2], LONG[0], "桥！ " * 60], "neg"),
        ([CHINESE[0], *LONG[:2], "词" * 70], "skip"),
        (["".join("\U00020000" for _ in range(200))] * 3, "neg"),
        # The first hundred documents decide on the language.
        ([CHINESE[0]] * 51 + [LONG[0]] * 200 + ["word " * 60], "neg"),
        ([CHINESE[0]] * 50 + [LONG[0]] * 200 + ["word " * 60], "skip"),
    ],
)
def test_short_documents_depend_on_the_main_language(tmp_path: Path, texts: list[str], expected: str) -> None:
    assert list(make_corpus(tmp_path, [], texts).labels.values())[-1] == expected


GOLD = [{"a": "d00", "b": "d21", "drop": "yes", "label": "repost"}, {"a": "d06", "b": "d07", "drop": "no"}]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_of_pairs_lie_beside_the_documents_or_are_named(tmp_path: Path, suffix: str) -> None:
    folder = mixed().write(tmp_path / "town")
    pairs = folder / f"pairs.jsonl{suffix}"
    pairs.write_bytes(PACKERS[suffix]((folder / "pairs.jsonl").read_bytes()))
    if suffix:
        (folder / "pairs.jsonl").unlink()
    gold = folder / f"gold.jsonl{suffix}"
    gold.write_bytes(PACKERS[suffix](lines(GOLD).encode()))
    beside = read(folder / "docs.jsonl")
    assert (beside.name, len(beside.gold), list(beside.labels.values()).count("pos")) == ("docs.jsonl", 2, 7)
    pairs.rename(tmp_path / pairs.name)
    alone = read(folder)
    assert (set(alone.labels.values()), alone.gold) == ({"grey", "skip"}, beside.gold)
    assert read(folder, tmp_path / pairs.name).labels == beside.labels
    other = tmp_path / "other.jsonl"
    other.write_text(lines([{"a": "d00", "b": "d21", "drop": "no", "corpus": "town"}]))
    for path in (folder, folder / "docs.jsonl"):
        assert [one.answer for one in read(path, gold=other).gold] == ["different"]


def test_a_corpus_without_pairs_or_documents_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NearDupError, match=r'pairs\.jsonl with pairs does not exist\. Put .*"a": id, "b": id'):
        read_corpus(tmp_path, [document("a", LONG[0])])
    with pytest.raises(NearDupError, match="no documents"):
        make_corpus(tmp_path, [], [])
