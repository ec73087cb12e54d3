"""Words of a page with their weights, as the word-based methods take them."""

from __future__ import annotations

from scrapy_neardup.text.lexicon import Lexicon
from scrapy_neardup.text.stopwords import stop_words
from scrapy_neardup.text.tokens import frequencies, words


def word_counts(body: str, stop: str = "") -> dict[str, int]:
    """How often each word stands in a normalised text, less the stop words in the file ``stop`` (empty: our own)."""
    return frequencies(words(body, singles=True), stop_words(stop))


def top_tfidf(counts: dict[str, int], table: Lexicon, count: int) -> dict[str, float]:
    """The ``count`` words of the highest TF-IDF, the highest first, of words of two characters and more."""
    weights = {word: times * table.weight(word) for word, times in counts.items() if len(word) > 1}
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:count])
