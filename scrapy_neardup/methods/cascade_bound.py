"""Whether anything can come of a comparison at all, told by the head and the min-wise part of an earlier sketch.

Most pages that share a key with a new one share a sentence and nothing else. To see that takes a tenth of the time of
unpacking a sketch and comparing all of it. What is refused here is what ``FineCheck`` would say nothing of: no test of
the rules stands here a second time, only the least similarity that each of them asks for.
"""

from __future__ import annotations

from scrapy_neardup.methods.cascade_check import ALIKE, TELLING
from scrapy_neardup.methods.cascade_features import overlap
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import HEAD, Head, Sketch


def may_be_alike(p: CascadeParameters, one: Sketch, whole: bytes, old: bytes) -> bool:
    """Whether a new page ``one`` may be like the earlier one of the sketch ``old``, or in one form with it.

    ``whole``: see ``cascade_features.compare``. Pages read from HTML always may: lines and headlines are not seen here.
    """
    other = Head.of(old)
    if other.body == one.body or other.title == one.title > 0:
        return True
    end = HEAD.size + len(one.minwise)
    if one.lines or one.article or other.has_lines(old, end):
        return True
    found = overlap(one, old[HEAD.size : end], other.shingles, other.whole, whole, p.bits)
    similarity = found.similarity
    return similarity >= _least(p) or (similarity >= TELLING and found.containment >= p.excerpt)


def _least(p: CascadeParameters) -> float:
    """The similarity that it takes for two pages to be copies under different titles, or to look alike on their site.

    Nothing but one title adds to the score, and on a catalogue all of these are higher.
    """
    return min(ALIKE, p.certain, p.certain_apart, p.certain_on_site, p.base, p.short_least)
