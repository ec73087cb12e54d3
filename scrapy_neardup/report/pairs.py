"""Pages side by side: which pairs to show, their texts with shared sentences marked, and the table of copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from heapq import heappush, heappushpop
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from scrapy_neardup.page.urls import site_of
from scrapy_neardup.report.data import NO_SITE, CopyLine, MarkedText, PageLine, PagePair, kind_of
from scrapy_neardup.state.evidence import Evidence
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
#: Limits of the table: characters of texts, characters of sentences, copies whose texts are looked up.
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


class KnownPage(NamedTuple):
    """A page of the state, with its evidence."""

    record: Record
    evidence: Evidence | None


class PageReader:
    """Reads pages of a state for a report."""

    def __init__(self, store: PageStore, *, simplified: bool) -> None:
        """``simplified``: whether sentences in traditional and simplified characters count as equal."""
        self.store = store
        self.simplified = simplified

    def find(self, id: int) -> KnownPage | None:
        """Return the page with an id."""
        record = self.store.record(id)
        return None if record is None else self.known(record)

    def known(self, record: Record) -> KnownPage:
        """Return the page of a record."""
        return KnownPage(record, self.store.evidence(record.id))

    def line(self, page: KnownPage) -> PageLine:
        """Return the line of a page."""
        record, evidence = page
        return PageLine(
            clean_line(record.url, REPORT_URL),
            clean_line(site_of(record.url) or NO_SITE, SITE),
            int(record.first_seen),
            "original" if record.original == record.id else kind_of(evidence),
            round(record.similarity, 4),
            evidence.letters if evidence else 0,
            clean_line(evidence.title if evidence else "", TITLE),
        )


class _Pair:
    """A page and the earlier one that it resembles, with their whole texts."""

    def __init__(self, page: KnownPage, original: KnownPage, reader: PageReader) -> None:
        self.page, self.original = page, original
        self._reader = reader
        self._texts = tuple(one.evidence.text if one.evidence else "" for one in (original, page))
        self.missing_texts = self._texts.count("")
        record, evidence = page
        self.is_copy = record.original != record.id
        self.similarity = record.similarity if self.is_copy else evidence.similarity if evidence else 0.0

    @classmethod
    def find(cls, id: int, reader: PageReader) -> _Pair | None:
        """Return the pair of a page; None if either page is gone."""
        page = reader.find(id)
        if page is None:
            return None
        like = page.evidence.like if page.evidence else 0
        original = reader.find(page.record.original if page.record.original != id else like)
        return None if original is None else cls(page, original, reader)

    def shown(self) -> PagePair:
        """Return the pair as a report shows it."""
        evidence = self.page.evidence
        return PagePair(
            kind_of(evidence) if self.is_copy or evidence is None else evidence.likeness,
            self.is_copy,
            self._reader.line(self.page),
            self._reader.line(self.original),
            round(self.similarity, 4),
            evidence.containment if evidence else 0.0,
            shared_sentences(evidence),
            self.marked_texts(),
        )

    def marked_texts(self) -> tuple[MarkedText | None, MarkedText | None]:
        """Return both texts, as far as they are known.

        Sentences of both are marked; beside an unknown text, those that the state knows to be shared.
        """
        simplified = self._reader.simplified
        old, new = (clean_text(text[:_READ]) for text in self._texts)
        kept = self.page.evidence.shared if self.page.evidence else ()
        known = frozenset(own_letters(clean_text(one), simplified=simplified) for one in kept)
        in_old, in_new = (sentence_letters(text, simplified=simplified) if text else known for text in (old, new))
        unread = [len(text[_READ:]) for text in self._texts]
        return self._marked(old, in_new, unread[0]), self._marked(new, in_old, unread[1])

    def _marked(self, text: str, shared: Set[str], unread: int) -> MarkedText | None:
        """Mark the ``shared`` sentences of a text; ``unread`` characters follow."""
        if not text:
            return None
        simplified = self._reader.simplified
        parts = mark_sentences(text, lambda own: Mark.SHARED if own in shared else Mark.NONE, simplified=simplified)
        few = truncate(parts, SHOWN)
        hidden = sum(part.mark is Mark.SHARED for part in parts[len(few) :])
        return MarkedText(tuple(few), len(text) + unread, hidden)


def shared_sentences(evidence: Evidence | None) -> tuple[str, ...]:
    """Return some of the shared sentences that the state knows."""
    return tuple(clean_line(one, SENTENCE) for one in (evidence.shared if evidence else ())[:_SENTENCES])


def choose_pairs(candidates: Mapping[str, Sequence[int]], reader: PageReader) -> tuple[PagePair, ...]:
    """Choose the pairs to show: kinds take turns, and pairs with texts come first.

    Pairs of a kind stay together, the least similar first.
    """
    kinds = sorted(candidates, key=lambda kind: (_ORDER.index(kind.split()[0]), kind))
    queues = []
    for place, kind in enumerate(kinds):
        found = [pair for id in candidates[kind] if (pair := _Pair.find(id, reader))]
        # The sort is stable: otherwise they stay in the order of the candidates.
        queues.append([(place, pair) for pair in sorted(found, key=lambda pair: pair.missing_texts)])
    turns = (one for one in chain.from_iterable(zip_longest(*queues)) if one is not None)
    taken = sorted(islice(turns, PAIRS), key=lambda one: (one[0], one[1].similarity, one[1].page.record.id))
    return tuple(pair.shown() for _, pair in taken)


def copy_lines(reader: PageReader, ids: Iterable[int]) -> Iterator[CopyLine]:
    """Yield these copies with their texts or shared sentences, as far as a report has room."""
    texts_left, sentences_left = _LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES
    for number, id in enumerate(ids):
        page = reader.find(id)
        if page is None:
            continue
        record, evidence = page
        line = CopyLine(reader.line(page), None, f"{record.original:016x}")
        # For a page that became the best of its group: the page that came first.
        first = reader.store.record(record.original)
        found = first if record.leads else representative_of(reader.store, record, except_url=record.url)
        if found is None:
            yield line
            continue
        original = reader.known(found)
        line = replace(line, original=reader.line(original), containment=evidence.containment if evidence else 0.0)
        pair = _Pair(page, original, reader) if number < _WITH_TEXTS and texts_left > 0 else None
        if pair is not None and not pair.missing_texts:
            texts = pair.marked_texts()
            texts_left -= sum(len(part.text) for text in texts if text for part in text.parts)
            line = replace(line, texts=texts)
        elif sentences_left > 0:
            shared = shared_sentences(evidence)
            sentences_left -= sum(map(len, shared))
            line = replace(line, shared=shared)
        else:
            line = replace(line, shared=None)
        yield line
