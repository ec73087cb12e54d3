"""What somebody has said of pages by hand, on its way to another state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scrapy_neardup.judging.judgements import Opinion, Said, judgement_of, write_judgements
from scrapy_neardup.stores import Store

_LAST_SECOND = 2**32


def judgement_to(one: Opinion) -> dict[str, Any]:
    """A judgement as the object of its line.

    >>> judgement_to(Opinion("https://a.example/", Said.KEEP, "", 1714521600))
    {'judged': 'keep', 'url': 'https://a.example/', 'other': '', 'when': 1714521600}
    """
    return {"judged": one.said.value, "url": one.url, "other": one.other, "when": one.when}


def judgement_from(data: Mapping[str, Any]) -> Opinion:
    """The judgement of a line's object; raises ValueError that says what is wrong with it."""
    judged, url, other, when = (data.get(name) for name in ("judged", "url", "other", "when"))
    if len(data) != 4 or not isinstance(url, str) or not isinstance(other, str):
        raise ValueError("its manual verdict names no page")
    if type(when) is not int or not 0 <= when < _LAST_SECOND:
        raise ValueError("the time of its manual verdict is out of range")
    try:
        return Opinion(url, Said(judged), other, when)
    except ValueError:
        raise ValueError(f"its manual verdict must be keep or copy, not {judged!r:.60}") from None


def take_judgements(said: Iterable[Opinion], store: Store) -> tuple[int, int]:
    """Write down those of another state that this one lacks or has said otherwise before; of two the newer one stays.

    Returns how many were taken, and of how many pages the two said different things.
    """
    taken, against = [], 0
    for one in said:
        known = judgement_of(store, one.url)
        if known is not None and (known.said, known.other) != (one.said, one.other):
            against += 1
        if known is None or known.when < one.when:
            taken.append(one)
    if taken:
        write_judgements(store, *taken)
    return len(taken), against
