"""Texts compared by a method, as pages that hold nothing else."""

from __future__ import annotations

from scrapy_neardup.hashing.keyed import OPEN, Keyed
from scrapy_neardup.methods import Method
from scrapy_neardup.model import Comparison, Fingerprint, Page
from scrapy_neardup.text.normalize import letters
from scrapy_neardup.text.sentences import SegmentedText

NONE: frozenset[int] = frozenset()


def split(sentences: list[str], hashes: Keyed = OPEN) -> SegmentedText:
    """A segmented text of normalised sentences."""
    return SegmentedText(sentences, list(map(letters, sentences)), hashes)


def made(method: Method, text: str) -> Fingerprint:
    return method.fingerprint(Page("http://river.example/", text=text))


def compared(method: Method, one: str, other: str) -> Comparison:
    return method.compare(made(method, one), made(method, other).sketch, NONE)
