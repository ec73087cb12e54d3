"""Methods on a corpus of our own: what is counted, in which stores, and what a threshold's sweep gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import pytest

from scrapy_neardup.errors import LexiconNeeded, NearDupError, SettingsError
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.evaluate import MIN_LETTERS, STORES, evaluate, overrides, sweep
from scrapy_neardup.lab.labels import Corpus, read_corpus
from scrapy_neardup.methods import METHODS, make_method
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.settings import Config
from tests.lab.corpus import mixed
from tests.lab.methods import Broken, First, FirstParameters, Picky, Unsaid

REGISTERED = sorted(METHODS)


@pytest.fixture(autouse=True)
def methods(monkeypatch: pytest.MonkeyPatch) -> None:
    for method in (First, Broken, Unsaid):
        monkeypatch.setitem(METHODS, method.name, method)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return read_corpus(mixed().write(tmp_path_factory.mktemp("made")))


def test_the_default_method_finds_every_copy_and_nothing_else(corpus: Corpus) -> None:
    score = evaluate(make_method("cascade", {}), corpus.documents(), corpus.labels)
    assert (score.method, score.parameters, score.documents) == ("cascade", {}, 30)
    assert (score.missed, score.pos, score.false_drops, score.neg) == (0, 7, 0, 21)
    assert (score.precision, score.recall, score.f1) == (1, 1, 1)
    assert 0 < score.ms_per_page < 1000
    assert 50 < score.bytes_per_page < 5000


def test_a_method_that_sees_exact_copies_alone_misses_the_edited_ones(corpus: Corpus) -> None:
    score = evaluate(First(), corpus.documents(), corpus.labels)
    assert (score.missed, score.pos, score.false_drops, score.neg) == (3, 7, 0, 21)
    assert (score.precision, score.recall) == (1.0, 4 / 7)


def test_a_method_that_takes_much_for_a_copy_drops_wrongly(corpus: Corpus) -> None:
    firsts = {document.text[0] for document in corpus.documents() if corpus.labels[document.id] != "skip"}
    score = evaluate(First(FirstParameters(letters=1)), corpus.documents(), corpus.labels)
    assert score.parameters == {"letters": 1}
    assert (score.missed, score.false_drops) == (0, 21 - len(firsts))


@pytest.mark.parametrize("store", STORES)
def test_a_score_is_the_same_in_every_store_and_leaves_nothing_behind(
    corpus: Corpus, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store == "leveldb:" and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    score = evaluate(First(), corpus.documents(), corpus.labels, store_url=store)
    assert (score.missed, score.false_drops, score.bytes_per_page > 0) == (3, 0, True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store", STORES)
def test_a_method_that_fails_leaves_nothing_behind_either(
    corpus: Corpus, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if store == "leveldb:" and find_spec("plyvel") is None:
        pytest.skip("plyvel is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(NearDupError, match="The lexicon is of another language"):
        evaluate(Broken(), corpus.documents(), corpus.labels, store_url=store)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("store", ["", "memory", "sqlite:///data/state", "redis:"])
def test_a_store_that_may_hold_something_is_refused(corpus: Corpus, store: str) -> None:
    with pytest.raises(SettingsError, match="memory:, leveldb:, sqlite:"):
        evaluate(First(), corpus.documents(), corpus.labels, store_url=store)


def test_every_verdict_is_told_in_order(corpus: Corpus) -> None:
    told: list[tuple[Document, Verdict]] = []
    evaluate(First(), corpus.documents(), corpus.labels, on_verdict=lambda *one: told.append(one))
    assert [document for document, _ in told] == list(corpus.documents())
    kinds = [verdict.kind for _, verdict in told]
    assert kinds == [Kind.UNIQUE] * 21 + [Kind.DUPLICATE] * 4 + [Kind.UNIQUE] * 3 + [Kind.UNJUDGED] * 2
    assert [verdict.match and verdict.match.url for _, verdict in told[21:25]] == ["d00", "d01", "d02", "d03"]


def test_documents_pass_through_the_bar(corpus: Corpus) -> None:
    seen = []

    def bar(documents: Iterable[Document]) -> Iterable[Document]:
        for document in documents:
            seen.append(document.id)
            yield document

    evaluate(First(), corpus.documents(), corpus.labels, progress=bar)
    assert seen == list(corpus.labels)


def test_what_a_method_loads_once_is_not_on_the_clock(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    class Slow(First):
        loaded = False

        def fingerprint(self, page: Page):  # type: ignore[no-untyped-def]
            clock[0] += 0.5 if self.loaded else 1000
            self.loaded = True
            return super().fingerprint(page)

    monkeypatch.setattr("scrapy_neardup.lab.evaluate.process_time", lambda: clock[0])
    score = evaluate(Slow(), corpus.documents(), corpus.labels)
    assert score.ms_per_page == pytest.approx(28 * 500 / 30)


def test_a_document_without_a_label_or_with_a_second_one_is_refused(corpus: Corpus) -> None:
    documents = list(corpus.documents())
    with pytest.raises(NearDupError, match="'d05' has no label"):
        evaluate(First(), documents, {id: kind for id, kind in corpus.labels.items() if id != "d05"})
    with pytest.raises(NearDupError, match="Two documents have the id 'd00'"):
        evaluate(First(), [*documents, documents[0]], corpus.labels)


def test_a_sweep_tries_the_values_of_the_method(corpus: Corpus) -> None:
    points = list(sweep("first", corpus))
    assert [(value, score.parameters, score.missed) for value, score in points] == [
        (0.0, {"least": 0.0}, 0),
        (1.0, {}, 3),
    ]
    assert points[0][1].false_drops > 0


def test_a_sweep_tries_the_values_it_is_given_with_other_parameters(corpus: Corpus) -> None:
    points = list(sweep("first", corpus, parameters={"letters": 1, "least": 0.3}, values=[0.5]))
    assert [(value, score.parameters) for value, score in points] == [(0.5, {"letters": 1, "least": 0.5})]


@pytest.mark.parametrize("name", REGISTERED)
def test_every_registered_method_says_what_to_sweep(name: str) -> None:
    method = METHODS[name]
    assert len(method.sweep) > 1
    for value in method.sweep:
        assert getattr(make_method(name, {method.threshold: value}).parameters, method.threshold) == value


def test_a_method_without_a_threshold_is_not_swept(corpus: Corpus) -> None:
    with pytest.raises(SettingsError, match="The method unsaid"):
        next(sweep("unsaid", corpus))


def test_overrides_are_what_differs_from_the_defaults() -> None:
    assert overrides(make_method("cascade", {"base": 0.7, "short": 120})) == {"base": 0.7}


def test_as_many_letters_are_needed_as_in_a_crawl() -> None:
    assert Config().min_letters == MIN_LETTERS


@pytest.mark.parametrize(("others", "refused"), [(1, False), (3, False), (4, True), (60, True)])
def test_pages_that_a_method_refuses_are_kept_unless_they_are_most_of_them(others: int, refused: bool) -> None:
    """As in a crawl, where they pass; but figures of a method that judged hardly a page would mislead."""
    text = "渡口今天早上开航了，第一班船载着三十六位乘客和他们的行李，从对岸的柳林村慢慢驶来，卖豆浆的老周等了十一年。"
    chinese = [Document(str(number), text=text) for number in range(3)]
    english = [
        Document(f"e{number}", text=f"The ferry sails again after eleven years {number:050}")
        for number in range(others)
    ]
    labels = {document.id: "neg" for document in (*chinese, *english)}
    if refused:
        with pytest.raises(LexiconNeeded, match="Count a lexicon first"):
            evaluate(Picky(FirstParameters()), [*chinese, *english], labels)
    else:
        score = evaluate(Picky(FirstParameters()), [*english, *chinese], labels)
        assert (score.false_drops, score.neg) == (2, 3 + others)
