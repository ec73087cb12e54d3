"""Where methods agree on pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.candidates import Candidate, Thresholds, judge_pairs
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.maintenance.scan import Watch, unwatched
from scrapy_neardup.methods import Method

#: Methods are compared on so many candidates at most.
SAMPLE = 2_000


@dataclass(frozen=True, slots=True)
class CopiesByMethod:
    """``called[one][other]``: of the ``pairs`` that method one calls copies, the number that method other does too.

    >>> count_copies({"a": [True, True, False], "b": [True, False, False]}).called
    {'a': {'a': 2, 'b': 1}, 'b': {'a': 1, 'b': 1}}
    """

    pairs: int
    called: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class MethodAgreement:
    """The agreement on the ``drawn`` pairs, and on ``all`` candidates or a sample of them."""

    drawn: CopiesByMethod
    all: CopiesByMethod
    is_sample: bool


def count_copies(verdicts: Mapping[str, Sequence[bool]], places: Iterable[int] | None = None) -> CopiesByMethod:
    """Compare verdicts of several methods on the same pairs; ``places``: the pairs that count, by default all."""
    if places is None:
        places = range(len(next(iter(verdicts.values()), ())))
    chosen = {name: [copies[place] for place in places] for name, copies in verdicts.items()}
    called = {
        name: {other: sum(map(bool.__and__, copies, more)) for other, more in chosen.items()}
        for name, copies in chosen.items()
    }
    return CopiesByMethod(len(list(places)), called)


def compare_methods(
    documents: Sequence[Document],
    found: Sequence[Candidate],
    tried: Thresholds,
    others: Mapping[str, Callable[[], Method]],
    drawn: Sequence[int],
    on_failure: Callable[[str, NearDupError], None],
    watch: Watch = unwatched,
) -> MethodAgreement | None:
    """Compare the method with others by name, each made when its turn comes; None if no other one works here.

    ``drawn``: places of candidates. ``on_failure`` gets the name and error of a method that does not work.
    """
    random = Random(1)  # noqa: S311  # a sample
    sample = sorted(random.sample(range(len(found)), min(SAMPLE, len(found))))
    places = sorted({*sample, *drawn})
    verdicts = {tried.name: [found[place].copy[tried.now] for place in places]}
    pairs = [found[place].alike for place in places]

    def judge(name: str, make: Callable[[], Method]) -> None:
        try:
            verdicts[name] = [copy for (copy,) in judge_pairs(documents, pairs, [make()], None, watch)]
        except NearDupError as error:
            on_failure(name, error)

    for name, make in others.items():
        judge(name, make)
    if len(verdicts) < 2:
        return None
    number = {place: number for number, place in enumerate(places)}
    return MethodAgreement(
        count_copies(verdicts, [number[place] for place in drawn]),
        count_copies(verdicts, [number[place] for place in sample]),
        len(sample) < len(found),
    )
