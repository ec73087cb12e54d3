"""The agreement of a method with a person's labels, and its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from time import process_time
from typing import Any

from scrapy_neardup.errors import PageError
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.lab.labels import Label
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.state.opening import open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.sentences import has_prose

#: Letters that a text needs to be judged, unless a setting says otherwise.
_LEAST = Policy().min_letters
#: Returns the verdict on a page. Raises PageError.
Judge = Callable[[Page], Verdict]


def open_empty_store(method: Method) -> closing[PageStore]:
    """Open an empty state in memory under no secret, for repeatable verdicts; ``with`` closes it."""
    return closing(open_store("memory:", method.recipe(), secret=NO_SECRET))


def make_judge(method: Method, store: PageStore) -> Judge:
    """Return a judge that compares each page with originals, as a crawl with the usual settings does."""
    return partial(Detector(method, store, who="replay").judge_now, sealed=True)


def replay(documents: Iterable[Page], judge: Judge) -> Iterator[tuple[Page, Verdict]]:
    """Yield each document with its verdict.

    A page that the method cannot judge is unjudged, as in a crawl. Raises the method's error at the end if these are
    more than half of the pages.
    """
    why: PageError | None = None
    pages = refused = 0
    for page in documents:
        pages += 1
        try:
            verdict = judge(page)
        except PageError as error:
            why, refused = error, refused + 1
            verdict = Verdict(Outcome.UNJUDGED, page.url, reason=error.reason)
        yield page, verdict
    if why is not None and 2 * refused > pages:
        raise why


@dataclass(frozen=True, slots=True)
class LabelScore:
    """The agreement of verdicts with a person, in pairs: drops of ``different`` ones, and kept ``copies``.

    ``unsure`` pairs count in neither. A dropped page counts as dropped for any original.
    """

    pairs: int
    agree: int
    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int


def compare_labels(labels: Iterable[Label], dropped: Set[str]) -> LabelScore:
    """Return the agreement of a method that ``dropped`` these documents.

    >>> labels = [Label("a", "b", True), Label("a", "c", False)]
    >>> compare_labels(labels, {"b", "c"}).dropped_wrongly
    1
    """
    labels = list(labels)
    different = [one.b in dropped for one in labels if one.is_copy is False]
    copies = [one.b in dropped for one in labels if one.is_copy]
    pairs, dropped_wrongly, kept_wrongly = len(different) + len(copies), sum(different), copies.count(False)
    agree, unsure = pairs - dropped_wrongly - kept_wrongly, len(labels) - pairs
    return LabelScore(pairs, agree, len(different), dropped_wrongly, len(copies), kept_wrongly, unsure)


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one corpus; ``parameters`` are those that differ from defaults.

    ``by_label``: the agreement for each sort of pairs. ``wrong``: the pairs with a wrong verdict. ``ms_per_page``: CPU
    time of this process. ``bytes_per_page``: size of the state per document, dropped ones too.
    """

    method: str
    parameters: dict[str, Any]
    documents: int
    agreement: LabelScore
    by_label: dict[str, LabelScore]
    wrong: list[Label]
    ms_per_page: float
    bytes_per_page: float


#: Yields the documents and shows the progress.
Progress = Callable[[Iterable[Page]], Iterable[Page]]


def evaluate(method: Method, documents: list[Page], labels: list[Label], progress: Progress = iter) -> Score:
    """Return the score of a method.

    The method loads its word lists before the clock runs. Raises PageError if it cannot read most pages.
    """
    dropped: set[str] = set()
    seconds, pages = 0.0, 0
    with suppress(PageError):
        for page in islice((one for one in documents if has_prose(one.text, _LEAST)), 1):
            method.fingerprint(page)
    with open_empty_store(method) as store:
        judge = make_judge(method, store)

        def judge_timed(page: Page) -> Verdict:
            nonlocal seconds
            begun = process_time()
            try:
                return judge(page)
            finally:
                seconds += process_time() - begun

        for page, verdict in replay(progress(documents), judge_timed):
            pages += 1
            if verdict.is_copy:
                dropped.add(page.url)
        size = store.kv.size()
    sorts = sorted({one.sort for one in labels} - {""})
    usual = asdict(type(method.parameters)())
    return Score(
        method=method.name,
        parameters={name: value for name, value in asdict(method.parameters).items() if value != usual[name]},
        documents=pages,
        agreement=compare_labels(labels, dropped),
        by_label={sort: compare_labels([one for one in labels if one.sort == sort], dropped) for sort in sorts},
        wrong=[one for one in labels if one.agrees(dropped=one.b in dropped) is False],
        ms_per_page=round(1e3 * seconds / max(1, pages), 3),
        bytes_per_page=round(size / max(1, pages), 1),
    )
