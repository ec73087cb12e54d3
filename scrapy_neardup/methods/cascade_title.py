"""What a page is about, by the words of its title that stand in its text; and whether another page is about the same.

Of two notices in one form each has a name, a place, a product or a number of its own in title and text, which the other
one lacks. A copy under another title has in its text what either title says, as the text is the same. So a word that is
*gone* tells forms from copies where similarity does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.hashing.keyed import Keyed
from scrapy_neardup.methods.cascade_order import kept, sentence_hash
from scrapy_neardup.methods.cascade_prose import Prose
from scrapy_neardup.methods.cascade_sketch import NUMBER, STANDS, Sketch
from scrapy_neardup.text.holding import which_stand
from scrapy_neardup.text.shingles import as_shingles, code_points, distinct
from scrapy_neardup.text.tokens import are_unspaced, holds_spaced, longer, spaced_words

#: Lengths of words that are looked for in a text without spaces.
_LENGTHS = range(2, 9)
#: The bits of a word that are its hash.
_HASH = 0xFFFFFF & ~(NUMBER | STANDS)


class TitleWords:
    """The words of a new page's title, held against its sentences and against an earlier page."""

    def __init__(self, title: Iterable[str], sentences: list[str], lines: list[str], hashes: Keyed) -> None:
        """``sentences``: those of its own, normalised; ``lines``: the letters of each."""
        title = self._told = list(title)
        self._hashes = hashes
        self._sentences = sentences
        self._lines = lines
        words = list(dict.fromkeys(title))
        unspaced = list(compress(words, are_unspaced(words)))
        #: The words that have no spaces around them in a text.
        self._unspaced = frozenset(unspaced)
        #: Those of them that are looked for.
        self._sought = sought = longer(unspaced, _LENGTHS[0] - 1)
        if longer(sought, _LENGTHS[-1]):
            self._sought = [word for word in sought if len(word) in _LENGTHS]
        spaced = [word for word in words if word not in self._unspaced] if len(unspaced) < len(words) else []
        self._title = _hashed(spaced, sought, hashes)
        self._prose: Prose | None = None

    @property
    def made_of(self) -> tuple[list[str], list[str]]:
        """The words and the sentences that it was made of, none of which is empty or holds a line break."""
        return self._told, self._sentences

    def prose(self, shingle: int, bins: int, bits: int) -> Prose:
        """The prose of the text, as sketches of that length of shingles, so many bins and bits tell it; made once."""
        if self._prose is None:
            self._prose = Prose(self._sentences, self._lines, self._hashes, (shingle, bins, bits))
        return self._prose

    def words(self, most: int) -> frozenset[int]:
        """The words of the title as a sketch holds them; of more than ``most`` those with the smallest hashes."""
        return frozenset(list(self._title)[:most])

    def standing(self, words: Iterable[int]) -> frozenset[int]:
        """Those of these words of the title that stand in the text."""
        hashed = {self._title[one]: one for one in words}
        found = which_stand(self._lines, [word for word in self._sought if word in hashed])
        if spaced := hashed.keys() - self._unspaced:
            text = "\n".join(self._sentences)
            found += [word for word in spaced if holds_spaced(text, word)]
        return frozenset([hashed[word] for word in found])

    def gone(self, old: Sketch) -> int:
        """Of how many of the two pages a word of the title stands in the text, and nowhere in the other page.

        Whether a word stands in the earlier text is told by the order of its sentences: it does if a sentence that
        holds the word here stands there, too.
        """
        asked = old.standing - self._title.keys()
        return int(not self._holds(asked)) + int(self._is_new(old))

    def _is_new(self, old: Sketch) -> bool:
        """Whether a word of the title stands here in sentences alone that the earlier page lacks."""
        theirs = set(old.order.sentences)
        for hashed, word in self._title.items():
            found = self._holding(word) if hashed not in old.words else []
            if found and all(sentence_hash(line, self._hashes) not in theirs for line in found):
                return True
        return False

    def _holding(self, word: str) -> list[str]:
        """The sentences that hold a word, of those of which the order is kept."""
        sentences, lines = kept(self._sentences), kept(self._lines)
        if word in self._unspaced:
            return [line for line in lines if word in line]
        both = zip(sentences, lines, strict=True)
        return [line for one, line in both if word in one and word in spaced_words(one)]

    def _holds(self, words: frozenset[int]) -> bool:
        """Whether all of these stand in the text."""
        left = self._not_in_runs([word & _HASH for word in words]) if words else []
        return not left or self._spaced.issuperset(left)

    @cached_property
    def _spaced(self) -> frozenset[int]:
        """The hashes of its words between spaces."""
        found = {word for one in self._sentences for word in spaced_words(one)}
        return frozenset([hashed & _HASH for hashed in self._hashes.every(found)])

    def _not_in_runs(self, asked: list[int]) -> list[int]:
        """Those of these hashes that nothing has which may be a word where there are no spaces."""
        kernels = compiled.kernels
        if kernels is not None:
            lengths = _LENGTHS[0], _LENGTHS[-1]
            return kernels.lacking("".join(self._lines), *lengths, *self._hashes.drawn, _HASH, asked)
        values, held = np.array(asked, np.uint32), self._in_runs
        if not len(held):
            return asked
        left: list[int] = values[held.take(held.searchsorted(values), mode="clip") != values].tolist()
        return left

    @cached_property
    def _in_runs(self) -> npt.NDArray[np.uint32]:
        """The hashes of all that may be such a word, in order, of which each comparison asks for some."""
        points = code_points("".join(self._lines)).astype(np.uint64)
        runs = self._hashes.n_grams_each(points, [n for n in _LENGTHS if len(points) >= n])
        held = np.concatenate(runs or [points[:0]]) & np.uint64(_HASH)
        return distinct(held.astype(np.uint32))


def _hashed(spaced: list[str], unspaced: list[str], hashes: Keyed) -> dict[int, str]:
    """The words by their hashes, the smallest first; where words have no spaces, as n-grams of a text are hashed."""
    found = {hashes.of(word) & _HASH | NUMBER * word.isdigit(): word for word in spaced}
    grams = as_shingles(unspaced, hashes)
    for word in sorted(grams, key=len):  # of two words that have one hash the longer one is known by it
        found[grams[word] & _HASH] = word
    return dict(sorted(found.items()))
