"""The thirteen published methods, to compare cascade with; each class names its source and what differs from it."""

from __future__ import annotations

from scrapy_neardup.methods.literature.base import Agreement, PublishedMethod, Text
from scrapy_neardup.methods.literature.pieces import NSHash, Punctuation, Segments
from scrapy_neardup.methods.literature.shingles import MinHash, Shingle, SuperShingle
from scrapy_neardup.methods.literature.terms import IDFTerms, IMatch, Keywords, TermProfile
from scrapy_neardup.methods.literature.vectors import Cosine, RandomProjection, SimHash

#: All of them, in order of their names.
PUBLISHED: tuple[type[PublishedMethod], ...] = (
    *(Cosine, IDFTerms, IMatch, Keywords, MinHash, NSHash, Punctuation),
    *(RandomProjection, Segments, Shingle, SimHash, SuperShingle, TermProfile),
)

__all__ = ["PUBLISHED", "Agreement", "PublishedMethod", "Text"]
