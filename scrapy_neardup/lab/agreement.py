"""Where methods agree on pairs of documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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


def count_copies(verdicts: Mapping[str, Sequence[bool]]) -> CopiesByMethod:
    """Compare the verdicts of several methods on the same pairs."""
    called = {
        one: {other: sum(a and b for a, b in zip(copies, more, strict=True)) for other, more in verdicts.items()}
        for one, copies in verdicts.items()
    }
    return CopiesByMethod(len(next(iter(verdicts.values()))), called)


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
    pairs = [found[place].alike for place in places]
    verdicts = {tried.name: {place: found[place].copy[tried.now] for place in places}}

    def judge(name: str, make: Callable[[], Method]) -> None:
        try:
            copies = [copy for (copy,) in judge_pairs(documents, pairs, [make()], None, watch)]
            verdicts[name] = dict(zip(places, copies, strict=True))
        except NearDupError as error:
            on_failure(name, error)

    for name, make in others.items():
        judge(name, make)
    if len(verdicts) < 2:
        return None
    on_drawn, on_sample = (
        count_copies({name: [copies[place] for place in chosen] for name, copies in verdicts.items()})
        for chosen in (drawn, sample)
    )
    return MethodAgreement(on_drawn, on_sample, len(sample) < len(found))
