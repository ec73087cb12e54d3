"""Speculation: a worker assumes which sentences are boilerplate, and the judge verifies that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from scrapy_neardup.model import SiteCounts
from scrapy_neardup.page.child import Child

# ----------------------------------------------------------------------------------------------------------------------
# What is boilerplate, as it is presumed where the state is not at hand; whoever has the state sees whether it holds.
#
# A page is fingerprinted without the sentences that stand on many pages, which a state learns page by page. So whoever
# makes fingerprints ahead, in other processes, cannot know what the state will say when the page is judged; but it says
# the same of nearly all pages as it has said of those before. What was presumed is kept with the fingerprint, and where
# it does not hold, that is made anew: so it is always the one that would have been made with the state at hand.


#: Lessons that are remembered at most; beyond them all are learned anew.
_MOST = 200_000


class Asked(NamedTuple):
    """What a method has asked of a site (the name of a function of ``SiteCounts``), and was told."""

    what: str
    sentences: npt.NDArray[np.uint32]
    said: npt.NDArray[np.bool_]

    def holds(self, known: SiteCounts) -> bool:
        """Whether the state says the same."""
        said: npt.NDArray[np.bool_] = getattr(known, self.what)(self.sentences)
        return said.tobytes() == self.said.tobytes()


class NotAtHand(Exception):
    """A method has asked what nobody but the state can tell."""


#: Of which site (None: of all), which sentence, and whether it is boilerplate.
BoilerplateUpdate = tuple[str | None, int, bool]


class Boilerplate:
    """What a state was found to say so far, to be presumed of the pages that come.

    ``lessons``: all of it in the order in which it was found, for another process to ``take``, from wherever that one
    stands. It only grows; once it is too long there is another list, which begins anew.
    """

    def __init__(self) -> None:
        self.lessons: list[BoilerplateUpdate] = []
        self._of: dict[str | None, set[int]] = {}

    def of(self, site: str) -> SpeculativeCounts:
        """What is presumed of a site."""
        return SpeculativeCounts(self._of.get(site, frozenset()), self._of.get(None, frozenset()))

    def take(self, lesson: BoilerplateUpdate) -> None:
        """Take note of a lesson; one that is known already is none."""
        site, sentence, is_common = lesson
        known = self._of.setdefault(site, set())
        if is_common is not (sentence in known):
            (known.add if is_common else known.discard)(sentence)
            self.lessons.append(lesson)

    def learn(self, site: str, known: SiteCounts, asked: Iterable[Asked]) -> None:
        """Take note of what the state says of sentences of which something else was presumed."""
        if len(self.lessons) > _MOST:
            self.lessons = []
            self._of.clear()
        for sentences in (one.sentences for one in asked if not one.holds(known)):
            own, common = known.is_own(sentences).tolist(), known.is_common(sentences).tolist()
            here, everywhere = self._of.setdefault(site, set()), self._of.setdefault(None, set())
            for sentence, is_own, is_common in zip(sentences.tolist(), own, common, strict=True):
                if is_own is not (sentence in here):
                    self.take((site, sentence, is_own))
                if not (is_own and is_common) and is_common is not (sentence in everywhere):
                    self.take((None, sentence, is_common))


class SpeculativeCounts:
    """What is presumed of one site, in the place of what a state knows of it; ``asked``: what it was asked so far."""

    def __init__(self, own: Set[int], everywhere: Set[int]) -> None:
        """``own``: sentences that are boilerplate of the site; ``everywhere``: of all sites."""
        self.asked: list[Asked] = []
        self._own = own
        self._everywhere = everywhere

    def is_own(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """See ``SiteCounts``."""
        return self._said("is_own", sentences, self._own)

    def is_common(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
        """See ``SiteCounts``."""
        return self._said("is_common", sentences, self._own, self._everywhere)

    def pages(self) -> int:
        """Nobody knows; raises NotAtHand."""
        raise NotAtHand

    def stood_on(self, sentences: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
        """Nobody knows; raises NotAtHand."""
        raise NotAtHand

    def forms(self) -> float:
        """Nobody knows; raises NotAtHand."""
        raise NotAtHand

    def _said(self, what: str, sentences: npt.NDArray[np.uint32], *known: Set[int]) -> npt.NDArray[np.bool_]:
        """Which sentences are in one of these sets; as it is with most pages, none is."""
        told = sentences.tolist()
        held = {one for each in known if not each.isdisjoint(told) for one in told if one in each}
        found = np.array([one in held for one in told], np.bool_) if held else np.zeros(len(told), np.bool_)
        self.asked.append(Asked(what, sentences, found))
        return found


# ----------------------------------------------------------------------------------------------------------------------
# What a process that makes fingerprints ahead is told of boilerplate: each lesson once.


class BoilerplateUpdates:
    """Those that the processes of one ``child``, of which one follows another, have been sent."""

    def __init__(self, known: Boilerplate, child: Child) -> None:
        self.known = known
        self._child = child
        #: How many lessons of which list which process was sent.
        self._sent = 0, known.lessons, 0

    @contextmanager
    def told(self) -> Iterator[dict[str, Any]]:
        """What is to be said beside what is asked within: what is new, or all to a process that knows nothing."""
        many, of, process = self._sent
        lessons, replaced = self.known.lessons, self._child.replaced
        are_all = of is not lessons or process == 0 or process != self._child.process_id
        new = lessons[0 if are_all else many :]
        try:
            yield {"lessons": new, "are_all": are_all}
        finally:
            same = self._child.replaced == replaced  # one that took the place of another has not been told all
            self._sent = len(new) + (0 if are_all else many), lessons, self._child.process_id if same else 0


def learned(told: Mapping[str, Any], known: Boilerplate) -> Boilerplate:
    """What is known at the other end, once this was told there."""
    known = Boilerplate() if told["are_all"] else known
    for site, sentence, is_common in told["lessons"]:
        known.take((site, sentence, is_common))
    return known
