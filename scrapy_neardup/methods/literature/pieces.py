"""Methods that hash pieces of a text: sentences, segments, the characters beside punctuation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise, starmap

from scrapy_neardup.hashing.keyed import DIGESTS
from scrapy_neardup.hashing.keys import key_of
from scrapy_neardup.methods.base import Parameters, choice, decides, number, whole
from scrapy_neardup.methods.literature.base import (
    Agreement,
    PublishedMethod,
    Text,
    pack_hashes,
    signature_of,
    unpack_hashes,
)
from scrapy_neardup.model import Fingerprint, Page
from scrapy_neardup.text.marking import longest_sentences, shared_sentences
from scrapy_neardup.text.normalize import letters


class _HashedPieces(PublishedMethod):
    """The hashes of some pieces are the keys and, ascending, the signature: 8 bytes each."""

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of common hashes in the larger set, without ``common`` ones. Duplicates share ``equal``, or all."""
        a, b = ({hash for hash in unpack_hashes(packed) if key_of(hash) not in common} for packed in (one, other))
        both, most = len(a & b), max(len(a), len(b))
        return Agreement(both / most if most else 0.0, 0 < min(self.parameters.equal, most) <= both)


@dataclass(frozen=True, slots=True)
class NSHashParameters(Parameters):
    """The parameters of ``nshash``."""

    #: The number of sentences that are hashed, the longest first.
    n: int = whole(5, 1, 64)
    #: The fewest letters of a sentence.
    min_sentence: int = whole(10, 1, 4096)
    #: How many hashes of two duplicates are equal.
    equal: int = decides(whole(3, 1, 64, at_most="n"))
    #: The hash of a sentence.
    hash: str = choice(DIGESTS[0], *DIGESTS)


class NSHash(_HashedPieces):
    """nshash: the hashes of the n longest sentences.

    The article on nshash (top-n longest sentences hash) extends what it calls the "Baidu" rule: two pages are the same
    if their longest sentence is (``n=1``). One edited word there, and a copy is missed. So nshash keeps the hashes of
    the five longest sentences, and one equal hash makes a duplicate. All pages of a group have the same ``similar_id``.

    Differences, as that rule drops pages that share only a disclaimer: ``equal`` hashes must be the same, 3 of 5 by
    default; a page with fewer sentences must have them all (``equal=1`` is the article's rule). A sentence of many
    originals does not count. Empty pieces are no sentences. Sentences end at 。！？；!?; at the end of a line, and at a
    Latin full stop.
    """

    name = "nshash"
    parameters_type = NSHashParameters
    parameters: NSHashParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys and the signature, 8 bytes each."""
        p = self.parameters
        hashes = sorted(set(self._hash_all(longest_sentences(text.body, p.min_sentence, p.n))))
        return hashes, pack_hashes(hashes)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known, p = unpack_hashes(signature_of(old)), self.parameters
        return shared_sentences(page.text, self._hash_all, known, p.min_sentence, limit, simplified=p.simplified)

    def _evidence(self, text: Text) -> list[int]:
        """Return nothing, as the signature is the evidence."""
        return []

    def _hash_all(self, sentences: list[str]) -> list[int]:
        return [self.hashes.digest(self.parameters.hash, one) for one in sentences]


@dataclass(frozen=True, slots=True)
class SegmentsParameters(Parameters):
    """The parameters of ``segments``."""

    #: The number of pieces that are hashed.
    segments: int = whole(4, 1, 255)
    #: How many hashes of two duplicates are equal.
    equal: int = decides(whole(3, 1, 255, at_most="segments"))
    #: Where a page is cut: at ``paragraphs``, or into pieces of the same ``length``.
    cut: str = choice("paragraphs", "paragraphs", "length")
    #: The fewest letters of a piece. Short paragraphs are joined, and a short page is cut into fewer pieces.
    min_segment: int = whole(40, 1, 100_000)


class Segments(_HashedPieces):
    """A page in pieces with a hash each: enough equal hashes make a duplicate.

    The 分段签名算法 of part 2 of the series 网页文本的排重算法 cuts a page into N pieces by some rule; pages are copies
    if M of their N hashes are equal. It leaves the rule open. ``cut="length"`` is the plain reading, N pieces of equal
    length: a changed word changes one piece, but an inserted word moves all later cuts. ``cut="paragraphs"`` follows
    the hint in part 9: small paragraphs are joined, and the N longest pieces are kept.

    Differences: a page with fewer than M pieces must have them all in common with the other page. Pieces of many
    originals do not count. The article gives neither N nor M; ours come from tests.
    """

    name = "segments"
    parameters_type = SegmentsParameters
    parameters: SegmentsParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys and the signature, 8 bytes each."""
        p = self.parameters
        if p.cut == "length":
            pieces = equal_pieces(text.letters, min(p.segments, len(text.letters) // p.min_segment))
        else:
            pieces = longest_pieces(map(letters, text.body.splitlines()), p.segments, p.min_segment)
        hashes = sorted(set(map(self.hashes.of, pieces)))
        return hashes, pack_hashes(hashes)


def equal_pieces(text: str, count: int) -> list[str]:
    """Cut a text into ``count`` pieces of equal length, give or take one; an empty text has none.

    >>> equal_pieces("今天风大渡船停航", 3)
    ['今天', '风大渡', '船停航']
    """
    count = max(1, count)
    ends = [len(text) * place // count for place in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends) if end > start]


def longest_pieces(paragraphs: Iterable[str], count: int, at_least: int) -> list[str]:
    """Return the ``count`` longest pieces of consecutive paragraphs, each with ``at_least`` letters.

    A shorter rest at the end is left out, as names and notes there differ in copies, unless it is the whole text.

    >>> longest_pieces(["停航", "今天风大", "渡船停航一天", "船长"], 5, 6)
    ['停航今天风大', '渡船停航一天']
    """
    pieces, rest = [], ""
    for paragraph in paragraphs:
        rest += paragraph
        if len(rest) >= at_least:
            pieces.append(rest)
            rest = ""
    if rest and not pieces:
        pieces.append(rest)
    return sorted(pieces, key=lambda piece: (-len(piece), piece))[:count]


_MARK = re.compile(r"[。!?]|(?<!\d),|,(?!\d)|(?<!\.)\.(?![.0-9a-z])")
# In scripts without spaces each character counts, in others each word; East Asian ones begin at U+2E80.
_CHARACTER = re.compile(r"[^\W_\u0e00-\u109f\u1780-\u17ff\u2e80-\U0003ffff]+|[^\W_]")
#: Characters on each side, pieces, and the weights of the title and of each piece.
_SIDE = 2
_PIECES = 3
_WEIGHTS = (1.5, *(1.0,) * _PIECES)


@dataclass(frozen=True, slots=True)
class PunctuationParameters(Parameters):
    """The parameters of ``punctuation``."""

    #: The weight that must agree: the title weighs 1.5, each of the three pieces 1.0.
    threshold: float = decides(number(3.0, 1.0, 4.5))
    #: The fewest punctuation marks of a text that is cut into pieces.
    min_marks: int = whole(6, 1, 10_000)
    #: The hash of a piece.
    hash: str = choice(DIGESTS[0], *DIGESTS)


class Punctuation(PublishedMethod):
    """The text around punctuation: two characters on each side of every mark, as one string.

    Part 8 of the series 网页文本的排重算法 (基于句子的方式): punctuation divides Chinese sentences, so the characters
    around every comma, full stop, exclamation and question mark represent the text. As one string, cut into 3 pieces of
    the same length, they give 3 hashes; the title gives one more. An equal title weighs 1.5, an equal piece 1.0. Two
    pages are duplicates from 3.0 on: the same title and two pieces, or all three pieces.

    One mark more moves the cuts and changes all pieces: copies with text removed or added are missed, those with
    another word are found. A comma or dot inside 1,200, 3.5 or example.com is no mark. An ellipsis is no mark.
    Differences: empty titles are not equal. A title or piece of many originals does not count. A text with fewer than
    ``min_marks`` marks has no pieces, as these would be short.
    """

    name = "punctuation"
    parameters_type = PunctuationParameters
    parameters: PunctuationParameters

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys; the signature has title and pieces, 8 bytes each, 0 for a missing one.

        A text without pieces also has its whole body as a key, for exact copies.
        """
        title = letters(text.title)
        marks, string = text_beside_marks(text.body)
        may_be_cut = marks >= self.parameters.min_marks and len(string) >= _PIECES
        pieces = equal_pieces(string, _PIECES) if may_be_cut else []
        found = [self._hash("title", title) if title else 0, *starmap(self._hash, enumerate(pieces))]
        keys = [value for value in found if value]
        found += [0] * (1 + _PIECES - len(found))
        return keys if pieces else [*keys, self.hashes.of(text.letters)], pack_hashes(found)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of the whole weight, 4.5, that agrees; common titles and pieces have no weight."""
        weight = sum(
            weight
            for weight, a, b in zip(_WEIGHTS, unpack_hashes(one), unpack_hashes(other), strict=True)
            if a == b != 0 and key_of(a) not in common
        )
        return Agreement(weight / sum(_WEIGHTS), weight >= self.parameters.threshold)

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
