"""Scores of methods on labelled documents."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import LexiconNeeded
from scrapy_neardup.lab.evaluate import LabelScore, compare_labels, evaluate
from scrapy_neardup.lab.labels import Label
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from tests.lab.corpus import LABELS, mixed
from tests.lab.methods import First, FirstParameters, Picky

DOCUMENTS = [Page(one["id"], text=one["text"]) for one in mixed()]
PAIRS = [Label(one["a"], one["b"], one["drop"] == "yes", one.get("label", "")) for one in LABELS]


def test_a_score_counts_kept_copies_and_wrong_drops() -> None:
    score = evaluate(make_method("cascade", {}), DOCUMENTS, PAIRS)
    assert (score.method, score.parameters, score.documents) == ("cascade", {}, 30)
    assert (score.agreement.agree, score.agreement.different, score.agreement.copies) == (20, 13, 7)
    assert {name: one.pairs for name, one in score.by_label.items()} == {"copy": 4, "edit": 3}
    assert 0 < score.ms_per_page < 1000
    assert score.bytes_per_page > 50
    strict = evaluate(First(), DOCUMENTS, PAIRS)
    assert (strict.agreement.kept_wrongly, strict.by_label["edit"].kept_wrongly) == (3, 3)
    lax = evaluate(First(FirstParameters(letters=1)), DOCUMENTS, PAIRS)
    firsts = [page.text[0] for page in DOCUMENTS[:21]]
    again = sum(first in firsts[:at] for at, first in enumerate(firsts) if at > 7)
    assert (lax.parameters, lax.agreement.dropped_wrongly, lax.agreement.kept_wrongly) == ({"letters": 1}, again, 0)


def test_the_documents_go_through_the_progress_and_wrong_pairs_are_named() -> None:
    found = evaluate(First(), DOCUMENTS, PAIRS, progress=lambda documents: list(documents)[9:])
    assert found.documents == 21
    assert [one for one in found.wrong if one.a > "d08"] == []
    assert {one.b for one in found.wrong} == {f"d{n}" for n in range(21, 28)}


def test_refused_pages_are_kept_unless_they_are_most_pages() -> None:
    """They pass in a crawl too; but figures of a method that judged hardly a page would mislead."""
    text, english = DOCUMENTS[0].text, "The ferry sails again after eleven years"
    for others in (1, 3, 4, 60):
        documents = [Page(f"e{number}", text=f"{english} {number:050}") for number in range(others)]
        documents += [Page(str(number), text=text) for number in range(3)]
        if others < 4:
            score = evaluate(Picky(FirstParameters()), documents, [Label("0", "1", True), Label("e0", "0", False)])
            assert (score.agreement.agree, score.documents) == (2, 3 + others)
        else:
            with pytest.raises(LexiconNeeded, match="Count a lexicon first"):
                evaluate(Picky(FirstParameters()), documents, [])


def test_an_agreement_by_hand() -> None:
    answers = {"b": True, "c": True, "d": False, "e": False, "f": False, "g": None, "h": True}
    found = compare_labels([Label("a", name, answer) for name, answer in answers.items()], {"b", "d", "e", "g"})
    assert found == LabelScore(6, agree=2, different=3, dropped_wrongly=2, copies=3, kept_wrongly=2, unsure=1)
