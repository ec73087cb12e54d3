"""The score of a method on a labelled corpus: missed copies, wrong drops, agreement with a person, and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from scrapy_neardup.errors import PageError, SettingsError
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.judge.policy import Policy
from scrapy_neardup.lab.corpus import GREY, NEG, POS, REPOST, TEMPLATE, Corpus
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, Pair
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Kind, Page, Verdict
from scrapy_neardup.state.opening import close_store, open_store
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.prose import has_prose

#: Stores that can be made empty for a replay.
STORES = ("memory:", "leveldb:", "sqlite:")
#: Letters that a text needs to be judged; the pipeline's default.
MIN_LETTERS = 40

#: Returns the verdict on a page. Raises PageError.
Judge = Callable[[Page], Verdict]


@contextmanager
def open_empty_store(method: Method, url: str = "memory:") -> Iterator[PageStore]:
    """Open an empty store, one of ``STORES``; its files are gone afterwards."""
    if url not in STORES:
        raise SettingsError(f"An evaluation cannot use the store {url!r}. Use one of: {', '.join(STORES)}.")
    with TemporaryDirectory(prefix="neardup-") as folder:
        path = (Path(folder) / "state").as_uri().removeprefix("file:")
        store = open_store(url if url == "memory:" else url + path, method.recipe(), secret=NO_SECRET)
        try:
            yield store
        finally:
            close_store(store)


def make_judge(method: Method, store: PageStore, min_letters: int = MIN_LETTERS) -> Judge:
    """Return a judge that compares each page with originals, as a crawl does."""
    detector = Detector(method, store, who="replay", policy=Policy(min_letters))
    return partial(detector.judge_now, sealed=True)


def replay(documents: Iterable[Document], judge: Judge) -> Iterator[tuple[Document, Verdict]]:
    """Yield each document with its verdict.

    A page that the method cannot judge is unjudged, as in a crawl. Raises the method's error at the end if these are
    more than half of the pages.
    """
    why: PageError | None = None
    pages = refused = 0
    for document in documents:
        pages += 1
        try:
            verdict = judge(document.page)
        except PageError as error:
            why, refused = error, refused + 1
            verdict = Verdict(Kind.UNJUDGED, document.id, reason=error.reason)
        yield document, verdict
    if why is not None and 2 * refused > pages:
        raise why


@dataclass(frozen=True, slots=True)
class AnswerScore:
    """Agreement of verdicts with a person, in pairs: drops of ``different`` ones, and kept ``copies``.

    ``unsure`` pairs count in neither.
    """

    pairs: int
    agree: int
    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int


@dataclass(frozen=True, slots=True)
class GoldScore(AnswerScore):
    """The agreement on all pairs, and ``by_label`` on the pairs of each label."""

    by_label: dict[str, AnswerScore] = field(default_factory=dict)


def compare_answers(gold: Iterable[Pair], dropped: Set[str]) -> GoldScore:
    """Return the agreement of a method that ``dropped`` these documents.

    >>> gold = [Pair("a", "b", answer="copy"), Pair("a", "c", answer="different")]
    >>> compare_answers(gold, {"b", "c"}).dropped_wrongly
    1
    """
    gold = list(gold)
    labels = sorted({one.label for one in gold} - {""})
    by_label = {label: _compare([one for one in gold if one.label == label], dropped) for label in labels}
    return GoldScore(**asdict(_compare(gold, dropped)), by_label=by_label)


def _compare(gold: list[Pair], dropped: Set[str]) -> AnswerScore:
    different = [one.b in dropped for one in gold if one.answer == DIFFERENT]
    copies = [one.b in dropped for one in gold if one.answer == COPY]
    pairs, dropped_wrongly, kept_wrongly = len(different) + len(copies), sum(different), copies.count(False)
    return AnswerScore(
        pairs=pairs,
        agree=pairs - dropped_wrongly - kept_wrongly,
        different=len(different),
        dropped_wrongly=dropped_wrongly,
        copies=len(copies),
        kept_wrongly=kept_wrongly,
        unsure=len(gold) - pairs,
    )


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one corpus; ``parameters`` are those that differ from defaults.

    Counts are documents by label: of ``pos`` duplicates ``missed`` were kept, of ``neg`` different documents
    ``false_drops`` were dropped. ``precision``: the share of labelled drops that are duplicates, 1 without drops.
    ``recall``: the share of duplicates that were dropped, 1 without duplicates. ``f1``: their harmonic mean.
    ``ms_per_page``: CPU time of this process. ``bytes_per_page``: size of the state per document, dropped ones too.
    ``gold``: agreement with pairs that a person has read.
    """

    method: str
    parameters: dict[str, Any]
    documents: int
    missed: int
    pos: int
    false_drops: int
    neg: int
    false_per_10k: float
    precision: float
    recall: float
    f1: float
    reposts_dropped: int
    reposts: int
    templates_dropped: int
    templates: int
    ms_per_page: float
    bytes_per_page: float
    gold: GoldScore | None = None

    @property
    def labelled(self) -> int:
        """Labelled documents; 0 if only a person's pairs are known."""
        return self.pos + self.neg + self.reposts + self.templates

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, without ``gold`` and its labels where there are none."""
        data = asdict(self)
        if self.gold is None:
            del data["gold"]
        elif not self.gold.by_label:
            del data["gold"]["by_label"]
        return data


#: Yields the documents and shows the progress.
Progress = Callable[[Iterable[Document]], Iterable[Document]]


def evaluate(
    method: Method,
    corpus: Corpus,
    *,
    store_url: str = "memory:",
    progress: Progress = iter,
    on_verdict: Callable[[Document, Verdict], None] = lambda document, verdict: None,
) -> Score:
    """Return the score of a method; ``store_url``: one of ``STORES``.

    The method loads its word lists before the clock runs. A person may have called a document different from some
    others; if it is dropped for one beside these, it is not scored. In ``gold`` pairs a dropped document counts as
    dropped, whatever its original. Raises PageError if the method cannot read most pages.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    dropped: set[str] = set()
    seconds = 0.0
    first = next((one.page for one in corpus.documents if has_prose(one.page.text, MIN_LETTERS)), None)
    if first is not None:
        with suppress(PageError):
            method.fingerprint(first)
    with open_empty_store(method, store_url) as store:
        judge = make_judge(method, store)

        def judge_timed(page: Page) -> Verdict:
            nonlocal seconds
            begun = process_time()
            try:
                return judge(page)
            finally:
                seconds += process_time() - begun

        for document, verdict in replay(progress(corpus.documents), judge_timed):
            label, different = corpus.labels[document.id], corpus.different.get(document.id, frozenset())
            if different and verdict.is_copy and (verdict.match is None or verdict.match.url not in different):
                label = GREY  # it is no copy of those, but may be one of another document
            counts[label, verdict.is_copy] += 1
            if verdict.is_copy:
                dropped.add(document.id)
            on_verdict(document, verdict)
        size = store.size()
    gold = compare_answers(corpus.gold, dropped) if corpus.gold else None
    return make_score(method, counts, seconds, size, gold)


def make_score(
    method: Method,
    counts: Mapping[tuple[str, bool], int],
    seconds: float,
    size: int,
    gold: GoldScore | None = None,
) -> Score:
    """Return the score from ``counts``: documents by label, dropped (True) and kept (False).

    ``seconds`` and ``size`` (bytes) cover all documents.
    """

    def both(label: str) -> tuple[int, int]:
        dropped = counts.get((label, True), 0)
        return dropped, dropped + counts.get((label, False), 0)

    (found, pos), (false, neg) = both(POS), both(NEG)
    (reposts_dropped, reposts), (templates_dropped, templates) = both(REPOST), both(TEMPLATE)
    documents = sum(counts.values())
    precision = found / (found + false) if found + false else 1.0
    recall = found / pos if pos else 1.0
    return Score(
        method=method.name,
        parameters=find_overrides(method),
        documents=documents,
        missed=pos - found,
        pos=pos,
        false_drops=false,
        neg=neg,
        false_per_10k=round(1e4 * false / max(1, neg), 1),
        precision=round(precision, 4),
        recall=round(recall, 4),
        f1=round(2 * precision * recall / (precision + recall), 4) if found else 0.0,
        reposts_dropped=reposts_dropped,
        reposts=reposts,
        templates_dropped=templates_dropped,
        templates=templates,
        ms_per_page=round(1e3 * seconds / max(1, documents), 3),
        bytes_per_page=round(size / max(1, documents), 1),
        gold=gold,
    )


def find_threshold(method: Method) -> str:
    """Return the parameter that decides how similar copies are. Raises SettingsError if the method does not name it."""
    found = getattr(method, "threshold", None)
    if not isinstance(found, str) or not hasattr(method, "sweep"):
        raise SettingsError(
            f"The method {method.name} does not name its threshold. Give its class the attributes threshold (name of "
            "a parameter) and sweep (values to try)."
        )
    return found


def find_overrides(method: Method) -> dict[str, Any]:
    """Return the parameters of a method that differ from its defaults."""
    usual = asdict(type(method.parameters)())
    return {name: value for name, value in asdict(method.parameters).items() if value != usual[name]}
