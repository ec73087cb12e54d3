"""What the published methods share, so that each file holds one idea."""

from __future__ import annotations

import struct
from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass

from scrapy_neardup.hashing.keys import key_of
from scrapy_neardup.methods.base import Method
from scrapy_neardup.methods.evidence import longest_sentences, shared_sentences
from scrapy_neardup.model import Comparison, Fingerprint, Likeness, Page
from scrapy_neardup.text.lexicon import Lexicon, stop_words
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title
from scrapy_neardup.text.tokens import frequencies, words

# ----------------------------------------------------------------------------------------------------------------------
# Words of a page with their weights, as the word-based methods take them.


def word_counts(body: str, stop: str = "") -> dict[str, int]:
    """How often each word stands in a normalised text, less the stop words in the file ``stop`` (empty: our own)."""
    return frequencies(words(body, singles=True), stop_words(stop))


def top_tfidf(counts: dict[str, int], table: Lexicon, count: int) -> dict[str, float]:
    """The ``count`` words of the highest TF-IDF, the highest first, of words of two characters and more."""
    weights = {word: times * table.weight(word) for word, times in counts.items() if len(word) > 1}
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:count])


# ----------------------------------------------------------------------------------------------------------------------
# What the published methods have in common, so that each file holds its own idea alone.
#
# Their sketches begin with a head: fingerprints of body and title, by which an exact copy is known whatever the
# method makes of it, and those of the longest sentences, so that every method can show what two pages share.


#: Q body's letters · I title's letters · B number of sentences, of which a 32-bit fingerprint each follows.
_HEAD = struct.Struct(">QIB")
#: Sentences that are kept as evidence, and the letters from which a piece is one.
_EVIDENCE = 4
_MIN_SENTENCE = 10


@dataclass(frozen=True, slots=True)
class Text:
    """A page after the shared normalisation."""

    page: Page
    #: The article's title, without the site's name.
    title: str
    body: str
    #: The body's letters and digits alone.
    letters: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two signatures agree: a similarity in [0, 1], and whether that makes a duplicate."""

    similarity: float
    duplicate: bool
    #: Of the shorter page in the longer one; None for a method that does not know.
    containment: float | None = None


class PublishedMethod(Method):
    """A method of the literature: a signature from a text, and what two signatures say of each other.

    Two pages with the same letters are duplicates whatever the signatures say. A page of which a method makes no key
    (too few words, no term of the lexicon) is filed under the fingerprint of its whole body and finds its exact copies.
    """

    @abstractmethod
    def signature(self, text: Text) -> tuple[Sequence[int], bytes]:
        """Keys and the signature, in the method's own layout.

        Keys are unsigned, of 64 bits, at most 255; repeated ones count once.
        """

    @abstractmethod
    def agreement(self, new: Fingerprint, one: bytes, other: bytes, common: Set[int]) -> Agreement:
        """Compare the signatures of a new page and an earlier one; ``new`` and ``common`` as in ``Method.compare``."""

    def _evidence(self, text: Text) -> list[int]:
        """32-bit fingerprints of the sentences that can be shown to be shared."""
        return [self.hashes.short(one) for one in longest_sentences(text.body, _MIN_SENTENCE, _EVIDENCE)]

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
            return Comparison(1.0, 1.0, True, True, title == old_title, Likeness.IDENTICAL)
        found = self.agreement(new, signature_of(new.sketch), signature_of(old), common)
        containment = found.similarity if found.containment is None else found.containment
        likeness = (Likeness.NEAR if title == old_title else Likeness.RETITLED) if found.duplicate else None
        return Comparison(found.similarity, containment, found.duplicate, found.duplicate, False, likeness)

    def shared(self, page: Page, old: bytes, limit: int = 3) -> tuple[str, ...]:
        known = struct.unpack_from(f">{_HEAD.unpack_from(old)[2]}I", old, _HEAD.size)
        return shared_sentences(
            page.text,
            lambda sentence: self.hashes.short(sentence) in known,
            _MIN_SENTENCE,
            limit,
            simplified=self.parameters.simplified,
        )


def signature_of(sketch: bytes) -> bytes:
    """The signature in a sketch, behind its head."""
    return sketch[_HEAD.size + 4 * _HEAD.unpack_from(sketch)[2] :]


def equal_hashes(one: bytes, other: bytes, common: Set[int], needed: int) -> Agreement:
    """Compare two signatures that are sets of 8-byte hashes; those whose keys are ``common`` count for neither.

    The similarity is the share of the hashes that both have, of the page that has more of them. Duplicates have as many
    as ``needed`` in common, or all if they have fewer: one of few is no more telling than one of many.
    """
    a, b = (frozenset(unpack_hashes(packed)) for packed in (one, other))
    if common:
        a, b = (frozenset(hash for hash in hashes if key_of(hash) not in common) for hashes in (a, b))
    both, most = len(a & b), max(len(a), len(b))
    return Agreement(both / most if most else 0.0, 0 < min(needed, most) <= both)


def pack_hashes(hashes: Sequence[int]) -> bytes:
    """A signature of 64-bit hashes in their order, 8 bytes each."""
    return struct.pack(f">{len(hashes)}Q", *hashes)


def unpack_hashes(packed: bytes) -> tuple[int, ...]:
    """What ``pack_hashes`` packed."""
    return struct.unpack(f">{len(packed) // 8}Q", packed)
