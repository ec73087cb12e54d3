"""Pages that bring their text are fingerprinted in other processes, some at a time, while those before are judged.

What a process is asked costs this one some tenths of a millisecond, most of it for waking a thread. So many texts are
sent as make that little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judging.lessons import Lessons
from scrapy_neardup.judging.prepared import Prepared, Texts, unpacked
from scrapy_neardup.judging.presumed import Boilerplate
from scrapy_neardup.model import Page
from scrapy_neardup.page.apart import NoReader, as_extraction_error
from scrapy_neardup.page.child import Child, ChildError, Died, TookTooLong
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.pool import Pool

#: Pages that are sent at once, and characters of their texts from which on no more are added.
_PAGES, _CHARACTERS = 16, 100_000

#: What comes of a page: None if it is to be fingerprinted where it is judged.
Ready = Prepared | ExtractionError | None
Answer = list[Ready]


@dataclass(frozen=True, slots=True)
class TextTerms:
    """By what a child makes fingerprints: a method of this name with these parameters, under the hashes of a state."""

    method: str
    parameters: Mapping[str, Any]
    hashes: Keyed = field(repr=False)
    seconds: float
    known: Boilerplate = field(default_factory=Boilerplate, repr=False)

    @property
    def can_be_sent(self) -> bool:
        """Whether another process can import the method, and be told its parameters."""
        try:
            json.dumps(self.told())
        except (TypeError, ValueError):
            return False
        return not self.method.startswith("__main__.")

    def told(self) -> dict[str, Any]:
        """What the child is told."""
        return {
            "method": self.method,
            "parameters": dict(self.parameters),
            "secret": self.hashes.secret.hex(),
            "bits": self.hashes.width.bits,
            "seconds": self.seconds,
        }

    def reader(self, deadlines: Deadlines) -> Preparer:
        """What makes them on these terms."""
        return Preparer(self, deadlines)


class Preparer:
    """Has fingerprints made in a child. Of texts of which it dies, each is sent alone: one of them is to blame."""

    def __init__(self, terms: TextTerms, deadlines: Deadlines | None = None) -> None:
        self.child = Child("scrapy_neardup.judging.preparing", terms.told(), terms.seconds, "text", deadlines)
        self._seconds = terms.seconds
        self._lessons = Lessons(terms.known, self.child)

    def answer(self, texts: Texts, begun: Callable[[], None] = lambda: None) -> Answer | ExtractionError:
        """What comes of each page; nothing of pages that nobody waits for any more."""
        if not texts.are_wanted():
            return [None] * len(texts.pages)
        try:
            with self._lessons.told() as lessons:
                made = self.child.ask(texts.message(lessons), begun)
            return [*unpacked(made, self._lessons.known)]
        except ChildError as error:
            is_of_texts = isinstance(error, (Died, TookTooLong))
            if is_of_texts and len(texts.pages) > 1:
                return [one for page in texts.pages for one in self._alone(page)]
            why = as_extraction_error(error, self._seconds)
            return [why] if is_of_texts else why

    def _alone(self, page: Page) -> Answer:
        answer = self.answer(Texts([page]))
        return [None] if isinstance(answer, ExtractionError) else answer


class Preparing:
    """Has pages fingerprinted ahead, in groups.

    ``most``: how many pages it takes to keep the processes at work. More would be presumed of less that is known.
    """

    def __init__(self, pool: Pool[Texts, Answer]) -> None:
        self.most = _PAGES * (2 * pool.workers + 1)
        self._pool = pool
        self._open = _Group()
        self._is_off = self._has_begun = False

    def add(self, page: Page) -> Callable[[], Ready]:
        """Have a page fingerprinted; gives what waits for it."""
        if self._is_off:
            return _nothing
        group, number = self._open, len(self._open.pages)
        group.pages.append(page)
        group.size += len(page.text)
        if len(group.pages) == _PAGES or group.size >= _CHARACTERS:
            self._send()
        return partial(self._ready, group, number)

    def _ready(self, group: _Group, number: int) -> Ready:
        if group is self._open:
            self._send()
        if not (self._has_begun or group.answer.done()):
            group.passed += 1
            return None  # while the processes start, this one has nothing better to do
        answer = group.answer.result()
        if isinstance(answer, ExtractionError):
            self._is_off = self._is_off or isinstance(answer, NoReader)
            return None
        return answer[number]

    def _send(self) -> None:
        group, self._open = self._open, _Group()
        texts = Texts(group.pages, group.is_wanted)
        self._pool.ask(texts, lambda answer, _: group.answer.set_result(answer), self._begun)

    def _begun(self) -> None:
        self._has_begun = True


class _Group:
    """Pages that are sent together."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.size = 0
        #: How many of them were judged before a process had begun.
        self.passed = 0
        self.answer: Future[Answer | ExtractionError] = Future()

    def is_wanted(self) -> bool:
        """Whether somebody may wait for what comes of one of them."""
        return self.passed < len(self.pages)


def _nothing() -> None:
    return None
