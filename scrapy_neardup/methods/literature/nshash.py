"""nshash: the hashes of the n longest sentences.

The article on nshash (top-n longest sentences hash) extends what it calls the "Baidu" rule: two pages are the same if
their longest sentence is (``n=1``). One edited word there, and a copy is missed. So nshash keeps the hashes of the five
longest sentences, and one equal hash makes a duplicate. All pages of a group have the same ``similar_id``.

Differences, as that rule drops pages that share only a disclaimer: ``equal`` hashes must be the same, 3 of 5 by
default; a page with fewer sentences must have them all (``equal=1`` is the article's rule). A sentence of many
originals does not count. Empty pieces are no sentences. Sentences end at 。！？；!?; at the end of a line, and at a
Latin full stop.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar

from scrapy_neardup.errors import SettingsError
from scrapy_neardup.hashing.keyed import DIGESTS
from scrapy_neardup.methods.base import Parameters, choice, decides, whole
from scrapy_neardup.methods.evidence import longest_sentences, shared_sentences
from scrapy_neardup.methods.literature.published import (
    Agreement,
    PublishedMethod,
    Text,
    equal_hashes,
    pack_hashes,
    signature_of,
    unpack_hashes,
)
from scrapy_neardup.model import Fingerprint, Page


@dataclass(frozen=True, slots=True)
class NSHashParameters(Parameters):
    """The parameters of ``nshash``."""

    method: ClassVar[str] = "nshash"

    #: The number of sentences that are hashed, the longest first.
    n: int = whole(5, 1, 64)
    #: The fewest letters of a sentence.
    min_sentence: int = whole(10, 1, 4096)
    #: How many hashes of two duplicates are equal.
    equal: int = decides(whole(3, 1, 64))
    #: The hash of a sentence.
    hash: str = choice(DIGESTS[0], *DIGESTS)

    def _check(self) -> None:
        if self.equal > self.n:
            raise SettingsError(f"nshash: equal must be at most n ({self.n}), not {self.equal}.")


class NSHash(PublishedMethod):
    """Compares hashes of long sentences."""

    name: ClassVar[str] = "nshash"
    version: ClassVar[int] = 1
    parameters_type: ClassVar[type[Parameters]] = NSHashParameters
    parameters: NSHashParameters
    threshold: ClassVar[str] = "equal"
    sweep: ClassVar[tuple[float, ...]] = (1, 2, 3, 4, 5)

    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """The hashes are the keys and the signature, 8 bytes each."""
        p = self.parameters
        hashes = sorted(set(map(self._hash, longest_sentences(text.body, p.min_sentence, p.n))))
        return hashes, pack_hashes(hashes)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = unpack_hashes(signature_of(old))
        p = self.parameters
        return shared_sentences(
            page.text, lambda sentence: self._hash(sentence) in known, p.min_sentence, limit, simplified=p.simplified
        )

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """The share of common hashes."""
        return equal_hashes(one, other, common, self.parameters.equal)

    def _evidence(self, text: Text) -> list[int]:
        """Return nothing, as the signature is the evidence."""
        return []

    def _hash(self, sentence: str) -> int:
        return self.hashes.digest(self.parameters.hash, sentence)
