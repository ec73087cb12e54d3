"""The agreement of a method with the labels of a person, and its cost.

Labels are pairs of documents that a person has read, in JSON lines or a table. Similarity is no label: two pages may
fill in one form, and a copy may have a new lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

from scrapy_neardup.errors import NearDupError, PageError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.judge.context import Policy
from scrapy_neardup.judge.detector import Detector
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Outcome, Page, Verdict
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.recipe import NO_SECRET
from scrapy_neardup.text.sentences import has_prose

#: Answers to the question: would a publisher who wants each article once drop the later page?
DROP = {"yes": True, "no": False, "unsure": None}
_NEED = 'each line must be one JSON object such as {"a": id of the earlier, "b": id of the later, "drop": "yes"}'


@dataclass(frozen=True, slots=True)
class Label:
    """Two documents by name, ``a`` before ``b``, and whether ``b`` is a copy; None if the reader is unsure."""

    a: str
    b: str
    is_copy: bool | None


def read_labels(path: Path, places: Mapping[str, int]) -> list[Label]:
    """Return the labels of a file; the last line of a pair counts.

    ``places``: of the documents by name; the earlier one of a pair becomes ``a``. Raises NearDupError that names the
    line.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with labels does not exist. Name a file with --pairs; {_NEED}.")
    labels = {}
    for record in read_input(str(path)):
        if not isinstance(record, Entry):
            raise NearDupError(f"{record.place} is {record.why}; {_NEED}.")
        try:
            label = _parse(record.fields, places)
        except ValueError as error:
            raise NearDupError(f"{record.place}: {error}; {_NEED}.") from None
        labels[label.a, label.b] = label
    return list(labels.values())


def _parse(fields: Mapping[str, Any], places: Mapping[str, int]) -> Label:
    """Return the label with the earlier document first. Raises ValueError."""
    a, b, drop = (fields.get(name) for name in ("a", "b", "drop"))
    if a is None or b is None:
        raise ValueError("a and b must name two documents")
    if not isinstance(drop, str) or drop not in DROP:
        raise ValueError(f"drop must be one of {', '.join(DROP)}, not {drop!r}")
    for name in (str(a), str(b)):
        if name not in places:
            raise ValueError(
                f"no document has the id {name!r}. Name documents that also hold the dropped pages, such as the feed "
                "of a dry run, or the field of the ids with --id"
            )
    if str(a) == str(b):
        raise ValueError("a and b are the same document")
    earlier, later = sorted((str(a), str(b)), key=places.__getitem__)
    return Label(earlier, later, DROP[drop])


# Scores.

#: Letters that a text needs to be judged, unless a setting says otherwise.
_MIN_LETTERS = Policy().min_letters


def open_empty_store(method: Method) -> closing[PageStore]:
    """Open an empty state in memory under no secret, for repeatable verdicts; ``with`` closes it."""
    return closing(memory_state(method.recipe(), NO_SECRET))


def replay(documents: Iterable[Page], method: Method, store: PageStore) -> Iterator[tuple[Page, Verdict]]:
    """Yield each document with its verdict, by originals as in a crawl with the usual settings.

    A page that the method cannot judge is unjudged, as in a crawl. Raises the method's error at the end if these are
    more than half of the pages.
    """
    last_error: PageError | None = None
    pages = refused = 0
    detector = Detector(method, store, who="replay")
    for page in documents:
        pages += 1
        try:
            verdict = detector.judge_now(page, sealed=True)
        except PageError as error:
            last_error, refused = error, refused + 1
            verdict = Verdict(Outcome.UNJUDGED, page.url, reason=error.reason)
        yield page, verdict
    if last_error is not None and 2 * refused > pages:
        raise last_error


@dataclass(frozen=True, slots=True)
class Score:
    """One method on one corpus; ``parameters`` are those that differ from defaults.

    The agreement of verdicts with a person, in pairs: drops of ``different`` ones, and kept ``copies``. ``unsure``
    pairs count in neither. A dropped page counts as dropped for any original, so a copy of another page is no wrong
    drop. ``wrong``: the pairs with a wrong verdict. ``ms_per_page``: CPU time of this process. ``bytes_per_page``: size
    of the state per document, dropped ones too.
    """

    method: str
    parameters: dict[str, Any]
    documents: int
    pairs: int
    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int
    wrong: list[Label]
    ms_per_page: float
    bytes_per_page: float


def evaluate(method: Method, documents: Sequence[Page], labels: Sequence[Label], watch: Watch = unwatched) -> Score:
    """Return the score of a method.

    The method loads its word lists before the clock runs. Raises PageError if it cannot read most pages.
    """
    first = next((one for one in documents if has_prose(one.text, _MIN_LETTERS)), None)
    with suppress(PageError):
        if first is not None:
            method.fingerprint(first)
    with open_empty_store(method) as store:
        begun = process_time()
        judged = replay(watch(documents, len(documents)), method, store)
        dropped = {page.url for page, verdict in judged if verdict.is_copy}
        seconds, size = process_time() - begun, store.kv.size()
    sure = [one for one in labels if one.is_copy is not None]
    may_not_drop = dropped - {one.b for one in sure if one.is_copy}
    wrong = [one for one in sure if (one.b not in dropped if one.is_copy else one.b in may_not_drop)]
    usual, pages = asdict(type(method.parameters)()), max(1, len(documents))
    return Score(
        method=method.name,
        parameters={name: value for name, value in asdict(method.parameters).items() if value != usual[name]},
        documents=len(documents),
        pairs=len(sure),
        different=sum(not one.is_copy for one in sure),
        dropped_wrongly=sum(not one.is_copy for one in wrong),
        copies=sum(one.is_copy is True for one in sure),
        kept_wrongly=sum(one.is_copy is True for one in wrong),
        unsure=len(labels) - len(sure),
        wrong=wrong,
        ms_per_page=round(1e3 * seconds / pages, 3),
        bytes_per_page=round(size / pages, 1),
    )
