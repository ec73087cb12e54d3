"""Speculation: a worker assumes which sentences are boilerplate, and the judge verifies that.

A page is fingerprinted without its boilerplate, which a state learns page by page. A worker has no state, so it assumes
what the state said of earlier pages. The fingerprint comes with these assumptions. If one is wrong when the page is
judged, the judge makes the fingerprint anew. So the result is always the fingerprint that the state asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page, SiteCounts

#: Updates that are kept at most; beyond them everything is learned anew.
_MOST = 200_000

#: A site (None: all sites), a sentence, and whether it is boilerplate there.
BoilerplateUpdate = tuple[str | None, int, bool]


class Assumption(NamedTuple):
    """What a method asked of ``SiteCounts`` (``query`` is the name of its method), and the assumed answers."""

    query: str
    sentences: npt.NDArray[np.uint32]
    answers: npt.NDArray[np.bool_]

    def holds(self, counts: SiteCounts) -> bool:
        """Whether the state gives the same answers."""
        ask = counts.is_own if self.query == "is_own" else counts.is_common
        return ask(self.sentences).tobytes() == self.answers.tobytes()


class NeedsState(Exception):
    """A method asked what only the state can answer."""


class SpeculativeCounts:
    """Stands in for the ``SiteCounts`` of a state; ``assumptions`` records each answer.

    ``own``: sentences that are boilerplate of the site; ``everywhere``: of all sites.
    """

    def __init__(self, own: Set[int], everywhere: Set[int]) -> None:
        self.assumptions: list[Assumption] = []
        self._own = own
        self._everywhere = everywhere

    def is_own(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """See ``SiteCounts``."""
        return self._assume("is_own", sentences, self._own)

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """See ``SiteCounts``."""
        return self._assume("is_common", sentences, self._own, self._everywhere)

    def _refuse(self, *_: object) -> Any:
        raise NeedsState

    pages = stood_on = forms = _refuse

    def _assume(self, query: str, sentences: npt.NDArray[np.uint32], *boilerplate: Set[int]) -> npt.NDArray[np.bool_]:
        """Which sentences are in one of these sets; on most pages none is, so that case is fast."""
        numbers = sentences.tolist()
        matches = {number for one in boilerplate if not one.isdisjoint(numbers) for number in numbers if number in one}
        answers = np.array([number in matches for number in numbers] if matches else np.zeros(len(numbers)), np.bool_)
        self.assumptions.append(Assumption(query, sentences, answers))
        return answers


class Boilerplate:
    """What a state said so far of boilerplate.

    ``updates`` lists all of it in order. The list only grows. When it is too long, a new list takes its place and
    learning begins anew.
    """

    def __init__(self) -> None:
        self.updates: list[BoilerplateUpdate] = []
        self._sentences: dict[str | None, set[int]] = {}

    def on_site(self, site: str) -> SpeculativeCounts:
        """The assumptions about a site."""
        return SpeculativeCounts(self._sentences.get(site, frozenset()), self._sentences.get(None, frozenset()))

    def add(self, update: BoilerplateUpdate) -> None:
        """Apply an update, and list it if it changes anything."""
        site, sentence, is_boilerplate = update
        sentences = self._sentences.setdefault(site, set())
        if is_boilerplate is not (sentence in sentences):
            (sentences.add if is_boilerplate else sentences.discard)(sentence)
            self.updates.append(update)

    def learn(self, site: str, counts: SiteCounts, assumptions: Iterable[Assumption]) -> None:
        """Correct the assumptions about a site that the state refutes."""
        if len(self.updates) > _MOST:
            self.updates = []
            self._sentences.clear()
        for sentences in (one.sentences for one in assumptions if not one.holds(counts)):
            own, common = counts.is_own(sentences).tolist(), counts.is_common(sentences).tolist()
            for sentence, is_own, is_common in zip(sentences.tolist(), own, common, strict=True):
                self.add((site, sentence, is_own))
                if not (is_own and is_common):
                    self.add((None, sentence, is_common))


class UpdateCursor:
    """How many updates one worker process has received."""

    def __init__(self, boilerplate: Boilerplate) -> None:
        self._boilerplate = boilerplate
        self._updates: list[BoilerplateUpdate] = []
        self._count = 0

    def take(self) -> tuple[bool, list[BoilerplateUpdate]]:
        """The updates that the process lacks, and whether it begins anew with them."""
        if self._boilerplate.updates is not self._updates:
            self._updates, self._count = self._boilerplate.updates, 0
        new, is_first = self._updates[self._count :], self._count == 0
        self._count += len(new)
        return is_first, new


def apply_updates(boilerplate: Boilerplate, taken: tuple[bool, list[BoilerplateUpdate]]) -> Boilerplate:
    """The boilerplate of a worker process after the updates that a cursor has taken."""
    is_first, updates = taken
    boilerplate = Boilerplate() if is_first else boilerplate
    for update in updates:
        boilerplate.add(update)
    return boilerplate


@dataclass(slots=True)
class PreparedFingerprint:
    """A fingerprint that a worker made, with its assumptions.

    ``title``: see ``Method.pack_title``; empty if the fingerprint has none. ``has_site``: whether the fingerprint comes
    with the counts of the site. ``boilerplate``: what learns from wrong assumptions, in the process that judges.
    """

    fingerprint: Fingerprint
    assumptions: tuple[Assumption, ...] = ()
    title: str = ""
    has_site: bool = False
    boilerplate: Boilerplate = field(default_factory=Boilerplate, init=False, compare=False)

    @classmethod
    def make(cls, method: Method, page: Page, boilerplate: Boilerplate) -> PreparedFingerprint | None:
        """The fingerprint of a page; if that fails, the judge tries it with the state, and reports the error."""
        counts = boilerplate.on_site(page.site)
        try:
            made = method.for_state(page, counts)
            title = "" if made.title is None else method.pack_title(made.title)
        except Exception:
            return None
        return cls(replace(made, site=None, title=None), tuple(counts.assumptions), title, made.site is not None)

    def verified(self, page: Page, counts: SiteCounts, method: Method) -> Fingerprint:
        """The fingerprint of a page, made anew if the state refutes an assumption."""
        if not all(one.holds(counts) for one in self.assumptions):
            return method.for_state(page, counts)
        title = _LazyTitle(method, self.title) if self.title else None
        return replace(self.fingerprint, site=counts if self.has_site else None, title=title)

    def learn(self, site: str, counts: SiteCounts) -> None:
        """Let later pages of a site profit from wrong assumptions about this one."""
        self.boilerplate.learn(site, counts, self.assumptions)


class _LazyTitle:
    """A title as ``Method.unpack_title`` makes it, unpacked at the first access: it holds the whole text."""

    def __init__(self, method: Method, packed: str) -> None:
        self._method = method
        self._packed = packed

    @cached_property
    def _title(self) -> Any:
        return self._method.unpack_title(self._packed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._title, name)
