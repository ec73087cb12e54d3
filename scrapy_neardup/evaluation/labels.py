"""What a method should do with each document of a corpus, by its most similar earlier document.

    pos       Jaccard 0.8 and more: a copy, must be dropped
    neg       no Jaccard of 0.5 nor containment of 0.8: must be kept
    repost    Jaccard of 0.6 and more with an article of another account: should be dropped
    template  Jaccard under 0.75, and only with articles of the same account: a form filled in for another
              product, should be kept
    grey      anything between: people disagree, not scored
    skip      too short to say, or little but what stands on every page of the site: not scored

Jaccard and containment come from the corpus: computed exactly, over all pairs, on the sets of character 5-grams of
letters and digits. ``jaccard_clean`` is the same without sentences that recur over the whole site and counts in
place of ``jaccard`` where it is given; ``left`` is the number of letters that remain then.

A pair may also carry what a reader said of it (``scrapy neardup tune``), which counts in place of figures: a document
that is a copy of an earlier one is pos, one that is different from it is neg as far as that one is concerned. Where
every pair carries such a label, they are a sample, and of documents that are in none of them nothing is known.

What figures say is no truth: of two notices in one form a publisher may keep both, however alike they are. What a
reader would drop is held in a file of its own (``gold``), and counted beside these labels.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.documents import Document, read_documents, with_distinct_ids
from scrapy_neardup.evaluation.feed import FeedReader
from scrapy_neardup.evaluation.gold import Gold, read_gold
from scrapy_neardup.evaluation.pair_lines import ANSWERS, COPY, pair_ends, pair_lines
from scrapy_neardup.inputs import Entry
from scrapy_neardup.inputs.packed import find_file
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.text.normalize import letters, normalize

POS, NEG, REPOST, TEMPLATE, GREY, SKIP = LABELS = ("pos", "neg", "repost", "template", "grey", "skip")

#: A pair below both is none.
_JACCARD, _CONTAINMENT = 0.5, 0.8
_NEED = 'each line must be one JSON object: {"a": id, "b": id, "jaccard": 0.83, "containment": 0.91}, for two documents'
_WORD = re.compile(r"\w+")
#: Documents by which the language is told.
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Pair:
    """How alike two documents are; ``same_account`` is None where a corpus does not say.

    ``copy``: what a reader said of them; None if nobody has.
    """

    jaccard: float
    same_account: bool | None = None
    left: float = math.inf
    copy: bool | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents on disk, and the label of each by its id.

    ``different``: the earlier documents that a reader found different from one; that this one is dropped for another
    earlier document is no error then. ``feed`` reads the file where it is no plain corpus. ``gold``: what a
    reader said, which is counted beside the labels.
    """

    name: str
    path: Path
    labels: dict[str, str]
    different: dict[str, frozenset[str]] = field(default_factory=dict)
    feed: FeedReader | None = None
    gold: tuple[Gold, ...] = ()

    def documents(self) -> Iterator[Document]:
        """The documents, read anew."""
        return read_documents(self.path, feed=self.feed)


def read_corpus(
    path: Path, pairs: Path | None = None, feed: FeedReader | None = None, gold: Path | None = None
) -> Corpus:
    """The corpus of a folder or of a file of documents.

    ``pairs`` and ``gold`` are beside the documents if nothing else is said; one of the two is enough.
    Raises NearDupError if both are missing, or if anything is malformed.
    """
    folder = path if path.is_dir() else path.parent
    gold_beside, name = find_file(folder, "gold.jsonl"), path.resolve().name
    pairs = pairs or find_file(folder, "pairs.jsonl") or (None if gold or gold_beside else folder / "pairs.jsonl")
    short = dict(_short(with_distinct_ids(read_documents(path, feed=feed))))
    if not short:
        raise NearDupError(f"{path} contains no documents. Check that it is the right file.")
    order = {id: place for place, id in enumerate(short)}
    labels, different = _labels(short, _partners(pairs, order) if pairs else None)
    found: list[Gold] = []
    if gold:
        found = read_gold(gold, order, {name, folder.resolve().name})
    elif gold_beside:
        found = read_gold(gold_beside, order)
    return Corpus(name, path, labels, different, feed, tuple(found))


def _labels(
    short: Mapping[str, bool], partners: Mapping[str, Mapping[str, Pair]] | None
) -> tuple[dict[str, str], dict[str, frozenset[str]]]:
    """The labels, and what was found different; ``partners``: None if nothing is known of any pair."""
    known = partners or {}
    found = [pair for earlier in known.values() for pair in earlier.values()]
    has_accounts = any(pair.same_account is not None for pair in found)
    unknown = GREY if partners is None or (found and all(pair.copy is not None for pair in found)) else NEG
    labels = {
        id: label(list(known[id].values()), short=is_short, accounts=has_accounts)
        if id in known
        else SKIP
        if is_short
        else unknown
        for id, is_short in short.items()
    }
    different = {
        id: frozenset(other for other, pair in earlier.items() if pair.copy is False)
        for id, earlier in known.items()
        if labels[id] == NEG
    }
    return labels, different


def label(earlier: list[Pair], *, short: bool, accounts: bool) -> str:
    """The label of a document from its pairs with earlier ones; ``accounts``: the corpus knows who published what.

    >>> label([Pair(0.7, same_account=False)], short=False, accounts=True)
    'repost'
    """
    if any(pair.copy for pair in earlier):
        return POS
    judged, earlier = len(earlier), [pair for pair in earlier if pair.copy is None]
    if judged and not earlier:
        return NEG
    if short or any(pair.left < 30 for pair in earlier):
        return SKIP
    if not earlier:
        return NEG
    best = max(pair.jaccard for pair in earlier)
    if best >= 0.8:
        return POS
    if any(pair.jaccard >= 0.6 and pair.same_account is False for pair in earlier):
        return REPOST
    if accounts and best < 0.75 and all(pair.same_account is True for pair in earlier):
        return TEMPLATE
    return GREY


def _partners(path: Path, order: Mapping[str, int]) -> dict[str, dict[str, Pair]]:
    """Of each document its pairs with earlier ones, by their ids; what a reader said of a pair counts."""
    if not path.is_file():
        raise NearDupError(
            f"{path} with the reference pairs does not exist. Put it there, or give pairs read by a person in a "
            f"gold.jsonl; {_NEED}."
        )
    partners: dict[str, dict[str, Pair]] = defaultdict(dict)
    for entry in pair_lines(path, _NEED):
        ends = pair_ends(entry, order, _NEED)
        pair = _pair(entry)
        alike = _figure(entry, "jaccard") >= _JACCARD or _figure(entry, "containment") >= _CONTAINMENT
        if pair is None or not (alike or pair.copy is not None):
            continue
        earlier, later = sorted(ends, key=order.__getitem__)
        known = partners[later].get(earlier)
        if known is None or pair.copy is not None or known.copy is None:
            partners[later][earlier] = pair
    return dict(partners)


def _pair(entry: Entry) -> Pair | None:
    """The pair; None for one that a reader has skipped."""
    answer = entry.fields.get("label")
    if answer not in (None, *ANSWERS):
        raise NearDupError(f"{entry.place}: label must be one of {', '.join(ANSWERS)}, not {answer!r}.")
    if answer == SKIP:
        return None
    same = entry.fields.get("account_same")
    if not (same is None or isinstance(same, bool)):
        raise NearDupError(f"{entry.place}: account_same must be true or false, not {same!r}.")
    jaccard = _figure(entry, "jaccard" if entry.fields.get("jaccard_clean") is None else "jaccard_clean")
    left = math.inf if entry.fields.get("left") is None else _figure(entry, "left", math.inf)
    return Pair(jaccard, same, left, None if answer is None else answer == COPY)


def _figure(entry: Entry, name: str, most: float = 1.0) -> float:
    value = entry.fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        right = f"from 0 to {most:g}" if most < math.inf else "from 0"
        raise NearDupError(f"{entry.place}: {name} must be a number {right}, not {value!r}; {_NEED}.")
    return value


def _short(documents: Iterator[Document]) -> Iterator[tuple[str, bool]]:
    """Of each document its id, and whether it is too short for its similarities to say anything."""
    first = list(islice(documents, _FIRST))
    chinese = sum(bool(HAN_CHARACTER.search(document.text)) for document in first) > len(first) / 2
    too_short = _few_letters if chinese else _few_words
    for document in chain(first, documents):
        yield document.id, too_short(normalize(document.text))


def _few_letters(normalized: str) -> bool:
    return len(letters(normalized)) < 60


def _few_words(normalized: str) -> bool:
    words = _WORD.findall(normalized)
    return len(set(zip(words, words[1:], words[2:], strict=False))) < 20
