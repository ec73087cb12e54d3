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
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.evaluation.documents import Document, json_lines, read_documents, with_distinct_ids
from scrapy_neardup.inputs import Entry
from scrapy_neardup.inputs.packed import find_file
from scrapy_neardup.text.normalize import letters, normalize

POS, NEG, REPOST, TEMPLATE, GREY, SKIP = LABELS = ("pos", "neg", "repost", "template", "grey", "skip")

#: A pair below both is none.
_JACCARD, _CONTAINMENT = 0.5, 0.8
_NEED = 'a line must be one JSON object: {"a": id, "b": id, "jaccard": 0.83, "containment": 0.91}, for two documents'
_WORD = re.compile(r"\w+")
_HAN = re.compile(r"[\u3400-\u9fff]")
#: Documents by which the language is told.
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Pair:
    """How alike two documents are; ``same_account`` is None where a corpus does not say."""

    jaccard: float
    same_account: bool | None = None
    left: float = math.inf


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents on disk, and the label of each by its id."""

    name: str
    path: Path
    labels: dict[str, str]

    def documents(self) -> Iterator[Document]:
        """The documents, read anew."""
        return read_documents(self.path)


def read_corpus(path: Path, pairs: Path | None = None) -> Corpus:
    """The corpus of a folder or of a file of documents; ``pairs`` are beside the documents if nothing else is said.

    Raises NearDupError if either is missing or malformed.
    """
    folder = path if path.is_dir() else path.parent
    labels = read_labels(read_documents(path), pairs or find_file(folder, "pairs.jsonl") or folder / "pairs.jsonl")
    if not labels:
        raise NearDupError(f"{path} holds no documents; see that it is the right file.")
    return Corpus(path.resolve().name, path, labels)


def read_labels(documents: Iterable[Document], pairs: Path) -> dict[str, str]:
    """The label of each document, in their order, from a file of pairs.

    Raises NearDupError for an id that two documents share, or that a pair names and no document has.
    """
    short = dict(_short(with_distinct_ids(documents)))
    partners = _partners(pairs, {id: place for place, id in enumerate(short)})
    has_accounts = any(pair.same_account is not None for found in partners.values() for pair in found)
    return {id: label(partners.get(id, []), short=is_short, accounts=has_accounts) for id, is_short in short.items()}


def label(earlier: list[Pair], *, short: bool, accounts: bool) -> str:
    """The label of a document from its pairs with earlier ones; ``accounts``: the corpus knows who published what.

    >>> label([Pair(0.7, same_account=False)], short=False, accounts=True)
    'repost'
    """
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


def _partners(path: Path, order: Mapping[str, int]) -> dict[str, list[Pair]]:
    """Of each document its pairs with earlier ones."""
    if not path.is_file():
        raise NearDupError(f"The reference pairs are missing: there is no {path}. Put the file there; {_NEED}.")
    partners = defaultdict(list)
    for entry in json_lines(path, _NEED):
        ends = [str(entry.fields.get(end)) for end in ("a", "b")]
        for id in ends:
            if id not in order:
                raise NearDupError(f"{entry.place}: no document has the id {id!r}; {_NEED} of this corpus.")
        if ends[0] == ends[1]:
            raise NearDupError(f"{entry.place}: a and b are the same document; {_NEED}.")
        if _figure(entry, "jaccard") >= _JACCARD or _figure(entry, "containment") >= _CONTAINMENT:
            partners[max(ends, key=order.__getitem__)].append(_pair(entry))
    return partners


def _pair(entry: Entry) -> Pair:
    same = entry.fields.get("account_same")
    if not (same is None or isinstance(same, bool)):
        raise NearDupError(f"{entry.place}: account_same must be true or false, not {same!r}.")
    jaccard = _figure(entry, "jaccard" if entry.fields.get("jaccard_clean") is None else "jaccard_clean")
    left = math.inf if entry.fields.get("left") is None else _figure(entry, "left", math.inf)
    return Pair(jaccard, same, left)


def _figure(entry: Entry, name: str, most: float = 1.0) -> float:
    value = entry.fields.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        right = f"from 0 to {most:g}" if most < math.inf else "from 0"
        raise NearDupError(f"{entry.place}: {name} must be a number {right}, not {value!r}; {_NEED}.")
    return value


def _short(documents: Iterator[Document]) -> Iterator[tuple[str, bool]]:
    """Of each document its id, and whether it is too short for its similarities to say anything."""
    first = list(islice(documents, _FIRST))
    chinese = sum(bool(_HAN.search(document.text)) for document in first) > len(first) / 2
    too_short = _few_letters if chinese else _few_words
    for document in chain(first, documents):
        yield document.id, too_short(normalize(document.text))


def _few_letters(normalized: str) -> bool:
    return len(letters(normalized)) < 60


def _few_words(normalized: str) -> bool:
    words = _WORD.findall(normalized)
    return len(set(zip(words, words[1:], words[2:], strict=False))) < 20
