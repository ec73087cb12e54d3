"""What the default method says of a page whose very bytes another page had: without reading them again.

The two hold the same text, so all that can differ is what the state knows of the sites: what stands on many pages is no
part of a text, and what is the form of a site makes no copies there. Where that might have changed, nothing is said.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scrapy_neardup.methods.cascade_check import LEAST_ARTICLE
from scrapy_neardup.methods.cascade_site import Ruling, compare_again
from scrapy_neardup.methods.cascade_sketch import Sketch
from scrapy_neardup.model import Comparison, Likeness, SiteCounts


def compared_again(known: Sketch, site: int, counts: SiteCounts) -> Comparison | None:
    """How a page on a site (its fingerprint, 0 if not known) compares to an earlier one with the same bytes.

    None where the page has to be read.
    """
    if known.article is not None and known.article.shingles < LEAST_ARTICLE:
        return None
    lines = known.lines
    asked = known.sentences.union(lines.lines, lines.headlines) if lines else known.sentences
    if counts.is_common(np.fromiter(asked, np.uint32, len(asked))).any():
        return None
    same_site = known.site == site > 0
    if lines and same_site and compare_again(lines, counts).ruling is Ruling.APART:
        return None
    return Comparison(1.0, 1.0, True, True, True, Likeness.IDENTICAL, same_site)


def sketch_again(known: Sketch, packed: bytes, site: int) -> bytes:
    """Its sketch; empty where that cannot be told: on another site, of one that is without some lines."""
    if known.site == site:
        return packed
    return replace(known, site=site).pack() if known.whole == known.shingles else b""
