"""Fingerprints made in worker processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.errors import ExtractionError
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.judge.speculation import Asked, Boilerplate, BoilerplateUpdates
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page, SiteCounts
from scrapy_neardup.page.apart import NoReader, as_extraction_error
from scrapy_neardup.page.child import Child, ChildError, Died, TookTooLong
from scrapy_neardup.page.deadlines import Deadlines
from scrapy_neardup.page.pool import Pool
from scrapy_neardup.page.worker import Message

# ----------------------------------------------------------------------------------------------------------------------
# Fingerprints that other processes make ahead: what they are asked, and what comes back.
#
# What a method knows of the title (``Fingerprint.title``) holds the whole text. It comes back as bytes, which are
# looked into for the few comparisons that ask for it.


_FIELDS = tuple(field.name for field in fields(Page) if field.name != "text")
#: How texts are sent: Chinese ones are written and read in a third of the time of UTF-8.
_CODEC = "utf-16-le", "surrogatepass"
_TOLD = attrgetter(*_FIELDS)
#: Those of them that are tuples, which JSON does not know.
_TUPLES = ("keywords", "quotes")
#: Where in plain data the number of bytes of a title stands.
_TITLE = 7


@dataclass(frozen=True, slots=True)
class Texts:
    """Pages whose fingerprints are wanted, as long as ``are_wanted`` says so: they may have been judged meanwhile."""

    pages: Sequence[Page]
    are_wanted: Callable[[], bool] = lambda: True

    @property
    def size(self) -> int:
        """Characters of their texts."""
        return sum(len(page.text) for page in self.pages)

    def message(self, lessons: Mapping[str, Any]) -> Message:
        """As it is sent, with what is told beside it: see ``BoilerplateUpdates``."""
        texts = [page.text.encode(*_CODEC) for page in self.pages]
        told = [(*_TOLD(page), len(text)) for page, text in zip(self.pages, texts, strict=True)]
        return Message({"pages": told, **lessons}, b"".join(texts))


def pages_of(message: Message) -> list[Page]:
    """The pages at the other end."""
    found, at = list[Page](), 0
    for *told, size in message.head["pages"]:
        given = dict(zip(_FIELDS, told, strict=True))
        text = message.content[at : at + size].decode(*_CODEC)
        found.append(Page(**{**given, **{name: tuple(given[name]) for name in _TUPLES}, "text": text}))
        at += size
    return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fingerprint, and what was ``asked`` for it: it is that of the page if the state says the same.

    ``title``: see ``Method.carried``; empty if there is nothing. ``sited``: what is known of the site belongs to it.
    ``known``: what is to learn if it was presumed wrongly.
    """

    fingerprint: Fingerprint
    asked: tuple[Asked, ...]
    title: bytes
    sited: bool
    known: Boilerplate

    def under(self, page: Page, counts: SiteCounts, method: Method) -> Fingerprint:
        """The fingerprint of a page of which the state knows this, made anew if something else was presumed."""
        if not all(one.holds(counts) for one in self.asked):
            return method.for_state(page, counts)
        title = _Late(method, self.title) if self.title else None
        return replace(self.fingerprint, site=counts if self.sited else None, title=title)


class _Late:
    """What a fingerprint tells of a title, there once something is asked of it."""

    def __init__(self, method: Method, packed: bytes) -> None:
        self._method = method
        self._packed = packed

    @cached_property
    def _title(self) -> Any:
        return self._method.restored(self._packed.decode(*_CODEC))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._title, name)


def packed_title(carried: str) -> bytes:
    """What is told of a title, as it is sent."""
    return carried.encode(*_CODEC)


def packed(made: Fingerprint, title: bytes, asked: Sequence[Asked]) -> list[Any]:
    """A fingerprint and what was asked for it, as plain data, with how many bytes stand beside it of its title."""
    # What was asked first are most often those that are to be counted.
    same = asked and np.array_equal(asked[0].sentences, made.sentences)
    counted = None if same else _hex(made.sentences, "<u4")
    return [
        _hex(made.keys, "<u8"),
        made.sketch.hex(),
        counted,
        made.whole.hex(),
        made.own,
        _hex(sorted(made.boilerplate), "<u4"),
        made.unframed.hex(),
        len(title),
        made.quoted,
        made.site is not None,
        [(one.what, one.sentences.astype("<u4").tobytes().hex(), one.said.tobytes().hex()) for one in asked],
    ]


def unpacked(answer: Message, known: Boilerplate) -> list[Prepared | None]:
    """What a process has ``made`` of pages."""
    found, at = list[Prepared | None](), 0
    for one in answer.head["made"]:
        end = at + (one[_TITLE] if one is not None else 0)
        found.append(one and unpacked_one(one, answer.content[at:end], known))
        at = end
    return found


def unpacked_one(given: Sequence[Any], title: bytes, known: Boilerplate) -> Prepared:
    """What ``packed`` made of one fingerprint; ``known``: what was presumed."""
    keys, sketch, counted, whole, own, boilerplate, unframed, _, quoted, sited, asked = given
    answers = tuple(
        Asked(what, np.frombuffer(bytes.fromhex(sentences), "<u4"), np.frombuffer(bytes.fromhex(said), np.bool_))
        for what, sentences, said in asked
    )
    made = Fingerprint(
        tuple(_numbers(keys, "<u8")),
        bytes.fromhex(sketch),
        answers[0].sentences if counted is None else np.frombuffer(bytes.fromhex(counted), "<u4"),
        bytes.fromhex(whole),
        own,
        boilerplate=frozenset(_numbers(boilerplate, "<u4")),
        unframed=bytes.fromhex(unframed),
        quoted=quoted,
    )
    return Prepared(made, answers, title, sited, known)


def _hex(numbers: npt.ArrayLike, kind: str) -> str:
    return np.array(numbers, kind).tobytes().hex()


def _numbers(packed: str, kind: str) -> list[int]:
    found: list[int] = np.frombuffer(bytes.fromhex(packed), kind).tolist()
    return found


# ----------------------------------------------------------------------------------------------------------------------
# Pages that bring their text are fingerprinted in other processes, some at a time, while those before are judged.
#
# What a process is asked costs this one some tenths of a millisecond, most of it for waking a thread. So many texts are
# sent as make that little.


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
            "seconds": self.seconds,
        }

    def reader(self, deadlines: Deadlines) -> Preparer:
        """What makes them on these terms."""
        return Preparer(self, deadlines)


class Preparer:
    """Has fingerprints made in a child. Of texts of which it dies, each is sent alone: one of them is to blame."""

    def __init__(self, terms: TextTerms, deadlines: Deadlines | None = None) -> None:
        self.child = Child("scrapy_neardup.judge.fingerprint_worker", terms.told(), terms.seconds, "text", deadlines)
        self._seconds = terms.seconds
        self._lessons = BoilerplateUpdates(terms.known, self.child)

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
