"""What a page is about, by the words of its title that stand in its text; and whether another page is about the same.

Of two notices in one form each has a name, a place, a product or a number of its own in title and text, which the other
one lacks. A copy under another title has in its text what either title says, as the text is the same. So a word that is
*gone* tells forms from copies where similarity does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import compress

import numpy as np
import numpy.typing as npt

from scrapy_neardup.hashing import compiled
from scrapy_neardup.methods.cascade_order import kept, known_in_order
from scrapy_neardup.methods.cascade_prose import Prose
from scrapy_neardup.methods.cascade_sketch import NUMBER, STANDS, Sketch, packed_words
from scrapy_neardup.text.cut import CutText, HeldText
from scrapy_neardup.text.shingles import as_shingles, code_points, distinct
from scrapy_neardup.text.tokens import are_unspaced, digits, holds_spaced, spaced_words

#: Lengths of words that are looked for in a text without spaces.
_LENGTHS = range(2, 9)
#: The bits of a word that are its hash.
_HASH = 0xFFFFFF & ~(NUMBER | STANDS)
#: Words of a title that the compiled module looks for at most.
_FEW = 64


class TitleWords:
    """The words of a new page's title, held against its sentences and against an earlier page."""

    def __init__(self, title: Sequence[str], own: CutText) -> None:
        """``own``: the page's own text without its headline, in which they stand in any case."""
        self._told = list(title)
        self._own = own
        self._prose: Prose | None = None

    @property
    def made_of(self) -> tuple[list[str], str]:
        """The words, none of which is empty or holds a line break, and the text with a sentence a line."""
        return self._told, self._own.text

    def prose(self, shingle: int, bins: int, bits: int) -> Prose:
        """The prose of the text, as sketches of that length of shingles, so many bins and bits tell it; made once."""
        if self._prose is None:
            self._prose = Prose(self._own, (shingle, bins, bits))
        return self._prose

    def packed(self, most: int) -> bytes:
        """Its words as a sketch has them, three bytes each; of more than ``most`` those with the smallest hashes."""
        if isinstance(self._own, HeldText) and len(self._told) <= _FEW:
            packed = self._own.title_words(self._told, most, (_LENGTHS[0], _LENGTHS[-1], _HASH, STANDS))
            if packed is not None:
                return packed
        words = list(self._title)[:most]
        return packed_words(words, self._standing(words))

    def _standing(self, words: list[int]) -> frozenset[int]:
        """Those of these words of the title that stand in the text."""
        hashed = {self._title[one]: one for one in words}
        unspaced = [word for word in hashed if word in self._unspaced]
        found = self._own.standing([word for word in unspaced if len(word) in _LENGTHS])
        if spaced := hashed.keys() - unspaced:
            text = self._own.text
            found += [word for word in spaced if holds_spaced(text, word)]
        return frozenset([hashed[word] for word in found])

    @cached_property
    def _unspaced(self) -> frozenset[str]:
        """The words that have no spaces around them in a text."""
        words = list(dict.fromkeys(self._told))
        return frozenset(compress(words, are_unspaced(words)))

    @cached_property
    def _title(self) -> dict[int, str]:
        """The words by their hashes, the smallest first; where they have no spaces, as n-grams of a text are hashed."""
        spaced = [word for word in self._told if word not in self._unspaced]
        found = {self._own.hashes.of(word) & _HASH | NUMBER * word.isdigit(): word for word in spaced}
        unspaced = [word for word in dict.fromkeys(self._told) if word in self._unspaced and len(word) >= _LENGTHS[0]]
        grams = as_shingles(unspaced, self._own.hashes)
        for word in sorted(grams, key=len):  # of two words that have one hash the longer one is known by it
            found[grams[word] & _HASH] = word
        return dict(sorted(found.items()))

    def gone(self, old: Sketch, most: int) -> int:
        """Of how many of the two pages a word of the title stands in the text, and nowhere in the other page.

        ``most``: how many words of a title are kept. Of a longer title no word is taken to be missing that may be
        among those that are not.

        Whether a word stands in the earlier text is told by the order of its sentences: it does if a sentence that
        holds the word here stands there, too.
        """
        asked = old.standing - self._title.keys()
        return int(not self._holds(asked)) + int(self._is_new(old, most))

    def new_numbers(self, old: Sketch) -> set[str]:
        """The numbers in sentences that the earlier page lacks, of those of which the order is kept."""
        theirs = set(old.order.sentences)
        return {one for number, _, line in self._kept if number not in theirs for one in digits(line)}

    def _is_new(self, old: Sketch, most: int) -> bool:
        """Whether a word of the title stands here in sentences alone that the earlier page lacks."""
        theirs, known = set(old.order.sentences), old.known_words(most)
        for hashed, word in self._title.items():
            found = self._holding(word) if hashed <= known and hashed not in old.words else []
            if found and theirs.isdisjoint(found):
                return True
        return False

    def _holding(self, word: str) -> list[int]:
        """The sentences that hold a word, of those of which the order is kept, as they are known in it."""
        if word in self._unspaced:
            return [number for number, _, line in self._kept if word in line]
        return [number for number, one, _ in self._kept if word in one and word in spaced_words(one)]

    @cached_property
    def _kept(self) -> list[tuple[int, str, str]]:
        """The sentences of which the order is kept: as each is known in it, normalised, and its letters."""
        own = self._own
        return list(zip(kept(known_in_order(own)), kept(own.sentences), kept(own.lines), strict=True))

    def _holds(self, words: frozenset[int]) -> bool:
        """Whether all of these stand in the text."""
        left = self._not_in_runs([word & _HASH for word in words]) if words else []
        return not left or self._spaced.issuperset(left)

    @cached_property
    def _spaced(self) -> frozenset[int]:
        """The hashes of its words between spaces."""
        found = {word for one in self._own.sentences for word in spaced_words(one)}
        return frozenset([hashed & _HASH for hashed in self._own.hashes.every(found)])

    def _not_in_runs(self, asked: list[int]) -> list[int]:
        """Those of these hashes that nothing has which may be a word where there are no spaces."""
        kernels = compiled.kernels
        if kernels is not None:
            lengths = _LENGTHS[0], _LENGTHS[-1]
            return kernels.lacking(self._own.letters, *lengths, *self._own.hashes.drawn, _HASH, asked)
        values, held = np.array(asked, np.uint32), self._in_runs
        if not len(held):
            return asked
        left: list[int] = values[held.take(held.searchsorted(values), mode="clip") != values].tolist()
        return left

    @cached_property
    def _in_runs(self) -> npt.NDArray[np.uint32]:
        """The hashes of all that may be such a word, in order, of which each comparison asks for some."""
        points = code_points(self._own.letters).astype(np.uint64)
        runs = self._own.hashes.n_grams_each(points, [n for n in _LENGTHS if len(points) >= n])
        held = np.concatenate(runs or [points[:0]]) & np.uint64(_HASH)
        return distinct(held.astype(np.uint32))
