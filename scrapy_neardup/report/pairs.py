"""Pages side by side: which pairs to show, their texts with shared sentences marked, and the table of copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from heapq import heappush, heappushpop
from itertools import chain, islice, zip_longest

from scrapy_neardup.maintenance.scan import kind_of
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.report.data import NO_SITE, MarkedText, PageLine, PagePair
from scrapy_neardup.state.pages import PageStore, representative_of
from scrapy_neardup.state.record import Record
from scrapy_neardup.text.marking import Mark, mark_sentences, own_letters, sentence_letters, truncate
from scrapy_neardup.untrusted import REPORT_URL, SENTENCE, SITE, TITLE, clean_line, clean_text

#: Pairs to show.
PAIRS = 24
#: Show this many characters of a text; read this many to find shared sentences.
SHOWN, _READ = 4_000, 100_000
#: Kinds in the order of their pairs: those that need a look most come first.
_ORDER = ("retitled", "near", "excerpt", "same_title", "unknown", "identical")
#: Limits of the table: characters of texts, characters of sentences, copies with texts.
_LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES, _WITH_TEXTS = 200_000, 120_000, 200
#: Shared sentences to show of a pair without texts.
_SENTENCES = 12


class PairCandidates:
    """Remembers the least similar pairs of each kind. The id of the newer page names a pair."""

    def __init__(self, count: int = 2 * PAIRS) -> None:
        """``count``: pairs of a kind."""
        self._count = count
        #: A heap for each kind, negated: the most similar pair is the first to go.
        self._heaps: dict[str, list[tuple[float, int]]] = defaultdict(list)

    def add(self, kind: str, similarity: float, id: int) -> None:
        """Remember a pair if it is less similar than others of its kind; of equal ones the older."""
        heap = self._heaps[kind]
        (heappush if len(heap) < self._count else heappushpop)(heap, (-similarity, -id))

    def ids(self) -> dict[str, list[int]]:
        """Return the ids of each kind, the least similar first.

        >>> candidates = PairCandidates(2)
        >>> for similarity, id in ((0.9, 3), (0.5, 1), (0.6, 2)):
        ...     candidates.add("near", similarity, id)
        >>> candidates.ids()
        {'near': [1, 2]}
        """
        return {kind: [-id for _, id in sorted(heap, reverse=True)] for kind, heap in self._heaps.items()}


class PageReader:
    """Reads pages of a state for a report."""

    def __init__(self, store: PageStore, *, simplified: bool) -> None:
        """``simplified``: whether sentences in traditional and simplified characters count as equal."""
        self.store = store
        self.evidence = lru_cache(1_000)(store.evidence)
        self._simplified = simplified

    def line(self, record: Record) -> PageLine:
        evidence = self.evidence(record.id)
        return PageLine(
            clean_line(record.url, REPORT_URL),
            clean_line(site_of(record.url) or NO_SITE, SITE),
            int(record.first_seen),
            "original" if record.original == record.id else kind_of(evidence),
            round(record.similarity, 4),
            evidence.letters if evidence else 0,
            clean_line(evidence.title if evidence else "", TITLE),
        )

    def pair(self, page: Record, original: Record | None) -> PagePair:
        """Return a page beside the earlier one, without sentences and texts."""
        evidence, is_copy = self.evidence(page.id), page.original != page.id
        return PagePair(
            kind=kind_of(evidence) if is_copy or evidence is None else evidence.kind,
            copy=is_copy,
            page=self.line(page),
            original=self.line(original) if original else None,
            similar_id=f"{page.original:016x}",
            similarity=round(page.similarity if is_copy or evidence is None else evidence.similarity, 4),
            containment=evidence.containment if evidence and original else 0.0,
        )

    def shared(self, page: Record) -> tuple[str, ...]:
        """Return some of the sentences that the state knows to be in the page and in the earlier one."""
        evidence = self.evidence(page.id)
        return tuple(clean_line(one, SENTENCE) for one in (evidence.shared if evidence else ())[:_SENTENCES])

    def texts(self, page: Record, original: Record) -> tuple[str, str]:
        """Return the texts of the earlier page and of the later one, empty if unknown."""
        old, new = (evidence.text if (evidence := self.evidence(one.id)) else "" for one in (original, page))
        return old, new

    def marked_texts(self, page: Record, original: Record) -> tuple[MarkedText | None, MarkedText | None]:
        """Return the known texts.

        Common sentences are marked; beside an unknown text, the sentences that the state knows to be shared.
        """
        simplified, evidence, whole = self._simplified, self.evidence(page.id), self.texts(page, original)
        old, new = (clean_text(text[:_READ]) for text in whole)
        kept = evidence.shared if evidence else ()
        known = frozenset(own_letters(clean_text(one), simplified=simplified) for one in kept)
        in_old, in_new = (sentence_letters(text, simplified=simplified) if text else known for text in (old, new))
        unread = [len(text[_READ:]) for text in whole]
        return self._marked(old, in_new, unread[0]), self._marked(new, in_old, unread[1])

    def _marked(self, text: str, shared: Set[str], unread: int) -> MarkedText | None:
        """Mark the ``shared`` sentences of a text; ``unread`` characters follow."""
        if not text:
            return None
        simplified = self._simplified
        parts = mark_sentences(text, lambda own: Mark.SHARED if own in shared else Mark.NONE, simplified=simplified)
        few = truncate(parts, SHOWN)
        hidden = sum(part.mark is Mark.SHARED for part in parts[len(few) :])
        return MarkedText(tuple(few), len(text) + unread, hidden)


def choose_pairs(candidates: Mapping[str, Sequence[int]], reader: PageReader) -> tuple[PagePair, ...]:
    """Choose the pairs to show: kinds take turns, and pairs with texts come first.

    Pairs of a kind stay together, the least similar first.
    """
    queues = []
    for place, kind in enumerate(sorted(candidates, key=lambda kind: (_ORDER.index(kind.split()[0]), kind))):
        found = [pair for id in candidates[kind] if (pair := _find_pair(id, reader))]
        # The sort is stable: otherwise they stay in the order of the candidates.
        queues.append([(place, *pair) for pair in sorted(found, key=lambda pair: reader.texts(*pair).count(""))])
    turns = (one for one in chain.from_iterable(zip_longest(*queues)) if one is not None)
    taken = [(place, page, old, reader.pair(page, old)) for place, page, old in islice(turns, PAIRS)]
    return tuple(
        replace(pair, shared=reader.shared(page), texts=reader.marked_texts(page, old))
        for _, page, old, pair in sorted(taken, key=lambda one: (one[0], one[3].similarity, one[1].id))
    )


def _find_pair(id: int, reader: PageReader) -> tuple[Record, Record] | None:
    """Return a page and the earlier page that it resembles; None if either is gone."""
    page, evidence = reader.store.record(id), reader.evidence(id)
    if page is None:
        return None
    like = evidence.like if evidence else 0
    original = reader.store.record(page.original if page.original != id else like)
    return (page, original) if original else None


def copy_lines(reader: PageReader, ids: Iterable[int]) -> Iterator[PagePair]:
    """Yield these copies with their texts or shared sentences, as far as a report has room."""
    texts_left, sentences_left = _LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES
    for number, page in enumerate(map(reader.store.record, ids)):
        if page is None:
            continue
        # For a page that became the best of its group: the page that came first.
        first = reader.store.record(page.original)
        original = first if page.has_led else representative_of(reader.store, page, except_url=page.url)
        pair = reader.pair(page, original)
        if original is None:
            yield pair
        elif number < _WITH_TEXTS and texts_left > 0 and all(reader.texts(page, original)):
            texts = reader.marked_texts(page, original)
            texts_left -= sum(len(part.text) for text in texts if text for part in text.parts)
            yield replace(pair, texts=texts)
        else:
            shared = reader.shared(page) if sentences_left > 0 else None
            sentences_left -= sum(map(len, shared or ()))
            yield replace(pair, shared=shared)
