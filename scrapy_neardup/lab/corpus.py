"""Corpora: documents, and what pairs with earlier documents make each of them.

The label of a document comes from its most similar earlier document: pos (Jaccard >= 0.8: must be dropped), neg
(Jaccard < 0.5 and containment < 0.8: must be kept), repost (Jaccard >= 0.6 with an article of another account: should
be dropped), template (Jaccard < 0.75, only with articles of the same account: should be kept), grey (between: not
scored), skip (too short, or mostly boilerplate: not scored). Jaccard and containment are exact, over all pairs, on
character 5-grams of letters and digits.

Similarity is not the truth: two pages may share a template. A person's answer on a pair overrides its figures. If every
pair has an answer, they are a sample, and documents outside it are unknown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.lab.documents import Document
from scrapy_neardup.lab.exact import CONTAINMENT, JACCARD
from scrapy_neardup.lab.pairs import COPY, DIFFERENT, SKIP, Pair, read_answers, read_pairs
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.text.normalize import letters, normalize

POS, NEG, REPOST, TEMPLATE, GREY, LEFT_OUT = ("pos", "neg", "repost", "template", "grey", "skip")

#: Letters besides boilerplate that a pair needs.
_LETTERS_LEFT = 30
_WORD = re.compile(r"\w+")
#: Documents that decide the language.
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents, and the label of each by id.

    ``different``: earlier documents that a person called different; dropping this one for another document is no error
    then. ``gold``: pairs that a person has read.
    """

    name: str
    documents: Sequence[Document]
    labels: dict[str, str]
    different: dict[str, frozenset[str]] = field(default_factory=dict)
    gold: tuple[Pair, ...] = ()


def read_corpus(
    path: Path, documents: Sequence[Document], pairs: Path | None = None, gold: Path | None = None
) -> Corpus:
    """Return the corpus of the documents that a folder or file holds.

    ``pairs`` and ``gold`` lie beside the documents by default; one of them is enough. Raises NearDupError.
    """
    if not documents:
        raise NearDupError(f"{path} contains no documents. Check that it is the right file.")
    folder = path if path.is_dir() else path.parent
    gold_beside, name = find_file(folder, "gold.jsonl"), path.resolve().name
    pairs = pairs or find_file(folder, "pairs.jsonl") or (None if gold or gold_beside else folder / "pairs.jsonl")
    first = [document.page.text for document in documents[:_FIRST]]
    is_chinese = sum(bool(HAN_CHARACTER.search(text)) for text in first) > len(first) / 2
    short = {document.id: _is_short(document.page.text, is_chinese=is_chinese) for document in documents}
    order = {id: place for place, id in enumerate(short)}
    labels, different = _labels(short, _partners(pairs, order) if pairs else None)
    answers: list[Pair] = []
    if gold:
        answers = read_answers(gold, known=order, corpora={name, folder.resolve().name})
    elif gold_beside:
        answers = read_answers(gold_beside, known=order)
    return Corpus(name, documents, labels, different, tuple(answers))


def _partners(path: Path, order: Mapping[str, int]) -> dict[str, dict[str, Pair]]:
    """Return the pairs of each document with earlier ones, by id. An answer counts in place of figures."""
    partners: dict[str, dict[str, Pair]] = defaultdict(dict)
    for pair in read_pairs(path, "jaccard", "containment", known=order):
        is_similar = (pair.jaccard or 0) >= JACCARD or (pair.containment or 0) >= CONTAINMENT
        if pair.answer == SKIP or not (is_similar or pair.answer):
            continue
        known = partners[pair.b].get(pair.a)
        if known is None or pair.answer or not known.answer:
            partners[pair.b][pair.a] = pair
    return dict(partners)


def _labels(
    short: Mapping[str, bool], partners: Mapping[str, Mapping[str, Pair]] | None
) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """Return labels, and what a person called different; ``partners``: None if nothing is known of any pair."""
    known = {id: list(earlier.values()) for id, earlier in (partners or {}).items()}
    pairs = [pair for earlier in known.values() for pair in earlier]
    has_accounts = any(pair.same_account is not None for pair in pairs)
    unknown = GREY if partners is None or (pairs and all(pair.answer for pair in pairs)) else NEG
    labels = {
        id: label_document(known[id], is_short=is_short, has_accounts=has_accounts)
        if id in known
        else LEFT_OUT
        if is_short
        else unknown
        for id, is_short in short.items()
    }
    different = {
        id: frozenset(pair.a for pair in earlier if pair.answer == DIFFERENT)
        for id, earlier in known.items()
        if labels[id] == NEG
    }
    return labels, different


def label_document(pairs: list[Pair], *, is_short: bool, has_accounts: bool) -> str:
    """Label a document by its pairs with earlier ones; ``has_accounts``: the corpus knows publishers.

    >>> label_document([Pair("a", "b", 0.7, same_account=False)], is_short=False, has_accounts=True)
    'repost'
    """
    if any(pair.answer == COPY for pair in pairs):
        return POS
    unread = [pair for pair in pairs if not pair.answer]
    if pairs and not unread:
        return NEG
    if is_short or any(pair.left is not None and pair.left < _LETTERS_LEFT for pair in unread):
        return LEFT_OUT
    if not unread:
        return NEG
    best = max(pair.similarity for pair in unread)
    if best >= 0.8:
        return POS
    if any(pair.similarity >= 0.6 and pair.same_account is False for pair in unread):
        return REPOST
    if has_accounts and best < 0.75 and all(pair.same_account is True for pair in unread):
        return TEMPLATE
    return GREY


def _is_short(text: str, *, is_chinese: bool) -> bool:
    """Whether a text is too short for similarities."""
    normalized = normalize(text)
    if is_chinese:
        return len(letters(normalized)) < 60
    words = _WORD.findall(normalized)
    return len(set(zip(words, words[1:], words[2:], strict=False))) < 20
