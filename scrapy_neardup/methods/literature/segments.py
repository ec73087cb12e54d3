"""A page in pieces with a hash each: enough equal hashes make a duplicate.

The 分段签名算法 of part 2 of the series 网页文本的排重算法 cuts a page into N pieces by some rule; pages are copies if
M of their N hashes are equal. It leaves the rule open. ``cut="length"`` is the plain reading, N pieces of equal length:
a changed word changes one piece, but an inserted word moves all later cuts. ``cut="paragraphs"`` follows the hint in
part 9: small paragraphs are joined, and the N longest pieces are kept.

Differences: a page with fewer than M pieces must have them all in common with the other page. Pieces of many originals
do not count. The article gives neither N nor M; ours come from tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.methods.base import Parameters, choice, decides, whole
from scrapy_neardup.methods.literature.published import Agreement, PublishedMethod, Text, equal_hashes, pack_hashes
from scrapy_neardup.model import Fingerprint
from scrapy_neardup.text.normalize import letters


@dataclass(frozen=True, slots=True)
class SegmentsParameters(Parameters):
    """The parameters of ``segments``."""

    method: ClassVar[str] = "segments"

    #: The number of pieces that are hashed.
    segments: int = whole(4, 1, 255)
    #: How many hashes of two duplicates are equal.
    equal: int = decides(whole(3, 1, 255))
    #: Where a page is cut: at ``paragraphs``, or into pieces of the same ``length``.
    cut: str = choice("paragraphs", "paragraphs", "length")
    #: The fewest letters of a piece. Short paragraphs are joined, and a short page is cut into fewer pieces.
    min_segment: int = whole(40, 1, 100_000)

    def _check(self) -> None:
        if self.equal > self.segments:
            raise SettingsError(f"segments: equal must be at most segments ({self.segments}), not {self.equal}.")


class Segments(PublishedMethod):
    """Compares hashes of pieces."""

    name: ClassVar[str] = "segments"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = SegmentsParameters
    parameters: SegmentsParameters
    threshold: ClassVar[str] = "equal"
    sweep: ClassVar[tuple[float, ...]] = (1, 2, 3, 4)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys and the signature, 8 bytes each."""
        p = self.parameters
        if p.cut == "length":
            pieces = equal_pieces(text.letters, p.segments, p.min_segment)
        else:
            pieces = longest_pieces(map(letters, text.body.splitlines()), p.segments, p.min_segment)
        hashes = sorted(set(map(self.hashes.of, pieces)))
        return hashes, pack_hashes(hashes)

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of common hashes."""
        return equal_hashes(one, other, common, self.parameters.equal)


def equal_pieces(text: str, count: int, at_least: int) -> list[str]:
    """Cut a text into ``count`` pieces of equal length, give or take one; fewer if under ``at_least``.

    >>> equal_pieces("今天风大渡船停航", 3, 1)
    ['今天', '风大渡', '船停航']
    >>> equal_pieces("今天风大渡船停航", 3, 4)
    ['今天风大', '渡船停航']
    """
    count = max(1, min(count, len(text) // at_least))
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
