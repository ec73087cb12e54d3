"""Texts compared by a method, as pages that hold nothing else."""

from __future__ import annotations

from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Page

NONE: frozenset[int] = frozenset()


def made(method: Method, text: str) -> Fingerprint:
    return method.fingerprint(Page("http://river.example/", text=text))


def compared(method: Method, one: str, other: str) -> Comparison:
    """What is said of a new page ``one`` and an earlier page ``other``."""
    return method.compare(made(method, one), made(method, other).sketch, NONE)
