"""How many edits each method withstands.

After the experiment of a Chinese paper on Simhash: 1,000 texts, 1 to 20% added or deleted at random places, sentences
reordered. Here pages are edited in more ways, and a page counts only if a state would find it too. Pairs of different
pages are the control: without it, a method that calls everything a copy would win.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.edits import EDITS, Material, edit_page, find_edit
from scrapy_neardup.lab.evaluate import find_overrides
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.text.normalize import letters, normalize

#: Shares of the text that an edit changes, as in the paper.
AMOUNTS = (0.01, 0.02, 0.05, 0.10, 0.15, 0.20)
#: The name of the control among the edits.
CONTROL = "other page"
#: Texts that lend sentences and titles, as many as in the paper.
_LENDERS = 50
#: Pages that each page is compared with for the control.
_OTHERS = 10

#: An edit's name and its amount, 0 without one.
_Step = tuple[str, float]
_OnFailure = Callable[[NearDupError], None]
_Progress = Callable[[Sequence[int]], Iterable[int]]


@dataclass(frozen=True, slots=True)
class Point:
    """The outcome of one edit on ``pages`` pages under one method.

    ``compared``: the share called a copy when both are compared; ``recognised``: the share that also shares a key with
    the original. ``amount`` is 0 for an edit without one. For ``CONTROL`` the pages are pairs of different ones, and 0
    is best.
    """

    method: str
    edit: str
    amount: float
    recognised: float
    compared: float
    pages: int


def measure_robustness(
    methods: Sequence[Method],
    documents: Iterable[Document],
    *,
    edits: Sequence[str] = tuple(EDITS),
    amounts: Sequence[float] = AMOUNTS,
    seed: int = 1,
    progress: _Progress | None = None,
    on_failure: _OnFailure | None = None,
) -> list[Point]:
    """Yield a point for each method, edit and amount, then for the control.

    Edits are the same for all methods, and for equal documents and seed everywhere. ``progress`` receives the pages'
    numbers. A method that cannot judge a page raises NearDupError; ``on_failure`` is called instead, and the method is
    left out. Raises NearDupError for fewer than two different pages, SettingsError for an unknown edit.
    """
    pages = _drop_equal_texts(document.page for document in documents)
    if len(pages) < 2:
        raise NearDupError(
            f"Edits insert sentences of other documents, but only {len(pages)} differ in text. Give two or more."
        )
    plan = [(edit, amount) for edit in edits for amount in (amounts if find_edit(edit).has_amount else (0.0,))]
    materials = _collect_materials(pages, seed)
    trials = [_Trial(method) for method in methods]
    for index in (progress or iter)(range(len(pages))):
        page, material = pages[index], materials[index]
        versions = [
            ((edit, amount), version)
            for edit, amount in plan
            if (version := edit_page(page, edit, amount, _make_random(seed, edit, amount, index), material)) != page
        ]
        trials = [trial for trial in trials if trial.compare(page, versions, on_failure)]
    rng, others = _make_random(seed, CONTROL), len(pages) - 1
    for one in (progress or iter)(range(len(pages))):
        for other in rng.sample(range(others), min(_OTHERS, others)):
            for trial in trials:
                trial.compare_originals(one, other + (other >= one))
    return [trial.point(*step) for trial in trials for step in (*plan, (CONTROL, 0.0))]


def sample_documents(documents: Iterable[Document], count: int, seed: int) -> list[Document]:
    """Draw ``count`` of the documents with equal probability, in one pass; all if there are no more."""
    rng = _make_random(seed, "documents")
    kept: list[Document] = []
    for number, document in enumerate(documents):
        if number < count:
            kept.append(document)
        elif (place := rng.randrange(number + 1)) < count:
            kept[place] = document
    return kept


def format_method(method: Method) -> str:
    """Return a method's name with its parameters that differ from defaults.

    >>> from scrapy_neardup.methods import make_method
    >>> format_method(make_method("cascade", {"shingle": 4, "bins": 512, "certain": 0.9}))
    'cascade:shingle=4,certain=0.9'
    """
    given = ",".join(f"{name}={value}" for name, value in find_overrides(method).items())
    return f"{method.name}:{given}" if given else method.name


class _Trial:
    """Fingerprints of the originals by one method, and its counts by edit and amount."""

    def __init__(self, method: Method) -> None:
        self.name = format_method(method)
        self._method = method
        self._originals: list[Fingerprint] = []
        self._pages: Counter[_Step] = Counter()
        self._compared: Counter[_Step] = Counter()
        self._recognised: Counter[_Step] = Counter()

    def compare(self, page: Page, versions: Iterable[tuple[_Step, Page]], on_failure: _OnFailure | None) -> bool:
        """Compare the versions of a page with it; return whether that worked."""
        try:
            original = self._method.fingerprint(page)
            self._originals.append(original)
            for step, version in versions:
                self._count(step, self._method.fingerprint(version), original)
        except NearDupError as error:
            failure = NearDupError(f"{self.name}: {error}")
            if on_failure is None:
                raise failure from error
            on_failure(failure)
            return False
        return True

    def compare_originals(self, one: int, other: int) -> None:
        """Compare two originals, for the control."""
        self._count((CONTROL, 0.0), self._originals[one], self._originals[other])

    def point(self, edit: str, amount: float) -> Point:
        """Return the shares; 0 of 0 is 0."""
        step = edit, amount
        pages = self._pages[step]
        whole = pages or 1
        return Point(self.name, *step, self._recognised[step] / whole, self._compared[step] / whole, pages)

    def _count(self, step: _Step, new: Fingerprint, old: Fingerprint) -> None:
        duplicate = self._method.compare(new, old.sketch, frozenset()).duplicate
        self._pages[step] += 1
        self._compared[step] += duplicate
        self._recognised[step] += duplicate and not set(new.keys).isdisjoint(old.keys)


def _drop_equal_texts(pages: Iterable[Page]) -> list[Page]:
    """Return the pages with text; of pages with the same letters only the first."""
    found: dict[str, Page] = {}
    for page in pages:
        if own := letters(normalize(page.text)):
            found.setdefault(own, page)
    return list(found.values())


def _collect_materials(pages: Sequence[Page], seed: int) -> list[Material]:
    """Return the material for each page, none of it its own: two sets of lenders lend to each other."""
    order = _make_random(seed, "material").sample(range(len(pages)), min(2 * _LENDERS, len(pages)))
    half = len(order) // 2
    first = frozenset(order[:half])
    lent_to_first, lent = (Material.of(pages[index] for index in lenders) for lenders in (order[half:], order[:half]))
    return [lent_to_first if index in first else lent for index in range(len(pages))]


def _make_random(seed: int, *parts: object) -> Random:
    """Return a generator for one use, so that one more page, edit or method changes nothing for others."""
    return Random(" ".join(map(str, (seed, *parts))))  # noqa: S311  # it must be repeatable, not secret
