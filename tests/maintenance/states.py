"""States as no crawl would make them, and what must be true of any."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from scrapy_neardup.kv.base import Changes
from scrapy_neardup.maintenance import verify
from scrapy_neardup.maintenance.sources import PageEntry
from scrapy_neardup.state import layout
from scrapy_neardup.state.opening import memory_state
from scrapy_neardup.state.pages import PageStore
from scrapy_neardup.state.record import Evidence, Record
from tests.build import pairs

RECIPE: dict[str, Any] = {"method": "somebody.Elses", "parameters": {"n": (5, 3), "ü": "新"}, "hash": "none"}

#: Nothing but text is asked of a URL: among them one with half a character, and one with the end of a line.
URLS = ["https://a.example/", "https://b.example/渡口", "", "https://c.example/\udc80\ud800", 'd"\\\u2028\n', "e", "f"]
IDS = [*range(1, 10), 2**63 - 2]
#: Ids that no page has.
GONE = [100, 2**63 - 1]
KEYS = [0, 1, 2**39, 2**40 - 1]

_shares = st.integers(0, 10_000).map(lambda share: share / 10_000)
_texts = st.text(st.characters(exclude_categories=()), max_size=5)
_told = st.builds(
    Evidence,
    st.sampled_from(["", "identical", "near", "excerpt"]),
    st.just(0),
    _shares,
    _shares,
    st.integers(0, 10**6),
    _texts,
    st.lists(_texts, max_size=2).map(tuple),
    _texts,
)


@st.composite
def pages(draw: st.DrawFn, most: int = 6) -> list[PageEntry]:
    """Pages of one state by id: originals, their copies and variants, copies of what has gone, unjudged ones."""
    urls = draw(st.lists(st.sampled_from(URLS), unique=True, max_size=most))
    ids = sorted(draw(st.lists(st.sampled_from(IDS), unique=True, min_size=len(urls), max_size=len(urls))))
    kinds = draw(st.lists(st.sampled_from(["original", "copy", "unjudged"]), min_size=len(urls), max_size=len(urls)))
    originals = [id for id, kind in zip(ids, kinds, strict=True) if kind == "original"]
    found = []
    for id, url, kind in zip(ids, urls, kinds, strict=True):
        keys = tuple(draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=3)))
        record = Record(id, url, id, float(kind == "original"), keys, draw(st.binary(max_size=4)))
        if kind == "copy":
            similarity = draw(st.integers(0, 65535)) / 65535
            record = replace(record, original=draw(st.sampled_from(originals + GONE)), similarity=similarity)
            record = replace(record, delivered=draw(st.booleans()), dropped=draw(st.sampled_from([0, 1, 2**64 - 1])))
        told = draw(st.none() | _told)
        if told is not None and draw(st.booleans()):
            told = replace(told, like=draw(st.sampled_from([*originals, *GONE])))
        found.append(PageEntry(record, draw(st.sampled_from([0, 1, 2, 2**32 - 1])), told))
    return found


def fill(store: PageStore, filed: list[PageEntry], notes: int = 0) -> PageStore:
    """Put pages into a store, and count some sentences."""
    for one in filed:
        store.add(one.record, one.evidence, seen=one.seen)
    for note in range(notes):
        store.note(np.array([1, 2, 3 + note], np.uint32), "river.example")
    return store


def state(filed: list[PageEntry], notes: int = 0) -> PageStore:
    return fill(memory_state(RECIPE), filed, notes)


def rows(store: PageStore) -> dict[bytes, bytes]:
    found = {key: value for key, value in store.kv.scan(b"") if key[:1] not in (b"m", b"b", b"k")}
    # Which of many postings stand in one row depends on the order in which they came.
    found |= {layout.posting_key(key, id): b"" for row in store.kv.scan(b"k") for key, id in pairs(row)}
    return found | store.counts.rows()


def dangling(store: PageStore) -> set[int]:
    """Ids that are named and not there."""
    records = list(store.records())
    named = {record.original for record in records}
    named |= {told.like for record in records if (told := store.evidence(record.id)) and told.like}
    return named - {record.id for record in records}


def check(store: PageStore) -> None:
    """Whatever points to a page points to one that is there, and nothing is left of a generation."""
    found = verify.check(store)
    assert not found.counts, found.problems


class Killed(BaseException):
    """What the process was doing ends here."""


@contextmanager
def killed_before(store: PageStore, writes: int) -> Iterator[None]:
    """Let so many writes through, and then none."""
    write, left = store.kv.write, writes

    def until(changes: Changes, *, sync: bool) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        write(changes, sync=sync)

    with mock.patch.object(store.kv, "write", until):
        yield
