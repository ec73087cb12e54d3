"""Two pages side by side, the sentences marked that both hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from scrapy_neardup.report.candidates import quotas
from scrapy_neardup.report.clean import SENTENCE, clean_line, clean_text
from scrapy_neardup.report.data import CopyLine, MarkedText, PagePair
from scrapy_neardup.report.figures import kind_of
from scrapy_neardup.report.lines import PageLines
from scrapy_neardup.stores import Evidence, Record, stands_for
from scrapy_neardup.text.marking import Mark, cut, marked, own_letters, sentence_letters

#: Characters of a text that are shown, and those that are read to find what both hold.
SHOWN, _READ = 4_000, 100_000
_ORDER = {
    kind: place for place, kind in enumerate(("retitled", "near", "excerpt", "same_title", "unknown", "identical"))
}
#: Characters of texts and of sentences that stand with the copies of the table, and copies whose texts are asked for.
_LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES, _WITH_TEXTS = 200_000, 120_000, 200
#: Shared sentences that are shown of a pair without texts.
_SENTENCES = 12


def chosen(
    candidates: Mapping[str, Sequence[int]], lines: PageLines, count: int, *, simplified: bool
) -> tuple[PagePair, ...]:
    """``count`` of the candidates, the same number of each kind if there are so many; before others those with texts.

    Those of a kind stand together, the least similar first; and first those kinds that are most in need of a look.
    """
    ordered = sorted(candidates, key=lambda kind: (_ORDER.get(kind.split()[0], len(_ORDER)), kind))
    found = {kind: [pair for id in candidates[kind] if (pair := _Draft.read(id, lines))] for kind in ordered}
    pairs: list[PagePair] = []
    for kind, many in quotas({kind: len(drafts) for kind, drafts in found.items()}, count).items():
        drafts = sorted(found[kind], key=_Draft.lacking)[:many]  # stable: otherwise in the order of the candidates
        pairs += [draft.pair(lines, simplified=simplified) for draft in sorted(drafts, key=_Draft.similarity)]
    return tuple(pairs)


def compared(lines: PageLines, ids: Iterable[int], *, simplified: bool) -> Iterator[CopyLine]:
    """The copies of these ids with what they can be compared by, as far as there is room for that in a report."""
    texts, sentences = _LETTERS_OF_TEXTS, _LETTERS_OF_SENTENCES
    for number, id in enumerate(ids):
        page, evidence = lines.store.record(id), lines.store.evidence(id)
        if page is None:
            continue
        similar_id = f"{page.original:016x}"
        # Of a page that was better: the one that came first.
        original = lines.store.record(page.original) if page.leads else stands_for(lines.store, page, besides=page.url)
        if original is None:
            yield CopyLine(lines.page(page, evidence), None, similar_id)
            continue
        line = CopyLine(
            lines.page(page, evidence),
            lines.page(original, lines.store.evidence(original.id)),
            similar_id,
            evidence.containment if evidence else 0.0,
        )
        if number < _WITH_TEXTS and texts > 0 and (draft := _Draft(page, evidence, original, lines)).lacking() == 0:
            pair = draft.pair(lines, simplified=simplified)
            texts -= sum(len(part.text) for text in pair.texts if text for part in text.parts)
            line = replace(line, texts=pair.texts)
        elif sentences > 0:
            shared = _shared(evidence)
            sentences -= sum(map(len, shared))
            line = replace(line, shared=shared)
        else:
            line = replace(line, shared=None)
        yield line


class _Draft:
    """A pair with its whole texts."""

    def __init__(self, page: Record, evidence: Evidence | None, original: Record, lines: PageLines) -> None:
        self.page, self.evidence, self.original = page, evidence, original
        self.evidence_of_original = lines.store.evidence(original.id)
        texts = lines.text(original, self.evidence_of_original), lines.text(page, evidence)
        self.texts = texts[0][:_READ], texts[1][:_READ]
        self._unread = len(texts[0][_READ:]), len(texts[1][_READ:])

    @classmethod
    def read(cls, id: int, lines: PageLines) -> _Draft | None:
        """The pair of the page with this id; None if either page is no longer there."""
        page, evidence = lines.store.record(id), lines.store.evidence(id)
        if page is None:
            return None
        original = lines.store.record(page.original if page.original != id else evidence.like if evidence else 0)
        return None if original is None else cls(page, evidence, original, lines)

    def lacking(self) -> int:
        """How many of the two texts are not there."""
        return self.texts.count("")

    def similarity(self) -> tuple[float, int]:
        """By what pairs of a kind are ordered."""
        return self._similarity, self.page.id

    @property
    def _similarity(self) -> float:
        copy = self.page.original != self.page.id
        return self.page.similarity if copy else self.evidence.similarity if self.evidence else 0.0

    def pair(self, lines: PageLines, *, simplified: bool) -> PagePair:
        """The pair as it is shown."""
        old, new = map(clean_text, self.texts)
        evidence = self.evidence
        shared = _shared(evidence)
        known = (
            frozenset(own_letters(clean_text(one), simplified=simplified) for one in evidence.shared)
            if evidence
            else frozenset()
        )
        in_old, in_new = (sentence_letters(text, simplified=simplified) if text else known for text in (old, new))
        copy = self.page.original != self.page.id
        return PagePair(
            kind_of(evidence) if copy or evidence is None else evidence.likeness,
            copy,
            lines.page(self.page, evidence, wanted=True),
            lines.page(self.original, self.evidence_of_original, wanted=True),
            round(self._similarity, 4),
            evidence.containment if evidence else 0.0,
            shared,
            (
                _marked(old, in_new, self._unread[0], simplified=simplified),
                _marked(new, in_old, self._unread[1], simplified=simplified),
            ),
        )


def _shared(evidence: Evidence | None) -> tuple[str, ...]:
    return tuple(clean_line(one, SENTENCE) for one in (evidence.shared if evidence else ())[:_SENTENCES])


def _marked(text: str, shared: Set[str], unread: int, *, simplified: bool) -> MarkedText | None:
    """The beginning of a text, with those of its sentences marked that are ``shared``; None for no text.

    ``unread``: characters that follow it, and were not looked at.
    """
    if not text:
        return None
    parts = marked(text, lambda own: Mark.SHARED if own in shared else Mark.NONE, simplified=simplified)
    few = cut(parts, SHOWN)
    hidden = sum(part.mark is Mark.SHARED for part in parts[len(few) :])
    return MarkedText(tuple(few), len(text) + unread, hidden)
