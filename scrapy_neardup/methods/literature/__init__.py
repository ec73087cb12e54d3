"""The thirteen published methods, to compare cascade with."""

from __future__ import annotations

from scrapy_neardup.methods.literature.cosine import Cosine
from scrapy_neardup.methods.literature.idf_terms import IDFTerms
from scrapy_neardup.methods.literature.imatch import IMatch
from scrapy_neardup.methods.literature.keywords import Keywords
from scrapy_neardup.methods.literature.minhash import MinHash
from scrapy_neardup.methods.literature.nshash import NSHash
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text
from scrapy_neardup.methods.literature.punctuation import Punctuation
from scrapy_neardup.methods.literature.random_projection import RandomProjection
from scrapy_neardup.methods.literature.segments import Segments
from scrapy_neardup.methods.literature.shingle import Shingle
from scrapy_neardup.methods.literature.simhash import SimHash
from scrapy_neardup.methods.literature.supershingle import SuperShingle
from scrapy_neardup.methods.literature.term_profile import TermProfile

__all__ = [
    "Agreement",
    "Cosine",
    "IDFTerms",
    "IMatch",
    "Keywords",
    "MinHash",
    "NSHash",
    "PublishedMethod",
    "Punctuation",
    "RandomProjection",
    "Segments",
    "Shingle",
    "SimHash",
    "SuperShingle",
    "TermProfile",
    "Text",
]
