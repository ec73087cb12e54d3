"""Scores of methods on labelled documents."""

from __future__ import annotations

import pytest

from scrapy_neardup.errors import LexiconNeeded
from scrapy_neardup.lab.evaluate import evaluate
from scrapy_neardup.lab.labels import Label
from scrapy_neardup.methods import make_method
from scrapy_neardup.model import Page
from tests.lab.corpus import LABELS, mixed
from tests.lab.methods import First, FirstParameters, Picky

DOCUMENTS = [Page(one["id"], text=one["text"]) for one in mixed()]
PAIRS = [Label(one["a"], one["b"], one["drop"] == "yes") for one in LABELS]


def test_a_score_counts_kept_copies_and_wrong_drops() -> None:
    score = evaluate(make_method("cascade", {}), DOCUMENTS, PAIRS)
    assert (score.method, score.parameters, score.documents) == ("cascade", {}, 30)
    assert (score.pairs, score.different, score.copies, score.wrong) == (20, 13, 7, [])
    assert 0 < score.ms_per_page < 1000
    assert score.bytes_per_page > 50
    strict = evaluate(First(), DOCUMENTS, PAIRS)
    assert (strict.kept_wrongly, strict.dropped_wrongly) == (3, 0)
    assert {one.b for one in strict.wrong} == {"d25", "d26", "d27"}
    lax = evaluate(First(FirstParameters(letters=1)), DOCUMENTS, PAIRS)
    firsts = [page.text[0] for page in DOCUMENTS[:21]]
    again = sum(first in firsts[:at] for at, first in enumerate(firsts) if at > 7)
    assert (lax.parameters, lax.dropped_wrongly, lax.kept_wrongly) == ({"letters": 1}, again, 0)


def test_refused_pages_are_kept_unless_they_are_most_pages() -> None:
    """They pass in a crawl too; but figures of a method that judged hardly a page would mislead."""
    text, english = DOCUMENTS[0].text, "The ferry sails again after eleven years"
    for others in (1, 3, 4, 60):
        documents = [Page(f"e{number}", text=f"{english} {number:050}") for number in range(others)]
        documents += [Page(str(number), text=text) for number in range(3)]
        if others < 4:
            score = evaluate(Picky(FirstParameters()), documents, [Label("0", "1", True), Label("e0", "0", False)])
            assert (score.pairs, score.wrong, score.documents) == (2, [], 3 + others)
        else:
            with pytest.raises(LexiconNeeded, match="Count a lexicon first"):
                evaluate(Picky(FirstParameters()), documents, [])
