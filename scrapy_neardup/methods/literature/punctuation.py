"""The text around punctuation: two characters on each side of every mark, as one string.

Part 8 of the series 网页文本的排重算法 (基于句子的方式): punctuation divides Chinese sentences, so the characters
around every comma, full stop, exclamation and question mark represent the text. As one string, cut into 3 pieces of the
same length, they give 3 hashes; the title gives one more. An equal title weighs 1.5, an equal piece 1.0. Two pages are
duplicates from 3.0 on: the same title and two pieces, or all three pieces.

One mark more moves the cuts and changes all pieces: copies with text removed or added are missed, those with another
word are found. A comma or dot inside 1,200, 3.5 or example.com is no mark, nor are the dots of an ellipsis.
Differences: empty titles are not equal. A title or piece of many originals does not count. A text with fewer than
``min_marks`` marks has no pieces, as these would be short.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import ClassVar

from scrapy_neardup.hashing.keyed import DIGESTS
from scrapy_neardup.hashing.keys import key_of
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.normalize import letters

_MARK = re.compile(r"[。!?]|(?<!\d),|,(?!\d)|(?<!\.)\.(?![.0-9a-z])")
# In scripts without spaces each character counts, in others each word; East Asian ones begin at U+2E80.
_CHARACTER = re.compile(r"[^\W_\u0e00-\u109f\u1780-\u17ff\u2e80-\U0003ffff]+|[^\W_]")
#: Characters on each side, pieces, and the weights.
_SIDE = 2
_PIECES = 3
_TITLE_WEIGHT = 1.5
_SIGNATURE = struct.Struct(">4Q")


@dataclass(frozen=True, slots=True)
class PunctuationParameters(Parameters):
    """The parameters of ``punctuation``."""

    method: ClassVar[str] = "punctuation"

    #: The weight that must agree: the title weighs 1.5, each of the three pieces 1.0.
    threshold: float = decides(number(3.0, 1.0, 4.5))
    #: The fewest punctuation marks of a text that is cut into pieces.
    min_marks: int = whole(6, 1, 10_000)
    #: The hash of a piece.
    hash: str = choice(DIGESTS[0], *DIGESTS)


class Punctuation(PublishedMethod):
    """Compares hashes of the title and of the text beside punctuation."""

    name: ClassVar[str] = "punctuation"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = PunctuationParameters
    parameters: PunctuationParameters
    threshold: ClassVar[str] = "threshold"
    sweep: ClassVar[tuple[float, ...]] = (1.0, 2.0, 2.5, 3.0, 3.5, 4.5)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys; the signature has title and pieces, 8 bytes each, 0 for a missing one.

        A text without pieces has its whole body as a key, too, for exact copies.
        """
        title = letters(text.title)
        marks, string = text_beside_marks(text.body)
        pieces = thirds(string) if marks >= self.parameters.min_marks else []
        found = [self._hash("title", title) if title else 0, *starmap(self._hash, enumerate(pieces))]
        keys = [value for value in found if value]
        found += [0] * (1 + _PIECES - len(found))
        return keys if pieces else [*keys, self.hashes.of(text.letters)], _SIGNATURE.pack(*found)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of the whole weight, 4.5, that agrees; common titles and pieces have no weight."""
        weight = sum(
            1.0 if place else _TITLE_WEIGHT
            for place, (a, b) in enumerate(zip(_SIGNATURE.unpack(one), _SIGNATURE.unpack(other), strict=True))
            if a == b != 0 and key_of(a) not in common
        )
        return Agreement(weight / (_TITLE_WEIGHT + _PIECES), weight >= self.parameters.threshold)

    def _hash(self, what: object, string: str) -> int:
        return self.hashes.digest(self.parameters.hash, f"{what} {string}")


def text_beside_marks(body: str) -> tuple[int, str]:
    """Return the number of marks, and two characters (or Latin words) on each side of every mark.

    There are fewer if the next mark is nearer.

    >>> text_beside_marks("河湾镇的新渡口,“清晨”开航。好!3.5元")
    (3, '渡口清晨开航好好35')
    """
    pieces = [_CHARACTER.findall(piece) for piece in _MARK.split(body)]
    found: list[str] = []
    for left, right in pairwise(pieces):
        found += left[-_SIDE:]
        found += right[:_SIDE]
    return len(pieces) - 1, "".join(found)


def thirds(string: str) -> list[str]:
    """Cut a string into three pieces of equal length, give or take one; none for fewer than three characters."""
    if len(string) < _PIECES:
        return []
    ends = [len(string) * place // _PIECES for place in range(_PIECES + 1)]
    return [string[start:end] for start, end in pairwise(ends)]
