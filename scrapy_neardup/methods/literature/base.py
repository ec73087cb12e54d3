"""The common part of the published methods; each of them holds only its own idea.

Their sketches begin with a head: fingerprints of body and title, which show exact copies, and of the longest sentences,
by which every method can show common passages.
"""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from scrapy_neardup.methods.base import Method
from scrapy_neardup.model import Comparison, Fingerprint, Kind, Page
from scrapy_neardup.text.lexicon import read_stop_words
from scrapy_neardup.text.marking import longest_sentences, shared_sentences
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title
from scrapy_neardup.text.tokens import words

#: Q body's letters · I title's letters · B number of sentences; then I per sentence.
_HEAD = struct.Struct(">QIB")
#: Sentences of a head, and the fewest letters of one.
_EVIDENCE = 4
_MIN_SENTENCE = 10


@dataclass(frozen=True, slots=True)
class Text:
    """A normalised page."""

    page: Page
    #: The article's title without the site's name.
    title: str
    body: str
    #: Letters and digits of the body.
    letters: str


class Agreement(NamedTuple):
    """How far two signatures agree: a similarity in [0, 1], and whether it makes a duplicate."""

    similarity: float
    duplicate: bool
    #: Containment of the shorter page in the longer; None if unknown.
    containment: float | None = None


class PublishedMethod(Method):
    """A method of the literature: a signature of a text, and a comparison of two.

    Pages with the same letters are always duplicates. A page without a key (too few words, no term in the lexicon) is
    filed under the fingerprint of its whole body and finds exact copies. A page with an empty signature is like no
    other.
    """

    version = 1

    @abstractmethod
    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """Return up to 255 keys of 64 bits, and the signature in the method's own layout."""

    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """Compare two signatures, neither empty; by default they must be equal. See ``Method.compare``."""
        return Agreement(float(one == other), one == other)

    def _evidence(self, text: Text) -> list[int]:
        """Return 32-bit fingerprints of sentences that can be shown."""
        return self.hashes.shorts(longest_sentences(text.body, _MIN_SENTENCE, _EVIDENCE))

    def fingerprint(self, page: Page) -> Fingerprint:
        simplified = self.parameters.simplified
        title = normalize(article_title(page.title), simplified=simplified)
        body = normalize(page.text, simplified=simplified)
        text = Text(page, title, body, letters(body))
        keys, signature = self.signature(text)
        whole = self.hashes.of(text.letters)
        evidence = self._evidence(text)
        head = _HEAD.pack(whole, self.hashes.short(letters(title)), len(evidence))
        sketch = b"".join((head, struct.pack(f">{len(evidence)}I", *evidence), signature))
        return Fingerprint(tuple(dict.fromkeys(keys)) or (whole,), sketch)

    def compare(self, new: Fingerprint, old: bytes, common: Set[int]) -> Comparison:
        body, title, _ = _HEAD.unpack_from(new.sketch)
        old_body, old_title, _ = _HEAD.unpack_from(old)
        if body == old_body:
            return Comparison(1.0, 1.0, True, True, title == old_title, Kind.IDENTICAL)
        ours, theirs = signature_of(new.sketch), signature_of(old)
        found = self.agreement(new, ours, theirs, common) if ours and theirs else Agreement(0.0, duplicate=False)
        containment = found.similarity if found.containment is None else found.containment
        kind = (Kind.NEAR if title == old_title else Kind.RETITLED) if found.duplicate else None
        return Comparison(found.similarity, containment, found.duplicate, found.duplicate, False, kind)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = struct.unpack_from(f">{_HEAD.unpack_from(old)[2]}I", old, _HEAD.size)
        return shared_sentences(
            page.text, self.hashes.shorts, known, _MIN_SENTENCE, limit, simplified=self.parameters.simplified
        )


def signature_of(sketch: bytes) -> bytes:
    """Return the signature in a sketch."""
    return sketch[_HEAD.size + 4 * _HEAD.unpack_from(sketch)[2] :]


def pack_hashes(hashes: Sequence[int]) -> bytes:
    """Pack 64-bit hashes in order, 8 bytes each."""
    return struct.pack(f">{len(hashes)}Q", *hashes)


def unpack_hashes(packed: bytes) -> tuple[int, ...]:
    """Unpack the hashes of ``pack_hashes``."""
    return struct.unpack(f">{len(packed) // 8}Q", packed)


def word_counts(body: str, stop: str) -> dict[str, int]:
    """Count the words of a normalised text, in order, without the stop words of the file ``stop`` (empty: ours)."""
    ignored = read_stop_words(stop)
    return {word: count for word, count in Counter(words(body, singles=True)).items() if word not in ignored}
