"""Fingerprints that other processes make ahead: what they are asked, and what comes back.

What a method knows of the title (``Fingerprint.title``) holds the whole text. It comes back as bytes, which are looked
into for the few comparisons that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from scrapy_neardup.judging.presumed import Asked, Boilerplate
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Fingerprint, Page, SiteCounts
from scrapy_neardup.page.worker import Message

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
        """As it is sent, with what is told beside it: see ``Lessons``."""
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
