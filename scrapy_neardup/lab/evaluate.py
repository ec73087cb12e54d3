"""The score of a method on a labelled corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import fields
from time import process_time
from typing import Any

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.lab.corpus import GREY, Corpus
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.groups import GroupingJudge
from scrapy_neardup.lab.replay import MIN_LETTERS, Judge, make_judge, open_empty_store, replay
from scrapy_neardup.lab.scores import Score, compare_answers, score
from scrapy_neardup.methods import Method, make_method
from scrapy_neardup.model import Page, Verdict
from scrapy_neardup.text.prose import has_prose

#: Whether a page is compared with originals alone, as in a crawl, or with their copies too.
GROUPINGS = SINGLE_PASS, UNION_FIND = "single-pass", "union-find"

#: Yields the documents and shows the progress.
Progress = Callable[[Iterable[Document]], Iterable[Document]]


def evaluate(
    method: Method,
    corpus: Corpus,
    *,
    store_url: str = "memory:",
    grouping: str = SINGLE_PASS,
    progress: Progress = iter,
    on_verdict: Callable[[Document, Verdict], None] = lambda document, verdict: None,
) -> Score:
    """Return the score of a method; ``store_url``: one of ``STORES``; ``grouping``: one of ``GROUPINGS``.

    A word list that the method loads once is loaded before the clock runs. A document that is dropped for another one
    than those a person called different counts for nothing. In ``gold`` pairs a dropped document counts as dropped,
    whatever its original. Raises PageError if the method cannot read most pages.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    dropped: set[str] = set()
    seconds = 0.0
    _warm_up(method, corpus.documents)
    with _open_judge(method, store_url, grouping) as (judge, measure_size):

        def judge_timed(page: Page) -> Verdict:
            nonlocal seconds
            begun = process_time()
            try:
                return judge(page)
            finally:
                seconds += process_time() - begun

        for document, verdict in replay(progress(corpus.documents), judge_timed):
            label = corpus.labels[document.id]
            counts[_scored_label(label, verdict, corpus.different.get(document.id)), verdict.is_copy] += 1
            if verdict.is_copy:
                dropped.add(document.id)
            on_verdict(document, verdict)
        size = measure_size()
    return score(
        counts,
        method=method.name,
        parameters=overrides(method),
        seconds=seconds,
        size=size,
        gold=compare_answers(corpus.gold, dropped) if corpus.gold else None,
    )


def sweep(
    name: str, corpus: Corpus, parameters: Mapping[str, Any], values: Iterable[Any] | None = None, **options: Any
) -> Iterator[tuple[Any, Score]]:
    """Yield a score for each value of the method's threshold: ``values``, or those that the method wants tried.

    ``options``: see ``evaluate``. Raises SettingsError if the method does not name its threshold.
    """
    method = make_method(name, parameters)
    threshold = threshold_of(method)
    for value in type(method).sweep if values is None else values:
        yield value, evaluate(make_method(name, {**parameters, threshold: value}), corpus, **options)


def threshold_of(method: Method) -> str:
    """Return the parameter that decides how similar copies are. Raises SettingsError if the method does not name it."""
    found = getattr(method, "threshold", None)
    if not isinstance(found, str) or not hasattr(method, "sweep"):
        raise SettingsError(
            f"The method {method.name} does not name its threshold. Give its class the attributes threshold (name of "
            "a parameter) and sweep (values to try)."
        )
    return found


def overrides(method: Method) -> dict[str, Any]:
    """Return the parameters of a method that differ from its defaults."""
    given, usual = method.parameters, type(method.parameters)()
    values = {field.name: getattr(given, field.name) for field in fields(given)}
    return {name: value for name, value in values.items() if value != getattr(usual, name)}


def _scored_label(label: str, verdict: Verdict, different: Set[str] | None) -> str:
    """Return the label as which a document counts: a document that is no copy of some may be a copy of another."""
    is_of_another = verdict.match is None or verdict.match.url not in (different or ())
    return GREY if different and verdict.is_copy and is_of_another else label


@contextmanager
def _open_judge(method: Method, store_url: str, grouping: str) -> Iterator[tuple[Judge, Callable[[], int]]]:
    """Open a judge, and a function that returns the bytes of its state."""
    if grouping not in GROUPINGS:
        raise SettingsError(f"There is no grouping {grouping!r}. Use {' or '.join(GROUPINGS)}.")
    if grouping == SINGLE_PASS:
        with open_empty_store(method, store_url) as store:
            yield make_judge(method, store), store.size
        return
    if store_url != "memory:":
        raise SettingsError("The grouping union-find works only with the store memory:. Leave out the other store.")
    grouped = GroupingJudge(method, MIN_LETTERS)
    yield grouped.judge, grouped.size


def _warm_up(method: Method, documents: Sequence[Document]) -> None:
    """Fingerprint the first page that the method would see."""
    page = next((document.page for document in documents if has_prose(document.page.text, MIN_LETTERS)), None)
    if page is not None:
        with suppress(PageError):
            method.fingerprint(page)
