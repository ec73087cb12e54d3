"""Fingerprints that other processes make ahead: what they are asked, and what comes back.

Of a fingerprint all comes back but what a method knows of the title (``Fingerprint.title``), which holds the whole
text: the few comparisons that ask for it have it made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

import numpy as np

from scrapy_neardup.judging.presumed import Asked, Boilerplate, Lesson
from scrapy_neardup.model import Fingerprint, Page, SiteCounts
from scrapy_neardup.page.worker import Message

_FIELDS = tuple(field.name for field in fields(Page) if field.name != "text")
_TOLD = attrgetter(*_FIELDS)
#: Those of them that are tuples, which JSON does not know.
_TUPLES = ("keywords", "quotes")


@dataclass(frozen=True, slots=True)
class Texts:
    """Pages whose fingerprints are wanted."""

    pages: Sequence[Page]

    @property
    def size(self) -> int:
        """Characters of their texts."""
        return sum(len(page.text) for page in self.pages)

    def message(self, lessons: Sequence[Lesson], *, are_all: bool) -> Message:
        """As it is sent, with what is to be presumed from now on; ``are_all``: and nothing else."""
        texts = [page.text.encode("utf-8", "surrogatepass") for page in self.pages]
        told = [(*_TOLD(page), len(text)) for page, text in zip(self.pages, texts, strict=True)]
        return Message({"pages": told, "lessons": lessons, "are_all": are_all}, b"".join(texts))


def pages_of(message: Message) -> list[Page]:
    """The pages at the other end."""
    found, at = list[Page](), 0
    for *told, size in message.head["pages"]:
        given = dict(zip(_FIELDS, told, strict=True))
        text = message.content[at : at + size].decode("utf-8", "surrogatepass")
        found.append(Page(**{**given, **{name: tuple(given[name]) for name in _TUPLES}, "text": text}))
        at += size
    return found


@dataclass(frozen=True, slots=True)
class Prepared:
    """A fingerprint, and what was ``asked`` for it: it is that of the page if the state says the same.

    ``titled``: it had something to tell of the title. ``known``: what is to learn if it was presumed wrongly.
    """

    fingerprint: Fingerprint
    asked: tuple[Asked, ...]
    titled: bool
    known: Boilerplate

    def under(self, site: str, counts: SiteCounts, anew: Callable[[], Fingerprint]) -> Fingerprint:
        """The fingerprint of a page of which the state knows this, made ``anew`` if something else was presumed."""
        if not all(one.holds(counts) for one in self.asked):
            self.known.learn(site, counts, self.asked)
            return anew()
        return replace(self.fingerprint, site=counts, title=_Late(anew) if self.titled else None)


class _Late:
    """What a fingerprint tells of a title, made once something is asked of it."""

    def __init__(self, anew: Callable[[], Fingerprint]) -> None:
        self._anew = anew

    def __getattr__(self, name: str) -> Any:
        title = self._title = self.__dict__.get("_title") or self._anew().title
        return getattr(title, name)


def packed(made: Fingerprint, asked: Sequence[Asked]) -> list[Any]:
    """A fingerprint and what was asked for it, as plain data."""
    # What was asked first are most often those that are to be counted.
    counted = None if asked and np.array_equal(made.sentences, asked[0].sentences) else _hex(made.sentences, "<u4")
    return [
        _hex(made.keys, "<u8"),
        made.sketch.hex(),
        counted,
        made.whole.hex(),
        made.own,
        _hex(sorted(made.boilerplate), "<u4"),
        made.unframed.hex(),
        made.title is not None,
        made.quoted,
        made.in_form,
        [(one.what, one.sentences.astype("<u4").tobytes().hex(), one.said.tobytes().hex()) for one in asked],
    ]


def unpacked(given: Sequence[Any], known: Boilerplate) -> Prepared:
    """The same from plain data."""
    keys, sketch, counted, whole, own, boilerplate, unframed, titled, quoted, in_form, asked = given
    answers = tuple(
        Asked(what, np.frombuffer(bytes.fromhex(sentences), "<u4"), np.frombuffer(bytes.fromhex(said), np.bool_))
        for what, sentences, said in asked
    )
    made = Fingerprint(
        tuple(_numbers(keys, "<u8")),
        bytes.fromhex(sketch),
        tuple(answers[0].sentences.tolist() if counted is None else _numbers(counted, "<u4")),
        bytes.fromhex(whole),
        own,
        boilerplate=frozenset(_numbers(boilerplate, "<u4")),
        unframed=bytes.fromhex(unframed),
        quoted=quoted,
        in_form=in_form,
    )
    return Prepared(made, answers, titled, known)


def _hex(numbers: Sequence[int], kind: str) -> str:
    return np.array(numbers, kind).tobytes().hex()


def _numbers(packed: str, kind: str) -> list[int]:
    found: list[int] = np.frombuffer(bytes.fromhex(packed), kind).tolist()
    return found
