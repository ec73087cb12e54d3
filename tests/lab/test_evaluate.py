"""Scores of methods on an invented corpus, in every store, and sweeps of a threshold."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from scrapy_neardup.errors import LexiconNeeded, SettingsError
from scrapy_neardup.lab.corpus import Corpus
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.evaluate import MIN_LETTERS, Score, compare_answers, evaluate, make_score
from scrapy_neardup.lab.pairs import Pair
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Kind, Verdict
from scrapy_neardup.settings import Config
from tests.lab.corpus import document, mixed, read
from tests.lab.methods import First, FirstParameters, Picky


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read(mixed().write(tmp_path_factory.mktemp("made")))


def test_a_score_counts_missed_copies_and_wrong_drops(corpus: Corpus) -> None:
    score = evaluate(make_method("cascade", {}), corpus)
    assert (score.method, score.parameters, score.documents) == ("cascade", {}, 30)
    assert (score.missed, score.pos, score.false_drops, score.neg) == (0, 7, 0, 21)
    assert (score.precision, score.recall, score.f1) == (1, 1, 1)
    assert 0 < score.ms_per_page < 1000
    assert 50 < score.bytes_per_page < 5000
    firsts = {one.page.text[0] for one in corpus.documents if corpus.labels[one.id] != "skip"}
    lax = evaluate(First(FirstParameters(letters=1)), corpus)
    assert (lax.parameters, lax.missed, lax.false_drops) == ({"letters": 1}, 0, 21 - len(firsts))


def test_a_store_that_may_hold_something_is_refused(corpus: Corpus) -> None:
    for store in ("", "memory", "sqlite:///data/state", "redis:"):
        with pytest.raises(SettingsError, match="memory:, leveldb:, sqlite:"):
            evaluate(First(), corpus, store_url=store)


def test_every_verdict_is_given_in_order_and_the_documents_go_through_the_progress(corpus: Corpus) -> None:
    found: list[tuple[Document, Verdict]] = []
    evaluate(First(), corpus, on_verdict=lambda *one: found.append(one), progress=lambda documents: list(documents)[9:])
    assert [one for one, _ in found] == list(corpus.documents)[9:]
    kinds = {one.id: verdict.kind for one, verdict in found}
    assert (kinds["d09"], kinds["d25"], kinds["d28"]) == (Kind.UNIQUE, Kind.UNIQUE, Kind.UNJUDGED)
    assert not any(verdict.is_copy for _, verdict in found)  # their originals were left out


def test_as_many_letters_are_needed_as_in_a_crawl() -> None:
    assert Config().min_letters == MIN_LETTERS


def test_refused_pages_are_kept_unless_they_are_most_pages() -> None:
    """They pass in a crawl too; but figures of a method that judged hardly a page would mislead."""
    text = "渡口今天早上开航了，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来，卖豆浆的老周等了十一年。"
    english = "The ferry sails again after eleven years"
    for others in (1, 3, 4, 60):
        documents = [document(f"e{number}", f"{english} {number:050}") for number in range(others)]
        documents += [document(str(number), text) for number in range(3)]
        corpus = Corpus("both", documents, {one.id: "neg" for one in documents})
        if others < 4:
            score = evaluate(Picky(FirstParameters()), corpus)
            assert (score.false_drops, score.neg) == (2, 3 + others)
        else:
            with pytest.raises(LexiconNeeded, match="Count a lexicon first"):
                evaluate(Picky(FirstParameters()), corpus)


def test_a_document_that_is_dropped_for_another_one_is_no_error() -> None:
    """A person has only said that it is no copy of this one; it may be a copy of that one."""
    texts = ["alpha one", "beta two", "alpha one"]
    documents = [
        document(f"d{at}", f"{text} and so on, with forty letters at the least.") for at, text in enumerate(texts)
    ]
    labels = {"d0": "grey", "d1": "grey", "d2": "neg"}
    for other, expected in (("d0", 1), ("d1", 0)):
        score = evaluate(First(), Corpus("c", documents, labels, {"d2": frozenset({other})}))
        assert (score.false_drops, score.neg) == (expected, expected)


# Scores by hand. Of ten duplicates seven are dropped, of 400 different documents three: precision and recall 7 of 10.
#: Dropped and kept documents of each label.
LABELS = {"pos": (7, 3), "neg": (3, 397), "repost": (4, 1), "template": (2, 6), "grey": (50, 20), "skip": (5, 2)}
COUNTS = {(label, at == 0): both[at] for label, both in LABELS.items() for at in (0, 1)}


def score(counts: dict[tuple[str, bool], int], seconds: float = 0.0, size: int = 0) -> Score:
    return make_score(First(FirstParameters(letters=5)), counts, seconds, size)


def test_a_score_by_hand() -> None:
    assert score(COUNTS, seconds=1.5, size=50_000).as_dict() == {
        "method": "first",
        "parameters": {"letters": 5},
        "documents": 500,
        "missed": 3,
        "pos": 10,
        "false_drops": 3,
        "neg": 400,
        "false_per_10k": 75.0,
        "precision": 0.7,
        "recall": 0.7,
        "f1": 0.7,
        "reposts_dropped": 4,
        "reposts": 5,
        "templates_dropped": 2,
        "templates": 8,
        "ms_per_page": 3.0,
        "bytes_per_page": 100.0,
    }


def test_precision_recall_and_f1() -> None:
    nothing = score({})
    assert (nothing.documents, nothing.false_per_10k, nothing.ms_per_page, nothing.bytes_per_page) == (0, 0, 0, 0)
    for found, pos, false, *expected in (
        (10, 10, 0, 1.0, 1.0, 1.0),
        (5, 10, 0, 1.0, 0.5, 0.6667),
        (5, 5, 5, 0.5, 1.0, 0.6667),
        (1, 4, 3, 0.25, 0.25, 0.25),
        (0, 10, 0, 1.0, 0.0, 0.0),
        (0, 10, 2, 0.0, 0.0, 0.0),
        (0, 0, 0, 1.0, 1.0, 0.0),
        (0, 0, 1, 0.0, 1.0, 0.0),
    ):
        counts = {("pos", True): found, ("pos", False): pos - found, ("neg", True): false, ("neg", False): 20 - false}
        one = score(counts)
        assert [one.precision, one.recall, one.f1, one.false_per_10k] == [*expected, 500 * false], (found, pos, false)


ANSWERS = [
    Pair("a", "b", answer="copy", label="repost"),
    Pair("a", "c", answer="copy", label="repost"),
    Pair("a", "d", answer="different", label="form"),
    Pair("a", "e", answer="different", label="form"),
    Pair("a", "f", answer="different", label="form"),
    Pair("a", "g", answer="skip", label="form"),
    Pair("a", "h", answer="copy"),
]


def test_an_agreement_by_hand() -> None:
    found = compare_answers(ANSWERS, {"b", "d", "e", "g"})
    names = ("pairs", "agree", "different", "dropped_wrongly", "copies", "kept_wrongly", "unsure")
    by_label = {
        "form": dict(zip(names, (3, 1, 3, 2, 0, 0, 1), strict=True)),
        "repost": dict(zip(names, (2, 1, 0, 0, 2, 1, 0), strict=True)),
    }
    assert asdict(found) == {**dict(zip(names, (6, 2, 3, 2, 3, 2, 1), strict=True)), "by_label": by_label}
    assert replace(score({}), gold=found).as_dict()["gold"] == asdict(found)
    assert "by_label" not in replace(score({}), gold=compare_answers(ANSWERS[-1:], set())).as_dict()["gold"]
