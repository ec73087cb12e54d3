"""Whether anything can come of a comparison at all, told by the head and the min-wise part of an earlier sketch.

Most pages that share a key with a new one share a sentence and nothing else. To see that takes a fiftieth of the time
of unpacking a sketch and comparing all of it. What is refused here is what ``FineCheck`` would say nothing of: no test
of the rules stands here a second time, only the least similarity that each of them asks for.
"""

from __future__ import annotations

from scrapy_neardup.hashing import compiled
from scrapy_neardup.methods.cascade_check import ALIKE, TELLING
from scrapy_neardup.methods.cascade_features import overlap
from scrapy_neardup.methods.cascade_parameters import CascadeParameters
from scrapy_neardup.methods.cascade_sketch import HEAD, OPENING_BYTES, Sketch

#: By how much less than is asked for is still compared: more than rounding may differ by from machine to machine.
_MARGIN = 1e-9


class Bound:
    """What it takes, by these parameters, for two pages to be alike in any way."""

    def __init__(self, p: CascadeParameters) -> None:
        self._bits = p.bits
        # To be copies under different titles, or to look alike on one site; nothing but one title adds to the score,
        # and the same numbers in other words where a site takes from it. On a catalogue all of these are higher.
        scored = p.base + min(0.0, p.by_site - p.by_reworded)
        least = min(ALIKE, p.certain, p.certain_apart, p.certain_on_site, scored, p.short_least)
        #: Similarity from which pages may be alike; the same of an excerpt, and its containment.
        self._bounds = least - _MARGIN, TELLING - _MARGIN, p.excerpt - _MARGIN

    def may_be_alike(self, one: Sketch, whole: bytes, old: bytes) -> bool:
        """Whether a new page ``one`` may be like the earlier one of the sketch ``old``, or in one form with it.

        ``whole``: see ``cascade_features.compare``. Pages read from HTML always may: lines and headlines are not seen
        here. So may one whose sketch cannot be read, which is for the comparison to say.
        """
        if one.lines or one.article:
            return True
        kernels = compiled.kernels
        if kernels is not None:
            ours = one.body, one.title, one.minwise, one.shingles, one.whole
            return kernels.may_be_alike(*ours, whole, old, self._bits, *self._bounds)
        if len(old) < HEAD.size:
            return True
        body, title, _, all, shingles, sentences, numbers, words = HEAD.unpack_from(old)
        if body == one.body or title == one.title > 0:
            return True
        end = HEAD.size + len(one.minwise)
        order = end + OPENING_BYTES + 4 * sentences + 2 * numbers + 3 * words
        if len(old) <= order or len(old) != order + 1 + 2 * old[order]:
            return True  # behind a text nothing follows the order of its sentences
        found = overlap(one, old[HEAD.size : end], shingles, all, whole, self._bits)
        least, telling, excerpt = self._bounds
        similarity = found.similarity
        return similarity >= least or (similarity >= telling and found.containment >= excerpt)
