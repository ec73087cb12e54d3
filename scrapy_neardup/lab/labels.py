"""Labels: reference pairs and pairs that a person has read."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from scrapy_neardup.errors import NearDupError
from scrapy_neardup.files import Entry, read_input
from scrapy_neardup.files.compression import find_file
from scrapy_neardup.lab.documents import (
    Document,
    FeedReader,
    json_lines,
    read_documents,
    told_format,
    with_distinct_ids,
)
from scrapy_neardup.lab.exact import Alike
from scrapy_neardup.page.urls import site_of
from scrapy_neardup.text.characters import HAN_CHARACTER
from scrapy_neardup.text.normalize import letters, normalize
from scrapy_neardup.text.titles import article_title

#: Labels of a pair.
COPY, DIFFERENT, SKIP = ANSWERS = ("copy", "different", "skip")


def pair_lines(path: Path, need: str) -> Iterator[Entry]:
    """Yield every pair of JSON lines, or of a CSV table whose cells become numbers where they look so.

    ``need`` says in the NearDupError what a line must hold.
    """
    if told_format(path) in ("jsonl", "text"):
        yield from json_lines(path, need)
        return
    for entry in read_input(str(path)):
        if not isinstance(entry, Entry):
            raise NearDupError(f"{entry.place} is {entry.why}; {need}.")
        fields = {name: value if name in ("a", "b") else _told(value) for name, value in entry.fields.items()}
        yield replace(entry, fields=fields)


def pair_ends(entry: Entry, known: Container[str], need: str) -> tuple[str, str]:
    """Return the ids of both documents. Raises NearDupError for an unknown id, or for equal ids.

    Ids may be written as numbers.
    """
    one, other = (str(entry.fields.get(end)) for end in ("a", "b"))
    for id in (one, other):
        if id not in known:
            raise NearDupError(f"{entry.place}: no document has the id {id!r}; {need} of this corpus.")
    if one == other:
        raise NearDupError(f"{entry.place}: a and b are the same document; {need}.")
    return one, other


def _told(value: Any) -> Any:
    """Parse a cell: a number, true, false, nothing, or text.

    >>> _told("0.83"), _told("True"), _told(""), _told("copy")
    (0.83, True, None, 'copy')
    """
    known = {"true": True, "false": False, "": None}
    text = str(value).strip()
    if text.lower() in known:
        return known[text.lower()]
    try:
        return float(text)
    except ValueError:
        return value


def pair_row(found: Alike, one: Document, other: Document) -> dict[str, Any]:
    """Return a pair as plain data; ``a`` came first.

    ``title``: similarity of titles, None if one is missing. ``same_site``: None if a URL is missing.
    """
    first, second = _title(one), _title(other)
    sites = site_of(one.url), site_of(other.url)
    return {
        "a": one.id,
        "b": other.id,
        "jaccard": round(found.jaccard, 4),
        "containment": round(found.containment, 4),
        "title": titles_alike(first, second),
        "title_same": first == second,
        "same_site": sites[0] == sites[1] if all(sites) else None,
    }


def titles_alike(one: str, other: str) -> float | None:
    """Return the Jaccard similarity of pairs of letters; None if a title has none.

    >>> titles_alike("theferry", "theferryagain"), titles_alike("", "theferry")
    (0.5833, None)
    """
    pairs = [{title[at : at + 2] for at in range(max(1, len(title) - 1))} for title in (one, other)]
    return round(len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1]), 4) if one and other else None


def _title(document: Document) -> str:
    """Return the letters of a title without the site's name."""
    return letters(normalize(article_title(document.title)))


# Classes made from similarity are not the truth: two pages may share a template. A person answers whether a publisher
# who wants each article once would drop the later page. ``drop`` is yes, no or unsure (which does not count); in its
# place there may be a ``verdict`` (see ``VERDICTS``) or the ``label`` that `scrapy neardup tune` and `judgements`
# write.


#: Answers by field, in the order of fields; None: unsure.
DROP = {"yes": True, "no": False, "unsure": None}
VERDICTS = {"repost": True, "reissue": True, "extended": True, "template": False, "sharedcode": False, "unsure": None}
DROPS_BY_LABEL = {COPY: True, DIFFERENT: False, SKIP: None}
_FIELDS: Mapping[str, Mapping[str, bool | None]] = {"drop": DROP, "verdict": VERDICTS, "label": DROPS_BY_LABEL}

_GOLD_NEED = (
    'each line must be one JSON object: {"a": id of the earlier, "b": id of the later, "drop": "yes", "label": "…"}'
)


@dataclass(frozen=True, slots=True)
class Gold:
    """A person's answer on two documents, by id; ``drop`` is None if unsure.

    ``label``: any word for the sort of pair.
    """

    earlier: str
    later: str
    drop: bool | None
    label: str = ""

    @property
    def answer(self) -> str:
        """Return the answer as one of ``DROP``."""
        return next(name for name, drop in DROP.items() if drop is self.drop)


@dataclass(frozen=True, slots=True)
class GoldScore:
    """Agreement of verdicts with a person, in pairs: drops of ``different`` ones, and kept ``copies``.

    ``unsure`` pairs count in neither. ``by_label``: the same for each label.
    """

    different: int
    dropped_wrongly: int
    copies: int
    kept_wrongly: int
    unsure: int
    by_label: dict[str, GoldScore] = field(default_factory=dict)

    @property
    def pairs(self) -> int:
        """Pairs with a certain answer."""
        return self.different + self.copies

    @property
    def agree(self) -> int:
        """Pairs on which the verdict agrees."""
        return self.pairs - self.dropped_wrongly - self.kept_wrongly

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        labels = {label: one.as_dict() for label, one in self.by_label.items()}
        return {
            "pairs": self.pairs,
            "agree": self.agree,
            "different": self.different,
            "dropped_wrongly": self.dropped_wrongly,
            "copies": self.copies,
            "kept_wrongly": self.kept_wrongly,
            "unsure": self.unsure,
            **({"by_label": labels} if labels else {}),
        }


def agreement(gold: Iterable[Gold], dropped: Set[str]) -> GoldScore:
    """Return the agreement of a method that ``dropped`` these documents.

    >>> agreement([Gold("a", "b", True), Gold("a", "c", False)], {"b", "c"}).as_dict()["dropped_wrongly"]
    1
    """
    gold = list(gold)
    labels = sorted({one.label for one in gold} - {""})
    of_each = {label: _agreement([one for one in gold if one.label == label], dropped) for label in labels}
    return _agreement(gold, dropped, of_each)


def _agreement(gold: list[Gold], dropped: Set[str], by_label: dict[str, GoldScore] | None = None) -> GoldScore:
    different = [one.later in dropped for one in gold if one.drop is False]
    copies = [one.later in dropped for one in gold if one.drop]
    unsure = len(gold) - len(different) - len(copies)
    return GoldScore(len(different), sum(different), len(copies), copies.count(False), unsure, by_label or {})


def read_gold(path: Path, order: Mapping[str, int], names: Container[str] | None = None) -> list[Gold]:
    """Read the pairs of a file; the last one of a repeated pair counts. ``order``: the place of each document.

    ``names``: of the corpus; lines for another ``corpus`` are skipped. Raises NearDupError that names file and line.
    """
    if not path.is_file():
        raise NearDupError(f"{path} with the pairs read by a person does not exist. Put it there; {_GOLD_NEED}.")
    found: dict[tuple[str, str], Gold] = {}
    for entry in pair_lines(path, _GOLD_NEED):
        corpus = entry.fields.get("corpus")
        if names is not None and corpus is not None and corpus not in names:
            continue
        earlier, later = sorted(pair_ends(entry, order, _GOLD_NEED), key=order.__getitem__)
        found[earlier, later] = Gold(earlier, later, *_answer(entry))
    return list(found.values())


def _answer(entry: Entry) -> tuple[bool | None, str]:
    """Return the answer and the label of a pair."""
    name = next((name for name in _FIELDS if entry.fields.get(name) is not None), "drop")
    said, label = entry.fields.get(name), entry.fields.get("label")
    answers = _FIELDS[name]
    if not isinstance(said, str) or said not in answers:
        raise NearDupError(f"{entry.place}: {name} must be one of {', '.join(answers)}, not {said!r}; {_GOLD_NEED}.")
    if label is not None and not isinstance(label, (str, int, float)):
        raise NearDupError(f"{entry.place}: label must be a text, not {label!r}; {_GOLD_NEED}.")
    return answers[said], "" if name == "label" else said if name == "verdict" and label is None else str(label or "")


# The label of a document comes from its most similar earlier document: pos (Jaccard >= 0.8: must be dropped), neg
# (Jaccard < 0.5 and containment < 0.8: must be kept), repost (Jaccard >= 0.6 with an article of another account: should
# be dropped), template (Jaccard < 0.75, only with articles of the same account: should be kept), grey (between: not
# scored), skip (too short, or mostly boilerplate: not scored). Jaccard and containment are exact, over all pairs, on
# character 5-grams of letters and digits. ``jaccard_clean`` leaves out sentences that recur over the site and counts in
# place of ``jaccard``; ``left``: letters that remain. A person's label on a pair (``scrapy neardup tune``) overrides
# figures. If every pair has one, they are a sample, and documents outside it are unknown. Similarity is not the truth;
# see ``Gold``.


POS, NEG, REPOST, TEMPLATE, GREY, LEFT_OUT = LABELS = ("pos", "neg", "repost", "template", "grey", "skip")

#: A pair is below both limits.
_JACCARD, _CONTAINMENT = 0.5, 0.8
_NEED = 'each line must be one JSON object: {"a": id, "b": id, "jaccard": 0.83, "containment": 0.91}, for two documents'
_WORD = re.compile(r"\w+")
#: Documents that decide the language.
_FIRST = 100


@dataclass(frozen=True, slots=True)
class Pair:
    """The similarity of two documents; ``same_account`` is None if unknown.

    ``copy``: a person's label, None if there is none.
    """

    jaccard: float
    same_account: bool | None = None
    left: float = math.inf
    copy: bool | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents on disk, and the label of each by id.

    ``different``: earlier documents that a person called different; dropping this one for another document is no error
    then. ``feed``: the reader, if it is no plain corpus. ``gold``: pairs that a person has read.
    """

    name: str
    path: Path
    labels: dict[str, str]
    different: dict[str, frozenset[str]] = field(default_factory=dict)
    feed: FeedReader | None = None
    gold: tuple[Gold, ...] = ()

    def documents(self) -> Iterator[Document]:
        """Read the documents again."""
        return read_documents(self.path, feed=self.feed)


def read_corpus(
    path: Path, pairs: Path | None = None, feed: FeedReader | None = None, gold: Path | None = None
) -> Corpus:
    """Read the corpus in a folder or file.

    ``pairs`` and ``gold`` lie beside the documents by default; one of them is enough. Raises NearDupError.
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
    """Return labels, and what a person called different; ``partners``: None if nothing is known of any pair."""
    known = partners or {}
    found = [pair for earlier in known.values() for pair in earlier.values()]
    has_accounts = any(pair.same_account is not None for pair in found)
    unknown = GREY if partners is None or (found and all(pair.copy is not None for pair in found)) else NEG
    labels = {
        id: label(list(known[id].values()), short=is_short, accounts=has_accounts)
        if id in known
        else LEFT_OUT
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
    """Label a document by its pairs with earlier ones; ``accounts``: the corpus knows publishers.

    >>> label([Pair(0.7, same_account=False)], short=False, accounts=True)
    'repost'
    """
    if any(pair.copy for pair in earlier):
        return POS
    judged, earlier = len(earlier), [pair for pair in earlier if pair.copy is None]
    if judged and not earlier:
        return NEG
    if short or any(pair.left < 30 for pair in earlier):
        return LEFT_OUT
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
    """Return the pairs of each document with earlier ones, by id."""
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
    """Return the pair; None for one that a person skipped."""
    answer = entry.fields.get("label")
    if answer not in (None, *ANSWERS):
        raise NearDupError(f"{entry.place}: label must be one of {', '.join(ANSWERS)}, not {answer!r}.")
    if answer == LEFT_OUT:
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
    """Yield each document's id, and whether it is too short for similarities."""
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
